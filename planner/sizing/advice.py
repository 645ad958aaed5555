"""What every answer ends with: the scarce resource, and the lever that buys it back."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

_TENTHS = 1e3
_NOISE_DIGITS = 9


class Scarce(StrEnum):
    """Resource that a row is short of."""

    NONE = "none"
    CAPACITY = "capacity"
    BANDWIDTH = "bandwidth"
    COMPUTE = "compute"
    HOST_LINK = "host link"


LEVERS = {
    Scarce.CAPACITY: "quantise weights, quantise KV, a GQA model, or shard",
    Scarce.BANDWIDTH: "fewer bytes per weight, a smaller model, more bandwidth, or a larger batch",
    Scarce.COMPUTE: "more FLOP/s, FP8, prefix caching, or disaggregated prefill",
    Scarce.HOST_LINK: "move less, fewer bytes per weight, or a faster link",
}


@dataclass(frozen=True, slots=True)
class Advice:
    """A scarce resource and its lever in words."""

    scarce: Scarce
    lever: str

    @classmethod
    def of(cls, scarce: Scarce, first: str = "") -> Advice:
        """Return the general levers of a resource, after a `first` one with figures of its own."""
        general = LEVERS[scarce]
        return cls(scarce, f"{first}; else {general}" if first else general)


def percent_up(share: float) -> str:
    """Return a share of one that is the least to do in percent, rounded up to a tenth: so much is always enough."""
    return f"{math.ceil(round(share * _TENTHS, _NOISE_DIGITS)) / 10.0:g} %"
