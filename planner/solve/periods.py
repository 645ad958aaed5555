"""A bound on the cost of a fleet for several periods: what each of them costs at least by itself, at its part of the prices.

Nodes that are reserved for all periods cost a part of their price in each, so that the least costs of single periods add
up to no more than the cost of any fleet. Unlike prices per replica, this counts whole nodes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from planner.program.data import Column, FleetProblem

MONEY_UNIT = "USD/h"


def bound_by_period(problem: FleetProblem, least: Callable[[FleetProblem], float]) -> float:
    """Return the sum over periods of what `least` proves of each alone; 0 where there is only one."""
    periods = sorted({o.period for o in problem.offers})
    if len(periods) < 2:
        return 0.0
    return sum(least(_alone(problem, period)) for period in periods)


def _alone(problem: FleetProblem, period: str) -> FleetProblem:
    """Return the problem of one period, without the limits that are on all of them together."""
    offers = tuple(replace(o, reserved="", period="") for o in problem.offers if o.period == period)
    cells, entries = {o.cell for o in offers}, {o.entry for o in offers}
    columns = tuple(_placed_in(c, cells) for c in problem.columns if cells & set(c.cells))
    models = {c.model for c in columns}
    names = {o.name for o in offers}
    return replace(
        problem,
        columns=columns,
        demands=tuple(d for d in problem.demands if d.model in models),
        rules=tuple(r for r in problem.rules if r.model in models),
        offers=offers,
        stock=tuple(s for s in problem.stock if s.entry in entries),
        budget_usd_per_h=None,
        quotas=tuple(q for q in problem.quotas if q.unit != MONEY_UNIT and names & q.amounts.keys()),
        cost_shares=(),
        outages=tuple(o for o in problem.outages if o.model in models),
        losses=(),
        routed_outages=(),
        block_bounds=(),
        cover_weights=(),
    )


def _placed_in(column: Column, cells: set[str]) -> Column:
    """Return a candidate that lies in a period only; its penalty then counts in none, which keeps the sum a bound."""
    if not column.cells_by_period:
        return column
    own = tuple(cell for cell in column.cells if cell in cells)
    return replace(column, cells=own, cells_by_period=(), penalty=0.0)
