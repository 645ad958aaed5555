"""What policies look at, and what a rule answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from planner.candidates.types import PricedOffer
from planner.catalog import Catalog


@dataclass(frozen=True)
class PlanFacts:
    """The parts of a finished plan that policies are about: money, and the offers that are paid for.

    `baseline_usd_per_month` is the cost of the plan that it is compared with, None where there is none.
    """

    usd_per_month: float
    offers: Sequence[PricedOffer]
    catalog: Catalog
    baseline_usd_per_month: float | None = None


@dataclass(frozen=True)
class Finding:
    """What a rule found: whether it holds (None: not evaluated), the limit and the actual value."""

    holds: bool | None
    limit: float | str | None
    actual: float | str | None
