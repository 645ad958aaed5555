"""The months ahead of a growing fleet: when each step is due, what it costs, and what to commit to when."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from planner.plan.schema import GrowthPlan, GrowthStep, Plan
from planner.report import figures
from planner.report.content import Block, Table, numbers, texts

_MOST_CHANGES = 4
_MOST_DEMANDS = 4
_TODAY = "The plan above is that of the first step. Later ones are for the demand that the spec foresees: plan anew before you buy for them."
_NOTHING = "No node of a long term is worth buying in these months at these prices."


def growth_lines(growth: GrowthPlan) -> Iterator[str]:
    """Yield what a growing fleet costs over its horizon, for the head of a report."""
    first, last = growth.steps[0], growth.steps[-1]
    bound = "" if growth.bound_usd is None else f", at least {figures.usd(growth.bound_usd)} for any"
    yield f"Over {growth.horizon_months} months of growth this fleet and those that follow it cost {figures.usd(growth.usd)}{bound}."
    if len(growth.steps) > 1:
        yield f"It grows from {figures.usd(first.usd_per_month)} to {figures.usd(last.usd_per_month)} per month."
    now = sum(p.nodes for p in growth.purchases if p.first_month == 1)
    if growth.purchases:
        later = sum(p.nodes for p in growth.purchases) - now
        yield f"Commit to {figures.count(now, 'node')} now and {later:,} later; {figures.usd(growth.usd_after_horizon)} of that is due after the horizon."


def growth_steps(plan: Plan) -> Block | None:
    """Return the steps of a growing fleet, those that change nothing together with the one before."""
    if plan.growth is None:
        return None
    rows, steps = [], plan.growth.steps
    for number, step in enumerate(steps):
        if number and _same(steps[number - 1], step):
            continue
        until = next((i for i in range(number + 1, len(steps)) if not _same(steps[i - 1], steps[i])), len(steps))
        rows.append(_row(step, steps[until - 1]))
    columns = (
        texts("Month", "Due") + numbers("$/month", "Nodes") + texts("Change of nodes", "Demand in req/s at its end")
    )
    return Table("Growth", columns, tuple(rows), (_TODAY,))


def _same(before: GrowthStep, step: GrowthStep) -> bool:
    replicas = [{(p.model, p.shape): p.replicas for p in each.pools} for each in (before, step)]
    return not step.change and replicas[0] == replicas[1]


def _row(first: GrowthStep, last: GrowthStep) -> tuple[str, ...]:
    end = last.first_month + last.months - 1
    return (
        str(first.first_month) if first.first_month == end else f"{first.first_month}-{end}",
        first.due,
        figures.amount(first.usd_per_month),
        f"{sum(first.nodes.values()):,}",
        _change(first),
        _demand(last.requests_per_s),
    )


def _change(step: GrowthStep) -> str:
    named = [f"{count:+,} {figures.visible(offer)}" for offer, count in sorted(step.change.items())]
    return figures.listed(named, _MOST_CHANGES) if named else "none: only replicas change"


def _demand(rates: Mapping[str, float]) -> str:
    named = (f"{figures.visible(name)} {figures.number(rate)}" for name, rate in sorted(rates.items()))
    return figures.listed(named, _MOST_DEMANDS)


def purchases(plan: Plan) -> Block | None:
    """Return the nodes of long terms that a growing fleet buys, those to buy first first."""
    if plan.growth is None:
        return None
    rows = tuple(
        (
            "now" if p.first_month == 1 else f"month {p.first_month}",
            p.due,
            figures.visible(p.offer),
            f"{p.nodes:,}",
            p.until,
            figures.amount(p.usd_per_month),
            figures.amount(p.usd_after_horizon),
        )
        for p in plan.growth.purchases
    )
    columns = (
        texts("When", "Due", "Offer") + numbers("Nodes") + texts("Until") + numbers("$/month", "$ after the horizon")
    )
    return Table("Commitments to make", columns, rows, () if rows else (_NOTHING,))
