"""What `--why-not` answers about a shape or an offer."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Answer:
    """Why a model is not served on a shape or an offer, the `shape` here: the rule and its reason.

    `workload` is empty where the answer is about all workloads asked for. `usd_per_hour` is the cost of the fleet that was
    planned with the shape, None where none was, and `more_usd_per_hour` what that is above the plan.
    """

    model: str
    shape: str
    workload: str
    rule: str
    reason: str
    usd_per_hour: float | None = None
    more_usd_per_hour: float | None = None


def difference(usd_per_hour: float, before_usd_per_hour: float) -> float:
    """Return what one fleet costs more than another, without the noise of summing prices in another order."""
    return round(usd_per_hour - before_usd_per_hour, 9)
