"""The months ahead of a growing fleet: what demand each step is planned for, and how nodes are bought over several steps."""

from __future__ import annotations

from calendar import monthrange
from collections import Counter
from dataclasses import dataclass, replace
from datetime import date

from planner.candidates.periods import MARK, InPeriod, copy_of
from planner.candidates.supply import OWNED_TERM
from planner.candidates.types import Assumption, PricedOffer, Supply
from planner.spec import FleetSpec
from planner.spec.growth import MONTHS_PER_YEAR, GrowthSpec

TERM_MONTHS = {"1y": MONTHS_PER_YEAR, "3y": 3 * MONTHS_PER_YEAR}


@dataclass(frozen=True)
class Step:
    """Months of a growing fleet that are planned as one: the spec with the demand of the last of them.

    `first_month` counts from 1; `due` is the day it starts; `share` is its part of the horizon.
    """

    name: str
    first_month: int
    months: int
    due: date
    share: float
    spec: FleetSpec


def steps_of(spec: FleetSpec) -> tuple[Step, ...]:
    """Return the steps of a growing fleet from the day of its spec, the first one now; none where nothing grows.

    Demand of month m is that of month 1 times (1 + rate)^(m - 1). Offers that end are there until the last step that starts before.
    """
    if spec.growth is None or spec.planning.as_of is None:
        return ()
    months, horizon = spec.growth.months_per_step, spec.growth.horizon_months
    return tuple(_step(spec, spec.planning.as_of, before, months, horizon) for before in range(0, horizon, months))


def _step(spec: FleetSpec, today: date, before: int, months: int, horizon: int) -> Step:
    due = months_after(today, before)
    grown = {
        name: w.model_copy(update={"traffic": w.traffic.times((1.0 + spec.growth_of(name)) ** (before + months - 1))})
        for name, w in spec.workloads.items()
    }
    planning = spec.planning.model_copy(update={"as_of": due})
    own = spec.model_copy(update={"workloads": grown, "planning": planning, "growth": None})
    return Step(f"m{before + 1:02d}", before + 1, months, due, months / horizon, own)


def months_after(day: date, months: int) -> date:
    """Return the same day of a later month, or its last one."""
    year, month = divmod(day.year * MONTHS_PER_YEAR + day.month - 1 + months, MONTHS_PER_YEAR)
    return date(year, month + 1, min(day.day, monthrange(year, month + 1)[1]))


def steps_in_term(growth: GrowthSpec, term: str) -> int:
    """Return how many steps nodes of a term are paid for, 0 where they are paid by the hour."""
    return TERM_MONTHS.get(term, 0) // growth.months_per_step


class ByTerms:
    """Nodes of a long term are bought in some step and paid for as long as the term lasts; owned nodes are the same in all hours."""

    def __init__(self, growth: GrowthSpec, supply: Supply) -> None:
        kinds = Counter(o.entry for o in supply.offers)
        self._growth = growth
        self._committed = {s.entry for s in supply.stock if s.committed > 0 and kinds[s.entry] > 1}

    def copied(self, offer: PricedOffer, part: InPeriod) -> PricedOffer:
        """Return the copy of an offer, at a price that is its part of the mean over the horizon."""
        lasts = steps_in_term(self._growth, offer.term)
        is_same = lasts > 0 or offer.term == OWNED_TERM or offer.entry in self._committed
        copy = copy_of(offer, part, f"{offer.name}{MARK}{part.case}" if is_same else "")
        return replace(copy, step=part.case, term_steps=lasts)


def growth_assumptions(spec: FleetSpec) -> list[Assumption]:
    """Say how growth is planned, and what is taken for granted about the time after the horizon."""
    if spec.growth is None:
        return []
    months = spec.growth.months_per_step
    length = "month by month" if months == 1 else f"in steps of {months} months, each at the demand of its last month"
    value = f"{spec.growth.horizon_months} months, {length}; demand is taken to stay afterwards, when terms bought late still run"
    return [Assumption("growth", value, "growth.horizon")]
