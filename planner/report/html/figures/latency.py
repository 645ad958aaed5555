"""Predicted percentiles against the load of every pool, with their limits and the planned load."""

from __future__ import annotations

import math
from functools import partial

from matplotlib.axes import Axes

from planner.plan.schema import Plan
from planner.report import figures
from planner.report.content import Table, numbers
from planner.report.html.svg import MUTED, SERIES, Figure, draw, legend, named, short
from planner.report.sections.workloads import metric_name
from planner.study import LimitCurve, PoolCurves, Study

MOST_POOLS = 16
SHOWN_ABOVE_LIMIT = 1.6
"""Multiple of the largest limit at which a chart ends."""
_NOTE = (
    "All traffic of the pool at its planned mix, headroom included; times with the confidence factor, as in the plan."
)
_SCALES = ((1.0, "s"), (1e-3, "ms"))


def latency(plan: Plan, study: Study) -> list[Figure]:
    """Return one chart for each metric of the costliest pools that have limits."""
    order = sorted(plan.pools, key=lambda p: (-p.usd_per_hour, p.name))
    ranks = {p.name: i for i, p in enumerate(order)}
    drawn = sorted(study.curves, key=lambda c: ranks[c.pool])[:MOST_POOLS]
    return [
        _figure(number, pool, metric)
        for number, pool in enumerate(sorted(drawn, key=lambda c: c.pool), 1)
        for metric in sorted({_metric(c) for c in pool.curves}, reverse=True)
    ]


def not_drawn(study: Study) -> int:
    """Return how many pools have curves but no chart."""
    return max(0, len(study.curves) - MOST_POOLS)


def _metric(curve: LimitCurve) -> str:
    return curve.metric.partition("_")[0]


def _figure(number: int, pool: PoolCurves, metric: str) -> Figure:
    own = [c for c in pool.curves if _metric(c) == metric]
    name = f"latency-{number}-{metric}"
    title = f"{metric.upper()} of pool {figures.visible(pool.pool)} against load"
    return Figure(name, title, draw(name, title, partial(_paint, pool=pool, curves=own)), _data(pool, own, title))


def _paint(axes: Axes, pool: PoolCurves, curves: list[LimitCurve]) -> None:
    top = SHOWN_ABOVE_LIMIT * max(c.limit_s for c in curves)
    scale, unit = next(each for each in _SCALES if top >= each[0] or each is _SCALES[-1])
    at = pool.rates.index(pool.planned)
    for i, curve in enumerate(curves):
        color = SERIES[i % len(SERIES)]
        label = f"{short(curve.workload, 20)} {metric_name(curve.metric)}"
        axes.plot(
            pool.rates, [math.nan if s is None else s / scale for s in curve.seconds], color=color, label=named(label)
        )
        axes.axhline(curve.limit_s / scale, color=color, linestyle=(0, (5, 3)), linewidth=1.0)
        limit = f"limit {figures.seconds(curve.limit_s)}"
        axes.annotate(limit, (0.0, curve.limit_s / scale), (2, 2), textcoords="offset points", fontsize=8)
        planned = curve.seconds[at]
        if planned is not None:
            axes.plot([pool.planned], [planned / scale], "o", color=color, markersize=5)
    axes.axvline(pool.planned, color=MUTED, linewidth=0.8)
    axes.annotate("planned", (pool.planned, top / scale), (3, -9), textcoords="offset points", fontsize=8)
    axes.set_xlim(0.0, max(pool.rates))
    axes.set_ylim(0.0, top / scale)
    axes.set_xlabel("req/s of the pool")
    axes.set_ylabel(unit)
    legend(axes, 2)


def _data(pool: PoolCurves, curves: list[LimitCurve], title: str) -> Table:
    columns = numbers("req/s", *(f"{figures.visible(c.workload)} {metric_name(c.metric)}" for c in curves))
    rows = tuple(
        (figures.number(rate), *("-" if (s := c.seconds[i]) is None else figures.seconds(s) for c in curves))
        for i, rate in enumerate(pool.rates)
    )
    limits = ", ".join(
        f"{figures.visible(c.workload)} {metric_name(c.metric)} {figures.seconds(c.limit_s)}" for c in curves
    )
    return Table(title, columns, rows, (f"Planned: {figures.number(pool.planned)} req/s. Limits: {limits}.", _NOTE))
