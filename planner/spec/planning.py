"""Planning: what to minimise, with how much confidence, and to which gap."""

from __future__ import annotations

from typing import Annotated, Literal

from planner.spec.fields import Bool, Date, Share, ShareBelowOne
from planner.spec.readers import OneOf, Quantity
from planner.spec.section import Section

_OBJECTIVES = ("cost", "gpus", "power")


class PlanningSpec(Section):
    """How to plan."""

    objective: Annotated[Literal["cost", "gpus", "power"], OneOf("objective", _OBJECTIVES)] = "cost"
    """What to minimise."""
    confidence: Annotated[float, Quantity("share", minimum=0.5, below=1.0, bounds="at least 50 % and below 100 %")] = (
        0.8
    )
    """Share of measured deployments that stay under the predicted times."""
    hours_per_month: Annotated[float, Quantity("count", above=0.0, maximum=744.0, bounds="above 0 and at most 744")] = (
        730.0
    )
    """Hours that make a month of money."""
    periods: Annotated[int, Quantity("count", minimum=1, maximum=24, whole=True, bounds="from 1 to 24")] = 2
    """Periods that the hours of `hourly` demand are put together into; each is planned at its highest hour."""
    gap: ShareBelowOne = 0.005
    """Relative distance from the proven bound at which the search may stop."""
    stay_within: Share = 0.01
    """With a plan to prefer: its fleet is kept unless it costs more than the best one by more than this share of the best one."""
    estimated_prices: Bool = False
    """Whether terms without a listed price may use an estimated one."""
    as_of: Date | None = None
    """Date that ages prices and waivers; default: the newest price date of the catalog."""
