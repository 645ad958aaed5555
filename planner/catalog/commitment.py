"""Ratios of committed and spot prices to on-demand. Ratios are estimates, never offers."""

from __future__ import annotations

from typing import Literal

from planner.catalog.base import Record, Text


class Ratio(Record):
    """Price under `term` over the on-demand price. `family` is empty for a provider-wide ratio.

    `upfront` is empty where the source does not say. A `generic` ratio is an average over general-purpose machines.
    """

    provider: Text
    family: str = ""
    term: Literal["1y", "3y", "spot"]
    upfront: Literal["", "none", "partial", "all"] = ""
    ratio: float
    generic: bool = False
    confidence: Literal["high", "medium", "low"]
    basis: Text
    source: Text
