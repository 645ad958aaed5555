"""What planning stands on: a spec as of its day with its candidates, and what its program is stated over."""

from __future__ import annotations

from dataclasses import dataclass

from planner.candidates.growth import Step
from planner.candidates.knowledge import Knowledge
from planner.candidates.periods import Buying, Case, Expanded, expanded
from planner.candidates.table import NOTHING_RUNS, Memo, build_table
from planner.candidates.types import CandidateTable
from planner.catalog import Catalog
from planner.plan.build import Context
from planner.prefer.earlier import EarlierFleet
from planner.prefer.earlier import in_periods as by_periods
from planner.program.data import FleetProblem
from planner.program.problem import fleet_problem, gpu_limits
from planner.spec import FleetSpec


@dataclass(frozen=True)
class Together:
    """Cases that are planned together, how nodes are bought for them, and the steps that they are, where demand grows."""

    cases: tuple[Case, ...]
    buying: Buying
    steps: tuple[Step, ...] = ()


@dataclass(frozen=True)
class Ground:
    """What planning stands on: the spec as of its day, its candidates, and the fleet that runs, if one is to be kept.

    With `together`, the fleet is planned for several cases at once, of which the spec is the first.
    """

    spec: FleetSpec
    catalog: Catalog
    knowledge: Knowledge
    memo: Memo
    table: CandidateTable
    context: Context
    earlier: EarlierFleet | None = None
    together: Together | None = None

    @property
    def cases(self) -> tuple[Case, ...]:
        """The cases that are planned together, a single one where it is the spec alone."""
        if self.together is not None:
            return self.together.cases
        return (Case("", self.spec, self.catalog, self.table, self.context.periods),)


def whole_of(ground: Ground) -> Expanded | None:
    """Return all that is planned with a copy of everything for each part, None where there is only one."""
    cases = ground.cases
    if sum(len(case.periods) for case in cases) == 1:
        return None
    shapes = NOTHING_RUNS if ground.earlier is None else ground.earlier.shapes()

    def rated(changed: FleetSpec) -> CandidateTable:
        return build_table(changed, ground.catalog, ground.knowledge, ground.memo, shapes, ground.table.held_to)

    return expanded(cases, rated, None if ground.together is None else ground.together.buying)


def as_planned(earlier: EarlierFleet, whole: Expanded | None) -> EarlierFleet:
    """Return a fleet that runs at its peak, or as its copies for every part."""
    return earlier.at_peak() if whole is None else by_periods(earlier, whole.parts)


def problem_of(
    ground: Ground, spec: FleetSpec, table: CandidateTable, paid: frozenset[str] = frozenset()
) -> FleetProblem:
    """Return the program of a spec and its candidates; see `fleet_problem`."""
    return fleet_problem(spec, table, gpu_limits(spec, ground.catalog), paid)
