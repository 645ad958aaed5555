"""What one thing costs in terms of another: the cost of the best fleet at every limit, as the steps that it goes up by.

The limit is moved and the spec planned anew (epsilon constraint). The best cost never falls as a limit tightens, so between two
limits of the same cost there is nothing to look for, and a step between two others is found by bisection. A step is proven: at
its limit by the plan that meets it, just below it by the lower bound on the cost of any fleet there.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from planner.plan.record import Record
from planner.source import nearest
from planner.spec import FleetSpec
from planner.sweep.base import Base
from planner.sweep.row import Row
from planner.units import UnitError, parse_quantity

FIRST = 9
"""Limits that are planned first, evenly apart on the scale."""
PRECISION = 0.01
"""Share of a limit to which a step is found, where it is no whole number."""
MOST_PLANNED = 400
TIMES_LOOSER = 4.0
"""How far latency limits and sizes are moved from where they are, up and down."""
MEASURES = ("gpus", "power", "confidence")


class TradeError(ValueError):
    """A trade that cannot be made, in one line."""


@dataclass(frozen=True)
class Trade:
    """A limit that is moved between `tightest` and `loosest`, both in base units; `text_of` writes it as YAML.

    `dimension` is its unit's, as of quantities. A limit may tighten upwards, as the confidence does.
    """

    name: str
    key: str
    dimension: Literal["time", "count", "power", "share"]
    tightest: float
    loosest: float
    text_of: Callable[[float], str]

    def between(self, first: float, last: float) -> float | None:
        """Return the limit in the middle of two; None where they are as near as a step is looked for."""
        if self.dimension == "count":
            middle = (first + last) // 2
            return middle if middle not in (first, last) else None
        if self.dimension == "share":
            return (first + last) / 2 if abs(last - first) > PRECISION else None
        return math.sqrt(first * last) if max(first, last) / min(first, last) > 1.0 + PRECISION else None

    def ladder(self) -> list[float]:
        """Return the limits that are planned first, the tightest first."""
        parts = [i / (FIRST - 1) for i in range(FIRST)]
        if self.dimension == "share":
            return [self.tightest + part * (self.loosest - self.tightest) for part in parts]
        found = [self.tightest * (self.loosest / self.tightest) ** part for part in parts]
        return sorted({float(round(x)) for x in found}) if self.dimension == "count" else found


class Step(Record):
    """The cost of the best fleet from one limit on, up to the next step."""

    limit: float
    """Tightest limit at which it was found, in seconds, GPUs, watts or as a share."""
    dearer_at: float | None
    """A tighter limit, as near as steps are looked for, at which every fleet is proven dearer, or there is none; null at the end
    of the range."""
    next: Literal["dearer", "no-fleet", "end"]
    """What is at that tighter limit."""
    row: Row


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
    steps: tuple[Step, ...]


UNITS: Mapping[str, Literal["s", "GPUs", "W", "share"]] = {"time": "s", "count": "GPUs", "power": "W", "share": "share"}


def trade_of(text: str, base: Base, now: Row, power_w: float, between: str | None) -> Trade:
    """Return what `cost:MEASURE` or `cost:METRIC@WORKLOAD` stands for, from the plan of the spec as it is. Raises `TradeError`."""
    spec = base.loaded.spec
    assert spec is not None
    if spec.planning.objective != "cost":
        raise TradeError(f"the spec minimises {spec.planning.objective}, not cost; leave out planning.objective")
    paid, _, measure = text.partition(":")
    if paid != "cost" or not measure:
        raise TradeError(f"`{text}` is no trade; write cost:tpot_p95@WORKLOAD, or cost: with {', '.join(MEASURES)}")
    trade = _latency(measure, spec) if measure not in MEASURES else _size(measure, base, now, power_w)
    if between is None:
        return trade
    ends = [part.strip() for part in between.split("..")]
    try:
        limits = [parse_quantity(end, trade.dimension) for end in ends]
    except UnitError as error:
        raise TradeError(f"{between}: {error.message}; {error.hint}") from None
    if len(limits) != 2 or min(limits) <= 0.0 or limits[0] == limits[1]:
        raise TradeError(f"`{between}` is no range; write two limits, such as `40 ms..200 ms`")
    upwards = trade.tightest > trade.loosest
    tightest, loosest = sorted(limits, reverse=upwards)
    return Trade(trade.name, trade.key, trade.dimension, tightest, loosest, trade.text_of)


def _latency(measure: str, spec: FleetSpec) -> Trade:
    metric, _, workload = measure.partition("@")
    limited = [name for name, w in spec.workloads.items() if metric in w.slo]
    if workload and workload not in spec.workloads:
        close = nearest(workload, spec.workloads)
        raise TradeError(f"there is no workload `{workload}`" + (f"; did you mean `{close}`?" if close else ""))
    if not workload and len(limited) == 1:
        (workload,) = limited
    if workload not in limited:
        known = sorted({f"{m}@{name}" for name, w in spec.workloads.items() for m in w.slo} | set(MEASURES))
        close = nearest(measure, known)
        hint = f"did you mean cost:{close}?" if close else f"there are {', '.join(known)}"
        raise TradeError(f"the spec has no limit `{measure}` to move; {hint}")
    limit_s = spec.workloads[workload].slo[metric]
    key = f"workloads.{workload}.slo.{metric}"
    name = f"cost against {metric} of {workload}"
    return Trade(name, key, "time", limit_s / TIMES_LOOSER, limit_s * TIMES_LOOSER, lambda s: f"{1e3 * s:.6g} ms")


def _size(measure: str, base: Base, now: Row, power_w: float) -> Trade:
    if measure == "confidence":
        return Trade("cost against confidence", "planning.confidence", "share", 0.99, 0.5, lambda x: f"{100 * x:.6g} %")
    if now.gpus is None or power_w <= 0.0:
        raise TradeError(
            f"no fleet meets the spec as it is, or its {measure} are not known: there is nothing to start from"
        )
    if measure == "power":
        ends = power_w / TIMES_LOOSER, power_w * TIMES_LOOSER
        return Trade("cost against power", "supply.limits.power", "power", *ends, lambda w: f"{w:.6g} W")
    data = base.loaded.document.data if base.loaded.document is not None else {}
    rules = (data.get("supply", {}).get("limits") or {}).get("rules") or []

    def text_of(gpus: float) -> str:
        return json.dumps([*rules, {"match": {}, "gpus": int(gpus)}], ensure_ascii=False)

    return Trade("cost against GPUs", "supply.limits.rules", "count", 1.0, TIMES_LOOSER * now.gpus, text_of)


def steps_of(trade: Trade, ask: Callable[[Sequence[float]], Mapping[float, Row]]) -> tuple[int, tuple[Step, ...]]:
    """Return how many limits were planned, and the steps, the tightest first. `ask` plans limits side by side."""
    known: dict[float, Row] = {}
    asked: list[float] = trade.ladder()
    while asked and len(known) + len(asked) <= MOST_PLANNED:
        known |= ask(asked)
        asked = list(_between(trade, known))
    return len(known), tuple(_steps(trade, known))


def _between(trade: Trade, known: Mapping[float, Row]) -> Iterator[float]:
    for tight, loose in pairwise(_in_order(trade, known)):
        middle = trade.between(tight, loose)
        if middle is not None and _is_dearer(known[tight], known[loose]):
            yield middle


def _steps(trade: Trade, known: Mapping[float, Row]) -> Iterator[Step]:
    order = _in_order(trade, known)
    for tight, limit in zip([None, *order], order, strict=False):
        row = known[limit]
        before = None if tight is None else known[tight]
        if row.usd_per_month is None or (before is not None and not _is_dearer(before, row)):
            continue
        what: Literal["dearer", "no-fleet", "end"] = "end"
        if before is not None:
            what = "dearer" if before.usd_per_month is not None else "no-fleet"
        yield Step(limit=limit, dearer_at=tight, next=what, row=row)


def _in_order(trade: Trade, known: Mapping[float, Row]) -> list[float]:
    return sorted(known, reverse=trade.tightest > trade.loosest)


def _is_dearer(tight: Row, loose: Row) -> bool:
    """Tell whether every fleet at a tighter limit is proven dearer than the one that was found at a looser one."""
    if loose.usd_per_month is None:
        return False
    return tight.bound_usd_per_month is None or tight.bound_usd_per_month > loose.usd_per_month
