"""Trades: a limit that is moved, and the range that it is moved in."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from planner.source import nearest
from planner.spec import FleetSpec
from planner.sweep.base import Base
from planner.units import UnitError, parse_quantity

FIRST = 9
"""Limits that are planned first, evenly apart on the scale."""
PRECISION = 0.01
"""Share of a limit to which a step is found, where it is no whole number."""
DIGITS = 3
"""Significant digits of the limits that are looked at."""
TIMES_LOOSER = 4.0
"""How far latency limits and sizes are moved from where they are, up and down."""
MEASURES = ("gpus", "power", "confidence")
_EXAMPLES = {"time": "40 ms..200 ms", "count": "8..64", "power": "10 kW..80 kW", "share": "50 %..95 %"}


class TradeError(ValueError):
    """A trade that cannot be made, in one line."""


class RangeError(ValueError):
    """Limits that are no range of a trade, in one line."""


@dataclass(frozen=True)
class Today:
    """What the fleet of the spec as it is takes."""

    gpus: int
    power_w: float


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
        elif self.dimension == "share":
            middle = _rounded((first + last) / 2) if abs(last - first) > PRECISION else first
        else:
            is_near = max(first, last) / min(first, last) <= 1.0 + PRECISION
            middle = first if is_near else _rounded(math.sqrt(first * last))
        return middle if middle not in (first, last) else None

    def ladder(self) -> list[float]:
        """Return the limits that are planned first."""
        parts = [i / (FIRST - 1) for i in range(1, FIRST - 1)]
        if self.dimension == "share":
            inner = [_rounded(self.tightest + part * (self.loosest - self.tightest)) for part in parts]
        else:
            inner = [self.tightest * (self.loosest / self.tightest) ** part for part in parts]
            inner = [float(round(x)) if self.dimension == "count" else _rounded(x) for x in inner]
        low, high = sorted((self.tightest, self.loosest))
        return sorted({low, high, *(limit for limit in inner if low < limit < high)})


def _rounded(limit: float) -> float:
    """Return a limit as people read it, so that what is printed is what was planned."""
    return float(f"{limit:.{DIGITS}g}")


def trade_of(text: str, base: Base, between: str | None, today: Callable[[], Today | None]) -> Trade:
    """Return what `cost:MEASURE` or `cost:METRIC@WORKLOAD` stands for.

    Without `between`, some ranges start from `today`, which is only asked for then, and returns None where no fleet meets the
    spec. Raises `TradeError` or `RangeError`.
    """
    spec = base.loaded.spec
    assert spec is not None
    if spec.planning.objective != "cost":
        raise TradeError(f"the spec minimises {spec.planning.objective}, not cost; leave out planning.objective")
    paid, _, measure = text.partition(":")
    if paid != "cost" or not measure:
        raise TradeError(f"`{text}` is no trade; write cost:tpot_p95@WORKLOAD, or cost: with {', '.join(MEASURES)}")
    trade = _size(measure, base) if measure in MEASURES else _latency(measure, spec)
    if between is not None:
        return _between_limits(trade, between)
    if trade.dimension not in ("count", "power"):
        return trade
    found = today()
    if found is None:
        raise TradeError("no fleet meets the spec as it is; give a range with --between")
    if trade.dimension == "count":
        return replace(trade, loosest=TIMES_LOOSER * found.gpus)
    return replace(trade, tightest=found.power_w / TIMES_LOOSER, loosest=found.power_w * TIMES_LOOSER)


def _between_limits(trade: Trade, text: str) -> Trade:
    try:
        limits = [parse_quantity(end.strip(), trade.dimension) for end in text.split("..")]
    except UnitError as error:
        raise RangeError(f"{text}: {error.message}; {error.hint}") from None
    if len(limits) != 2 or min(limits) <= 0.0 or limits[0] == limits[1]:
        raise RangeError(f"`{text}` is no range; write two limits, such as `{_EXAMPLES[trade.dimension]}`")
    if trade.dimension == "count" and not all(limit.is_integer() for limit in limits):
        raise RangeError(f"`{text}`: a number of GPUs is a whole number")
    tightest, loosest = sorted(limits, reverse=trade.tightest > trade.loosest)
    return replace(trade, tightest=tightest, loosest=loosest)


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


def _size(measure: str, base: Base) -> Trade:
    """Return a trade of another kind. Where its range starts from today's fleet, that is filled in later."""
    if measure == "confidence":
        return Trade("cost against confidence", "planning.confidence", "share", 0.99, 0.5, lambda x: f"{100 * x:.6g} %")
    if measure == "power":
        return Trade("cost against power", "supply.limits.power", "power", 1.0, 1.0, lambda w: f"{w:.6g} W")
    data = base.loaded.document.data if base.loaded.document is not None else {}
    rules = (data.get("supply", {}).get("limits") or {}).get("rules") or []

    def text_of(gpus: float) -> str:
        return json.dumps([*rules, {"match": {}, "gpus": int(gpus)}], ensure_ascii=False)

    return Trade("cost against GPUs", "supply.limits.rules", "count", 1.0, 1.0, text_of)
