"""What a growing fleet costs in each month of its horizon: terms that run, and everything else."""

from __future__ import annotations

from functools import partial

from matplotlib.axes import Axes

from planner.plan.schema import GrowthPlan, Plan
from planner.report import figures
from planner.report.content import Table, numbers, texts
from planner.report.html.svg import SERIES, Figure, draw, legend

_TITLE = "Cost by month, $/month"
_TERMS, _REST = "terms bought in these months", "all else"
_MOST_TICKS = 12


def ahead(plan: Plan) -> list[Figure]:
    """Return the chart of the cost by month; nothing where demand does not grow."""
    if plan.growth is None:
        return []
    svg = draw("ahead-cost", _TITLE, partial(_paint, growth=plan.growth))
    return [Figure("ahead-cost", _TITLE, svg, _data(plan.growth))]


def _of_terms(growth: GrowthPlan) -> list[float]:
    """Return what the terms that run in each step cost by the month."""
    return [
        sum(p.usd_per_month for p in growth.purchases if p.first_month <= s.first_month and p.until > s.due)
        for s in growth.steps
    ]


def _paint(axes: Axes, growth: GrowthPlan) -> None:
    edges = [*(step.first_month for step in growth.steps), growth.horizon_months + 1]
    terms, total = _of_terms(growth), [step.usd_per_month for step in growth.steps]
    axes.stairs(terms, edges, fill=True, color=SERIES[0], label=_TERMS, alpha=0.85)
    axes.stairs(total, edges, baseline=terms, fill=True, color=SERIES[1], label=_REST, alpha=0.85)
    axes.set_xlim(edges[0], edges[-1])
    axes.set_ylim(0.0, max(total) * 1.08)
    axes.set_xticks(edges[:: max(1, len(edges) // _MOST_TICKS)])
    axes.set_xlabel("start of month")
    axes.set_ylabel("$/month")
    legend(axes, 2)


def _data(growth: GrowthPlan) -> Table:
    rows = tuple(
        (
            str(s.first_month),
            s.due,
            figures.amount(s.usd_per_month),
            figures.amount(terms),
            f"{sum(s.nodes.values()):,}",
        )
        for s, terms in zip(growth.steps, _of_terms(growth), strict=True)
    )
    return Table(_TITLE, texts("From month", "Due") + numbers("$/month", "Of it terms", "Nodes"), rows)
