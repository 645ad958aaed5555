"""Ratios of committed and spot prices to on-demand. Ratios are estimates, never offers."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Annotated, Literal

from pydantic import Field, Strict

from planner.catalog.base import Record, Text


class Ratio(Record):
    """Price under `term` over the on-demand price.

    Without `family` and `gpu` it holds for the whole provider; a `generic` ratio averages general-purpose machines.
    `upfront` is empty where the source does not say.
    """

    provider: Text
    family: str = ""
    gpu: str = ""
    term: Literal["spot", "1y", "3y"]
    upfront: Literal["", "none", "partial", "all"] = ""
    ratio: Annotated[float, Field(gt=0, le=1)]
    generic: bool = False
    confidence: Literal["high", "medium", "low"]
    basis: Text
    source: Text


class CommitmentFile(Record):
    """The content of `offers/commitments.yaml`."""

    ratios: Annotated[tuple[Ratio, ...], Strict(False)]


def best_ratio(ratios: Iterable[Ratio], instance: str, term: str, upfront: str | None) -> Ratio | None:
    """Return the ratio of `term` for an instance type: that of its own family first, then the provider's.

    `upfront` is none, partial or all; None counts as none. A ratio that states no upfront payment fits every one.
    """
    wanted = {"", upfront or "none"}
    fitting = [r for r in ratios if r.term == term and r.upfront in wanted and not r.gpu and _covers(r, instance)]
    return max(fitting, key=lambda r: (len(r.family), r.upfront), default=None)


def _covers(ratio: Ratio, instance: str) -> bool:
    return not ratio.family or re.match(re.escape(ratio.family) + r"(?![A-Za-z0-9])", instance) is not None
