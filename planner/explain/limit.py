"""A limit of a spec that the program states."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from planner.explain.change import Change
from planner.program.data import FleetProblem
from planner.solve.outcome import Solution
from planner.spec import FleetSpec


@dataclass(frozen=True)
class Limit:
    """A key of the spec that limits the program.

    `without` drops it from a program. `needed` returns the values that would do for a fleet found without it, mildest
    first; `raised` returns the spec with such a value, and `text` writes one.
    """

    key: str
    value: float
    without: Callable[[FleetProblem], FleetProblem]
    needed: Callable[[FleetProblem, Solution], list[float]]
    raised: Callable[[FleetSpec, float], FleetSpec]
    text: Callable[[float], str]

    def changes(self, spec: FleetSpec, problem: FleetProblem, found: Solution) -> Iterator[Change]:
        """Yield the changes of a spec with which the fleet found without this limit might do, mildest first."""
        for value in self.needed(problem, found):
            if value != self.value:
                yield Change(self.key, self.text(self.value), self.text(value), self.raised(spec, value))

    def breaks(self, problem: FleetProblem, found: Solution) -> bool:
        """Tell whether a fleet found without this limit needs another value."""
        return self.value not in self.needed(problem, found)[:1]


def usd_per_month(value: float) -> str:
    """Write a budget as the spec does."""
    return f"{value:.0f} USD/month"
