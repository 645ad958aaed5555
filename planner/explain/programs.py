"""The program of a spec with some of its limits dropped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import reduce

from planner.explain.limit import Limit
from planner.explain.trials import WAY_GAP, Trials
from planner.program.data import FleetProblem
from planner.solve.outcome import Infeasible, Outcome, Solution, Solved, Unproven
from planner.spec import FleetSpec


@dataclass(frozen=True)
class Found:
    """A fleet, with the program that has its candidates and offers and every limit on them."""

    problem: FleetProblem
    solution: Solution


@dataclass
class Programs:
    """The programs of a spec, `problem` being its own. Limits that candidates are rated with are dropped in the spec."""

    spec: FleetSpec
    problem: FleetProblem
    trials: Trials
    _rated: dict[frozenset[str], FleetProblem] = field(default_factory=dict)

    def of(self, dropped: Sequence[Limit]) -> FleetProblem:
        """Return the program whose candidates are rated without some limits; its own ones all hold."""
        rated = [limit for limit in dropped if limit.free is not None]
        if not rated:
            return self.problem
        key = frozenset(str(limit.place) for limit in rated)
        if key not in self._rated:
            free = reduce(lambda spec, limit: limit.free(spec) if limit.free is not None else spec, rated, self.spec)
            self._rated[key] = self.trials.problem(free, self.trials.table(free))
        return self._rated[key]

    def without(self, dropped: Sequence[Limit]) -> FleetProblem:
        """Return the program without some limits."""
        return reduce(lambda program, limit: limit.without(program), dropped, self.of(dropped))

    def solve(self, dropped: Sequence[Limit]) -> Outcome | None:
        """Solve the program without some limits; None when no solves are left."""
        return self.trials.solve(self.without(dropped), WAY_GAP)

    def best(self, dropped: Sequence[Limit]) -> Found | None:
        """Return the best fleet without some limits, None where none was found."""
        return found_in(self.of(dropped), self.solve(dropped))

    def is_infeasible(self, dropped: Sequence[Limit]) -> bool:
        """Tell whether it is proven that no fleet exists even without some limits."""
        return self.trials.is_infeasible(self.without(dropped))


def found_in(problem: FleetProblem, outcome: Outcome | None) -> Found | None:
    """Return the fleet of an outcome, None where there is none."""
    return Found(problem, outcome.solution) if isinstance(outcome, Solved | Unproven) else None


def is_proven_empty(outcome: Outcome | None) -> bool:
    """Tell whether an outcome is the proof that there is no fleet."""
    return isinstance(outcome, Infeasible)
