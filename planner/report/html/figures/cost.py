"""What the money goes to: by pool, by model and by provider."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial

from planner.plan.schema import Plan
from planner.report import figures
from planner.report.content import Table, numbers, texts
from planner.report.html.svg import INCHES, Figure, bars, draw

IDLE = "idle nodes"
OTHERS = "others"
MOST_BARS = 24
_LEAST_IDLE = 1e-6
_BAR_INCHES = 0.27
_IN_PERIODS = "Means over all hours."


def cost(plan: Plan) -> list[Figure]:
    """Return the charts of the cost in USD/h; what no pool lies on is named idle."""
    if plan.objective is None or not plan.pools:
        return []
    by_pool = _summed((p.name, p.usd_per_hour) for p in plan.pools)
    by_model = _summed((p.model, p.usd_per_hour) for p in plan.pools)
    by_provider = _summed((n.provider, n.usd_per_hour) for n in plan.nodes)
    idle = plan.objective.usd_per_hour - sum(by_pool.values())
    if idle > _LEAST_IDLE * plan.objective.usd_per_hour:
        by_pool[IDLE] = by_model[IDLE] = idle
    parts = (("pool", by_pool), ("model", by_model), ("provider", by_provider))
    return [_figure(what, shares, plan) for what, shares in parts]


def _summed(amounts: Iterable[tuple[str, float]]) -> dict[str, float]:
    found: dict[str, float] = {}
    for name, amount in amounts:
        found[name] = found.get(name, 0.0) + amount
    return found


def _figure(what: str, amounts: Mapping[str, float], plan: Plan) -> Figure:
    ranked = sorted(amounts.items(), key=lambda item: (-item[1], item[0]))
    shown = dict(ranked[:MOST_BARS])
    if len(ranked) > MOST_BARS:
        shown[OTHERS] = sum(amount for _, amount in ranked[MOST_BARS:])
    total = sum(amounts.values())
    title = f"Cost by {what}, $/h"
    size = (INCHES[0], 0.5 + _BAR_INCHES * len(shown))
    svg = draw(
        f"cost-{what}",
        title,
        partial(bars, names=list(shown), values=list(shown.values()), label=figures.amount),
        size,
    )
    rows = tuple((figures.visible(n), figures.amount(v), figures.share(v / total) if total else "-") for n, v in ranked)
    notes = () if plan.demand_by_period is None else (_IN_PERIODS,)
    return Figure(f"cost-{what}", title, svg, Table(title, texts(what.title()) + numbers("$/h", "Share"), rows, notes))
