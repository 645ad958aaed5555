"""The periods that hours are planned in: what each asks for and costs, and what runs in it."""

from __future__ import annotations

from collections.abc import Mapping

from planner.plan.schema import Plan
from planner.report import figures
from planner.report.content import Block, Table, numbers, texts

_MOST_DEMANDS = 4
_NOTE = "Each period is planned at the highest hour that it holds. Nodes bought for a year or more are paid for in all of them."


def periods(plan: Plan) -> Block | None:
    """Return the periods of a fleet for hourly demand, one a row."""
    if plan.demand_by_period is None:
        return None
    rows = []
    for period in plan.periods:
        counts = {n.offer: n.nodes_by_period[period.name] for n in plan.nodes}
        cost = sum(n.usd_per_node_hour * counts[n.offer] for n in plan.nodes)
        gpus = sum(n.gpus_per_node * counts[n.offer] for n in plan.nodes)
        rows.append(
            (
                figures.visible(period.name),
                figures.number(period.hours_per_month),
                figures.amount(cost),
                f"{sum(counts.values()):,}",
                f"{gpus:,}",
                _demand(plan.demand_by_period[period.name]),
            )
        )
    columns = texts("Period") + numbers("Hours/month", "$/h", "Nodes", "GPUs") + texts("Demand in req/s")
    return Table("Periods", columns, tuple(rows), (_NOTE,))


def _demand(rates: Mapping[str, float]) -> str:
    named = (f"{figures.visible(name)} {figures.number(rate)}" for name, rate in sorted(rates.items()))
    return figures.listed(named, _MOST_DEMANDS)


def by_period(plan: Plan) -> Block | None:
    """Return nodes by offer and replicas by pool in each period."""
    if plan.demand_by_period is None:
        return None
    names = [p.name for p in plan.periods]
    nodes = [(f"nodes of {n.offer}", n.nodes_by_period) for n in plan.nodes]
    replicas = [(f"replicas of {p.name}", p.replicas_by_period) for p in plan.pools]
    rows = tuple(
        (figures.visible(what), *(f"{counts[name]:,}" for name in names)) for what, counts in (*nodes, *replicas)
    )
    return Table("By period", texts("Count") + numbers(*(figures.visible(name) for name in names)), rows)
