"""Variants of a spec, tried: rated, solved, or planned as a whole, and no more of them than allowed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from planner.candidates.knowledge import Knowledge
from planner.candidates.table import NOWHERE_HELD, HeldTo, Memo, build_table
from planner.candidates.types import CandidateTable
from planner.catalog import Catalog
from planner.plan.schema import Plan
from planner.program.data import FleetProblem
from planner.program.problem import fleet_problem, gpu_limits
from planner.solve.fleet import SolveLimits, solve
from planner.solve.outcome import Infeasible, Outcome
from planner.spec import FleetSpec

ANY_FLEET_GAP = 0.5  # where only the existence of a fleet is asked for
WAY_GAP = 0.02  # what a way out costs is told to this share, since several are planned
SEARCH_NODES = 2000
MOST_SOLVES = 60
LEAST_SOLVES = 10
CANDIDATE_SOLVES = 6000  # candidates times solves that take seconds
SOLVES_OF_A_PLAN = 3  # pools are rated at their mix and the program is solved again


@dataclass
class Trials:
    """The tries that an explanation may make. `plan_spec` plans a variant of the spec as a whole, audit included.

    Counting solves rather than seconds keeps answers the same on every machine; `limits` has the emergency brakes.
    """

    catalog: Catalog
    knowledge: Knowledge
    plan_spec: Callable[[FleetSpec, CandidateTable], Plan]
    limits: SolveLimits
    most_solves: int = MOST_SOLVES
    solves: int = 0
    memo: Memo = field(default_factory=dict)

    @property
    def exhausted(self) -> bool:
        """Tell whether something was not tried for want of solves, or because someone asked to stop."""
        return self.solves > self.most_solves or self.limits.is_interrupted

    def limit_for(self, candidates: int) -> None:
        """Allow as many solves as take seconds with so many candidates."""
        self.most_solves = max(LEAST_SOLVES, min(MOST_SOLVES, CANDIDATE_SOLVES // max(candidates, 1)))

    def table(self, spec: FleetSpec, held_to: HeldTo = NOWHERE_HELD) -> CandidateTable:
        """Return the candidates of a variant, some workloads held to offers; models that are as before are not rated again."""
        return build_table(spec, self.catalog, self.knowledge, self.memo, held_to=held_to)

    def problem(self, spec: FleetSpec, table: CandidateTable) -> FleetProblem:
        """Return the program of a variant."""
        return fleet_problem(spec, table, gpu_limits(spec, self.catalog))

    def solve(self, problem: FleetProblem, gap: float = ANY_FLEET_GAP) -> Outcome | None:
        """Solve a program; None when no solves are left."""
        if not self._take():
            return None
        return solve(problem, replace(self.limits, gap=gap, max_nodes=SEARCH_NODES)).outcome

    def is_infeasible(self, problem: FleetProblem) -> bool:
        """Tell whether it is proven that no fleet meets a program; False also when no solves are left."""
        return isinstance(self.solve(problem), Infeasible)

    def plan(self, spec: FleetSpec) -> Plan | None:
        """Plan a variant; None when no fleet was found or no solves are left."""
        return self.plan_on(spec, self.table(spec))

    def plan_on(self, spec: FleetSpec, table: CandidateTable) -> Plan | None:
        """Plan a variant with the candidates of a table; None when no fleet was found or no solves are left."""
        if unserved(table) or not self._take(SOLVES_OF_A_PLAN):
            return None
        plan = self.plan_spec(spec, table)
        return plan if plan.objective is not None else None

    def _take(self, solves: int = 1) -> bool:
        self.solves += solves
        return not self.exhausted


def unserved(table: CandidateTable) -> list[str]:
    """Return the workloads that no candidate can serve."""
    served = {w for c in table.candidates for w in c.services}
    return [w for w in table.workloads if w not in served]
