"""What a fleet that runs breaks of a spec: one record for each limit, with the figures where there are some."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Check = Literal["supply", "limit", "demand", "latency", "load", "loss", "settings", "routing"]
"""Kind of what is broken: supply that is gone; a limit on money, hardware or shapes; demand that is not carried; latency;
the load that queues bear; a loss that is not survived; batch caps of today; or no routing that keeps everything."""


@dataclass(frozen=True)
class Broken:
    """One thing that a fleet breaks: about which pool, offer, model, workload or key, and why in words.

    `limit` and `actual` are numbers of one unit, which `metric` names for latencies (seconds), None where there are none. `key` is the
    key of the spec that is in the way, where that is known, and `period` that in which it is.
    """

    check: Check
    subject: str
    reason: str
    metric: str = ""
    limit: float | None = None
    actual: float | None = None
    key: str = ""
    period: str = ""


def in_words(broken: Sequence[Broken], most: int) -> tuple[str, ...]:
    """Return the reasons, each once and no more than `most`."""
    return tuple(dict.fromkeys(b.reason for b in broken))[:most]
