"""Variants of a spec, tried: rated, solved, or planned as a whole, and no more of them than allowed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from planner.candidates.knowledge import Knowledge
from planner.candidates.table import NOWHERE_HELD, HeldTo, Memo, build_table
from planner.candidates.types import CandidateTable
from planner.catalog import Catalog
from planner.explain.change import Change
from planner.plan.schema import Plan
from planner.program.data import FleetProblem
from planner.program.problem import fleet_problem, gpu_limits
from planner.solve.fleet import SolveLimits, solve
from planner.solve.outcome import Infeasible, Outcome, Unsolved
from planner.spec import FleetSpec

ANY_FLEET_GAP = 0.5  # where only the existence of a fleet is asked for
WAY_GAP = 0.02  # what a way out costs is told to this share, since several are planned
SEARCH_NODES = 2000
CHECK_NODES = 100  # a check that takes more is given up: it would only make a way milder
MOST_SOLVES = 60
LEAST_SOLVES = 10
CANDIDATE_SOLVES = 6000  # candidates times solves that take seconds
SOLVES_OF_A_PLAN = 3  # pools are rated at their mix and the program is solved again


@dataclass(frozen=True)
class Variant:
    """The user's spec, or what is read from its text with changes made in it: at most one of each key."""

    spec: FleetSpec
    changes: tuple[Change, ...] = ()


@dataclass
class Trials:
    """The tries that an explanation may make. `plan_spec` plans a variant of the spec as a whole, audit included.

    `read` returns the spec that the user's text is with changes made in it, None where the checks of a spec refuse it.
    Counting solves rather than seconds keeps answers the same on every machine; `limits` has the emergency brakes.
    `checks` are counted apart: short solves that only make a way that is known milder; `unsettled` are those without answer.
    """

    catalog: Catalog
    knowledge: Knowledge
    plan_spec: Callable[[FleetSpec, CandidateTable], Plan]
    read: Callable[[Sequence[Change]], FleetSpec | None]
    limits: SolveLimits
    most_solves: int = MOST_SOLVES
    solves: int = 0
    checks: int = 0
    unsettled: int = 0
    memo: Memo = field(default_factory=dict)

    @property
    def exhausted(self) -> bool:
        """Tell whether something was not tried for want of solves, or because someone asked to stop."""
        return self.solves > self.most_solves or self.limits.is_interrupted

    @property
    def is_coarse(self) -> bool:
        """Tell whether some milder change may do of which that was not found out."""
        return self.unsettled > 0

    def limit_for(self, candidates: int) -> None:
        """Allow as many solves as take seconds with so many candidates."""
        self.most_solves = max(LEAST_SOLVES, min(MOST_SOLVES, CANDIDATE_SOLVES // max(candidates, 1)))

    def table(self, spec: FleetSpec, held_to: HeldTo = NOWHERE_HELD) -> CandidateTable:
        """Return the candidates of a variant, some workloads held to offers; models that are as before are not rated again."""
        return build_table(spec, self.catalog, self.knowledge, self.memo, held_to=held_to)

    def changed(self, at: Variant, change: Change) -> Variant | None:
        """Return a variant with one change more in its text; None where the checks that every file meets refuse it."""
        made = {c.path: c for c in at.changes}
        first = made.get(change.path, change)
        made[change.path] = replace(change, now=first.now)
        spec = self.read(tuple(made.values()))
        return None if spec is None else Variant(spec, tuple(made.values()))

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

    def holds(self, spec: FleetSpec) -> bool | None:
        """Tell whether the program of a variant has a fleet; None where that was not found out, with little effort."""
        if self.checks < self.most_solves and not self.limits.is_interrupted:
            self.checks += 1
            table = self.table(spec)
            if unserved(table):
                return False
            asked = replace(self.limits, gap=ANY_FLEET_GAP, max_nodes=CHECK_NODES, is_brief=True)
            outcome = solve(self.problem(spec, table), asked).outcome
            if not isinstance(outcome, Unsolved):
                return not isinstance(outcome, Infeasible)
        self.unsettled += 1
        return None

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
