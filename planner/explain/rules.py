"""The limit on power and the rules on selected nodes, as limits that can be dropped and raised."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace

from planner.explain.change import with_value
from planner.explain.limit import Limit, usd_per_month
from planner.program.data import CostShare, FleetProblem, Quota
from planner.solve.outcome import Solution
from planner.spec import FleetSpec

W_PER_KW = 1000.0
ROOM = 1.02  # where the exact sum leaves no fleet
SHARE_STEPS = 100.0  # shares of the cost are raised to whole per cent


def rule_limits(spec: FleetSpec, problem: FleetProblem) -> Iterator[Limit]:
    """Yield the limits on power and of `supply.limits.rules`, each in the unit that the spec gives it in."""
    if problem.max_power_w is not None:
        yield _power(problem.max_power_w)
    for quota in problem.quotas:
        yield _quota(spec, quota)
    for share in problem.cost_shares:
        yield _cost_share(share)


def _total(amounts: Mapping[str, float], found: Solution) -> float:
    return sum(amounts.get(name, 0.0) * count for name, count in found.nodes.items())


def _power(most_w: float) -> Limit:
    def needed(p: FleetProblem, found: Solution) -> list[float]:
        drawn = _total({o.name: o.power_w for o in p.offers}, found)
        return [most_w] if drawn <= most_w else [float(math.ceil(drawn)), float(math.ceil(drawn * ROOM))]

    return Limit(
        "supply.limits.power",
        most_w,
        lambda p: replace(p, max_power_w=None),
        needed,
        lambda s, value: with_value(s, ("supply", "limits", "power_w"), value),
        lambda value: f"{value / W_PER_KW:g} kW",
    )


def _quota(spec: FleetSpec, quota: Quota) -> Limit:
    number = int(quota.key.rpartition(".")[2])
    rule = spec.supply.limits.rules[number]
    scale = spec.planning.hours_per_month if rule.measure == "usd_per_month" else 1.0

    def needed(_problem: FleetProblem, found: Solution) -> list[float]:
        taken = _total(quota.amounts, found) * scale
        return [rule.most] if taken <= rule.most else [float(math.ceil(taken)), float(math.ceil(taken * ROOM))]

    def raised(s: FleetSpec, value: float) -> FleetSpec:
        written = value if rule.measure == "usd_per_month" else int(value)
        return with_value(s, ("supply", "limits", "rules", number, rule.measure), written)

    return Limit(
        f"{quota.key}.{rule.measure}",
        rule.most,
        lambda p: replace(p, quotas=tuple(q for q in p.quotas if q.key != quota.key)),
        needed,
        raised,
        usd_per_month if rule.measure == "usd_per_month" else lambda value: f"{value:.0f}",
    )


def _cost_share(limit: CostShare) -> Limit:
    number = int(limit.key.rpartition(".")[2])

    def needed(p: FleetProblem, found: Solution) -> list[float]:
        prices = {o.name: o.usd_per_node_h for o in p.offers}
        own = {name: price for name, price in prices.items() if name in limit.offers}
        whole = _total(prices, found)
        share = _total(own, found) / whole if whole > 0.0 else 0.0
        return [limit.share] if share <= limit.share else [math.ceil(SHARE_STEPS * share) / SHARE_STEPS, 1.0]

    return Limit(
        f"{limit.key}.share",
        limit.share,
        lambda p: replace(p, cost_shares=tuple(each for each in p.cost_shares if each.key != limit.key)),
        needed,
        lambda s, value: with_value(s, ("supply", "limits", "rules", number, "share"), value),
        lambda value: f"{100.0 * value:g} %",
    )
