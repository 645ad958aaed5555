"""A limit of a spec that the program states, or that its candidates were rated with."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from planner.explain.change import Change, Place, key_of, path_of
from planner.plan.schema import Plan
from planner.program.data import FleetProblem
from planner.solve.outcome import Solution
from planner.spec import FleetSpec

DIGITS = 3  # money and power are tried to so many digits
LEAST_SHARE = 0.01  # shares are tried in whole per cent
EPSILON = 1e-9


def no_change(problem: FleetProblem) -> FleetProblem:
    """Return a program as it is."""
    return problem


@dataclass(frozen=True)
class Limit:
    """A key of the spec that limits the fleet, which has the value `value`.

    `without` drops it from a program; what candidates were rated with has `free` instead, which drops it from the spec.
    `needed` returns the values that would do for a fleet found without it, mildest first; `raised` returns the spec with
    such a value, and `text` writes one. Milder ones are `step` apart, none are tried where that is zero. `planned` says
    what a whole plan needs, where that may be less than the program tells.
    """

    place: Place
    value: float
    needed: Callable[[FleetProblem, Solution], list[float]]
    raised: Callable[[FleetSpec, float], FleetSpec]
    text: Callable[[float], str]
    without: Callable[[FleetProblem], FleetProblem] = no_change
    free: Callable[[FleetSpec], FleetSpec] | None = None
    step: float = 1.0
    planned: Callable[[Plan], float] | None = None

    def key(self, spec: FleetSpec) -> str:
        """Return the key as reports of a spec name it."""
        return key_of(spec, self.place)

    def change(self, spec: FleetSpec, value: float) -> Change:
        """Return the change of a spec to a value."""
        texts = self.text(self.value), self.text(value)
        return Change(path_of(spec, self.place), self.key(spec), *texts, self.raised(spec, value))

    def others(self, problem: FleetProblem, found: Solution) -> list[float]:
        """Return the values other than that of the spec with which the fleet found might do, mildest first."""
        return [value for value in self.needed(problem, found) if value != self.value]

    def breaks(self, problem: FleetProblem, found: Solution) -> bool:
        """Tell whether a fleet found without this limit needs another value."""
        return self.value not in self.needed(problem, found)[:1]


@dataclass(frozen=True)
class Scale:
    """The values between that of a limit and one that is enough, a step apart and the mildest first; the last is enough."""

    now: float
    enough: float
    step: float

    def __len__(self) -> int:
        """Return how many values there are."""
        if self.step <= 0.0:
            return 1
        last = self.enough / self.step
        between = math.ceil(last - EPSILON) - self._first if self._is_up else self._first - math.floor(last + EPSILON)
        return max(between, 0) + 1

    def at(self, index: int) -> float:
        """Return one of the values."""
        if index >= len(self) - 1:
            return self.enough
        return round((self._first + (index if self._is_up else -index)) * self.step, ndigits=9)

    @property
    def _is_up(self) -> bool:
        return self.enough > self.now

    @property
    def _first(self) -> int:
        """Return the first multiple of the step beyond the value of the limit."""
        start = self.now / self.step
        return math.floor(start + EPSILON) + 1 if self._is_up else math.ceil(start - EPSILON) - 1


def fine_step(value: float) -> float:
    """Return a step that gives values near one few digits; never below one."""
    return max(1.0, 10.0 ** (math.floor(math.log10(value)) - DIGITS + 1)) if value > 0.0 else 1.0


def usd_per_month(value: float) -> str:
    """Write a budget as the spec does."""
    return f"{value:.0f} USD/month"


def per_cent(share: float) -> str:
    """Write a share as the spec does."""
    return f"{100.0 * share:g} %"
