"""Demand over the hours of a day or a week, against the nodes that are paid for in each."""

from __future__ import annotations

from functools import partial

from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from planner.candidates.hours import Hours
from planner.plan.schema import NodePlan, Plan
from planner.report import figures
from planner.report.content import Table, numbers, texts
from planner.report.html.svg import SERIES, Figure, draw, legend, named, short
from planner.study import Study

MOST_DRAWN = len(SERIES)
RESERVED, ON_DEMAND, SPOT = "reserved or owned", "on demand", "spot"
KINDS = (RESERVED, ON_DEMAND, SPOT)
_DEMAND = "Demand by hour, share of the highest hour"
_NODES = "Nodes by hour"


def hours(plan: Plan, study: Study) -> list[Figure]:
    """Return the charts of demand and nodes by hour; nothing where no demand is hourly, or there is no fleet."""
    if study.hours is None or not plan.pools:
        return []
    demand = draw("hours-demand", _DEMAND, partial(_paint_demand, hours=study.hours))
    nodes = draw("hours-nodes", _NODES, partial(_paint_nodes, counts=_counts(plan, study.hours)))
    return [
        Figure("hours-demand", _DEMAND, demand, _demand_data(study.hours)),
        Figure("hours-nodes", _NODES, nodes, _nodes_data(plan, study.hours)),
    ]


def kind_of(node: NodePlan, plan: Plan) -> str:
    """Return how nodes are paid for: in all hours, by the hour, or as spot."""
    if node.term == "spot":
        return SPOT
    return RESERVED if any(c.offer == node.offer for c in plan.commitments) else ON_DEMAND


def _counts(plan: Plan, by_hour: Hours) -> dict[str, list[int]]:
    """Return the nodes of each kind in every hour."""
    own = {kind: [n for n in plan.nodes if kind_of(n, plan) == kind] for kind in KINDS}
    return {
        kind: [sum(n.nodes_by_period[period] for n in nodes) for period in by_hour.periods]
        for kind, nodes in own.items()
        if nodes
    }


def _paint_demand(axes: Axes, hours: Hours) -> None:
    edges = list(range(len(hours.periods) + 1))
    for i, (name, rates) in enumerate(_drawn(hours)):
        shares = [rate / max(rates) for rate in rates]
        axes.stairs(shares, edges, baseline=None, color=SERIES[i], label=named(short(name)))
    axes.set_ylim(0.0, 1.08)
    _hours_axis(axes, edges, "share of its highest hour")


def _drawn(hours: Hours) -> list[tuple[str, tuple[float, ...]]]:
    """Return the workloads that a chart has room for: those whose demand changes by the hour, the most requests first."""
    ranked = sorted(hours.requests_per_s.items(), key=lambda item: (len(set(item[1])) == 1, -sum(item[1]), item[0]))
    return sorted(ranked[:MOST_DRAWN])


def _paint_nodes(axes: Axes, counts: dict[str, list[int]]) -> None:
    edges = list(range(len(next(iter(counts.values()))) + 1))
    below = [0] * (len(edges) - 1)
    for i, (kind, values) in enumerate(counts.items()):
        above = [a + b for a, b in zip(below, values, strict=True)]
        axes.stairs(above, edges, baseline=below, fill=True, color=SERIES[i], label=kind, alpha=0.85)
        below = above
    axes.set_ylim(0.0, max(below) * 1.08)
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    _hours_axis(axes, edges, "nodes")


def _hours_axis(axes: Axes, edges: list[int], label: str) -> None:
    axes.set_xlim(edges[0], edges[-1])
    axes.set_xticks(edges[:: (len(edges) - 1) // 8])
    axes.set_xlabel("hour")
    axes.set_ylabel(label)
    legend(axes, 3)


def _demand_data(by_hour: Hours) -> Table:
    columns = numbers("Hour") + texts("Period") + numbers(*(figures.visible(name) for name in by_hour.requests_per_s))
    rows = tuple(
        (f"{hour}", figures.visible(period), *(figures.number(r[hour]) for r in by_hour.requests_per_s.values()))
        for hour, period in enumerate(by_hour.periods)
    )
    left = len(by_hour.requests_per_s) - MOST_DRAWN
    notes = (f"Of {left} workloads with fewer requests the chart has no line.",) if left > 0 else ()
    return Table("Demand by hour, req/s", columns, rows, notes)


def _nodes_data(plan: Plan, by_hour: Hours) -> Table:
    counts = _counts(plan, by_hour)
    rows = tuple(
        (f"{hour}", figures.visible(period), *(f"{values[hour]:,}" for values in counts.values()))
        for hour, period in enumerate(by_hour.periods)
    )
    return Table(_NODES, numbers("Hour") + texts("Period") + numbers(*counts), rows)
