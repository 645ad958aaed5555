"""What one thing costs in terms of another: the cost of the best fleet at every limit, as the steps that it goes up by.

The limit is moved and the spec planned anew (epsilon constraint). The best cost never falls as a limit tightens, so between two
limits of the same cost there is nothing to look for, and a step between two others is found by bisection. A step is proven: at
its limit by the plan that meets it, at a tighter one by the lower bound on the cost of any fleet there.

What holds at one limit holds at others: a plan meets all looser limits too, and a bound is one at all tighter limits. So of several
plans the cheapest counts, and costs rise from step to step also where each plan is only known to a gap.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Literal

from planner.plan.record import Record
from planner.sweep.row import Row
from planner.sweep.trade import Trade

MOST_PLANNED = 400
_ROUNDING = 1e-9
"""Share by which equal costs may differ that were added up in another order."""


class Step(Record):
    """The cost of the best fleet from one limit on, up to the next step."""

    limit: float
    """Tightest limit at which it was found, in seconds, GPUs, watts or as a share."""
    dearer_at: float | None
    """The loosest of the tighter limits that were planned at which every fleet is proven dearer, or there is none; null where that
    is at none of them."""
    next: Literal["dearer", "no-fleet", "end"]
    """What is at that tighter limit."""
    row: Row
    """The cheapest plan that meets the limit."""


@dataclass(frozen=True)
class Found:
    """The steps that were found with so many limits; `complete` as of a frontier."""

    planned: int
    complete: bool
    steps: tuple[Step, ...]


class Frontier(Record):
    """All steps of a trade, the cheapest last."""

    schema_version: Literal[1] = 1
    fleet: str
    trade: str
    key: str
    """Key of the spec that is moved."""
    unit: Literal["s", "GPUs", "W", "share"]
    tightest: float
    """End of the range that was looked at, in that unit."""
    loosest: float
    """The other end."""
    planned: int
    """Limits that were planned."""
    complete: bool
    """Whether each step was found as exactly as steps are looked for; else there were too many limits to plan."""
    steps: tuple[Step, ...]


UNITS: Mapping[str, Literal["s", "GPUs", "W", "share"]] = {"time": "s", "count": "GPUs", "power": "W", "share": "share"}


def steps_of(trade: Trade, ask: Callable[[Sequence[float]], Mapping[float, Row]]) -> Found:
    """Return the steps of a trade. `ask` plans limits side by side."""
    known: dict[float, Row] = {}
    asked = trade.ladder()
    while asked and len(known) + len(asked) <= MOST_PLANNED:
        known |= ask(asked)
        stairs = _Stairs.of(trade, known)
        asked = list(stairs.between(trade))
    return Found(len(known), not asked, tuple(stairs.steps())[::-1])


@dataclass(frozen=True)
class _Stairs:
    """Limits that were planned, the tightest first.

    At each, `best` is the cheapest plan known to meet it, or the row of the tightest limit where there is none, and `bounds` the
    highest bound known on the cost of any fleet, infinite where there is no fleet. Bounds are of the shapes that were considered: one
    that a fleet for a tighter limit undercuts counts as much as that fleet costs.
    """

    limits: tuple[float, ...]
    best: tuple[Row, ...]
    bounds: tuple[float, ...]

    @classmethod
    def of(cls, trade: Trade, known: Mapping[float, Row]) -> _Stairs:
        limits = sorted(known, reverse=trade.tightest > trade.loosest)
        rows = [known[limit] for limit in limits]
        best = tuple(accumulate(rows, _cheaper))
        own = [math.inf if row.status == "infeasible" else row.bound_usd_per_month or 0.0 for row in rows]
        bounds = list(accumulate(own[::-1], max))[::-1]
        return cls(tuple(limits), best, tuple(min(bound, _cost(row)) for bound, row in zip(bounds, best, strict=True)))

    def between(self, trade: Trade) -> Iterator[float]:
        """Yield the limits to plan next: those in the middle of two of which one is dearer."""
        for at, (tight, loose) in enumerate(pairwise(self.limits)):
            middle = trade.between(tight, loose)
            if middle is not None and self._is_dearer(at, self.best[at + 1]):
                yield middle

    def steps(self) -> Iterator[Step]:
        """Yield the steps, the cheapest first. Each is proven dearer than the one before."""
        last = len(self.limits) - 1
        while last >= 0 and self.best[last].usd_per_month is not None:
            first = next(i for i in range(last + 1) if not self._is_dearer(i, self.best[last]))
            first = next(i for i in range(first, last + 1) if self.best[i].usd_per_month is not None)
            last = max((i for i in range(first) if self._is_dearer(i, self.best[first])), default=-1)
            what: Literal["dearer", "no-fleet", "end"] = "end"
            if last >= 0:
                what = "no-fleet" if math.isinf(self.bounds[last]) else "dearer"
            dearer_at = self.limits[last] if last >= 0 else None
            yield Step(limit=self.limits[first], dearer_at=dearer_at, next=what, row=self.best[first])

    def _is_dearer(self, at: int, row: Row) -> bool:
        """Tell whether every fleet at a limit is proven dearer than a plan."""
        return row.usd_per_month is not None and self.bounds[at] > row.usd_per_month * (1.0 + _ROUNDING)


def _cheaper(first: Row, second: Row) -> Row:
    """Return the cheaper one of two plans, the first where both cost the same or none is a plan."""
    return second if _cost(second) < _cost(first) else first


def _cost(row: Row) -> float:
    return math.inf if row.usd_per_month is None else row.usd_per_month
