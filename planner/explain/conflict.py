"""The smallest set of limits that cannot hold together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


def minimal_conflict(limits: Sequence[T], is_infeasible: Callable[[Sequence[T]], bool]) -> list[T]:
    """Return a minimal subset of limits that is infeasible, in the order given; without any of them a fleet exists.

    A deletion filter that drops halves first: QuickXplain (Junker, AAAI 2004). All limits together must be infeasible.
    `is_infeasible` is asked for a proof: where it has none it says False, and the set returned may then not be minimal.
    """
    found = _part([], list(limits), is_infeasible, grown=False)
    return [limit for limit in limits if any(limit is each for each in found)]


def further_conflicts(limits: Sequence[T], found: Sequence[T], is_infeasible: Callable[[Sequence[T]], bool]) -> list[T]:
    """Return the limits of further minimal conflicts that share none with those found, nor with each other."""
    rest = [limit for limit in limits if not any(limit is each for each in found)]
    further: list[T] = []
    while rest and is_infeasible(rest):
        further += (more := minimal_conflict(rest, is_infeasible))
        rest = [limit for limit in rest if not any(limit is each for each in more)]
    return further


def _part(kept: list[T], limits: list[T], is_infeasible: Callable[[Sequence[T]], bool], grown: bool) -> list[T]:
    """Return the limits that conflict with those already kept; `grown` says that some were kept since the last proof."""
    if grown and is_infeasible(kept):
        return []
    if len(limits) <= 1:
        return limits
    half = len(limits) // 2
    first, second = limits[:half], limits[half:]
    of_second = _part(kept + first, second, is_infeasible, grown=True)
    of_first = _part(kept + of_second, first, is_infeasible, grown=bool(of_second))
    return of_first + of_second
