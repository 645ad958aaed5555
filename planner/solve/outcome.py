"""What a solve may end in. Each is an answer, none an exception."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Solution:
    """Whole replicas and nodes with the rates they serve. `cost` and `bound` are in the unit of the objective, with
    the penalties of preferences.

    `placed` gives replicas by (candidate, cell); `rates` requests/s by (workload, candidate). Entries at zero are left out.
    """

    replicas: Mapping[str, int]
    nodes: Mapping[str, int]
    rates: Mapping[tuple[str, str], float]
    placed: Mapping[tuple[str, str], int]
    cost: float
    bound: float

    @property
    def gap(self) -> float:
        """Distance of cost from the proven lower bound, as a share of cost."""
        return max(0.0, (self.cost - self.bound) / self.cost) if self.cost > 0.0 else 0.0


@dataclass(frozen=True)
class Solved:
    """A plan whose gap is within the one asked for."""

    solution: Solution


@dataclass(frozen=True)
class Unproven:
    """The best plan found when a limit was reached; its gap is above the one asked for."""

    solution: Solution
    reason: str


@dataclass(frozen=True)
class Infeasible:
    """No fleet meets the problem. `reason` says what was found."""

    reason: str


@dataclass(frozen=True)
class Unsolved:
    """A limit was reached before any fleet was found: neither a plan nor a proof that there is none."""

    reason: str


Outcome = Solved | Unproven | Infeasible | Unsolved
