"""The limit on power and the rules on selected nodes, as limits that can be dropped and raised."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace

from planner.explain.change import Place, with_value
from planner.explain.limit import LEAST_SHARE, Limit, fine_step, per_cent, usd_per_month
from planner.plan.schema import Plan
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
    place: Place = ("supply", "limits", "power_w")

    def needed(p: FleetProblem, found: Solution) -> list[float]:
        drawn = _total({o.name: o.power_w for o in p.offers}, found)
        return [most_w] if drawn <= most_w else [float(math.ceil(drawn)), float(math.ceil(drawn * ROOM))]

    return Limit(
        place,
        most_w,
        needed,
        lambda s, value: with_value(s, place, value),
        lambda value: f"{value / W_PER_KW:g} kW",
        lambda p: replace(p, max_power_w=None),
        step=fine_step(most_w),
    )


def _quota(spec: FleetSpec, quota: Quota) -> Limit:
    number = int(quota.key.rpartition(".")[2])
    rule, hours = spec.supply.limits.rules[number], spec.planning.hours_per_month
    place: Place = ("supply", "limits", "rules", number, rule.measure)
    is_money = rule.measure == "usd_per_month"

    def needed(p: FleetProblem, found: Solution) -> list[float]:
        amounts = next(q.amounts for q in p.quotas if q.key == quota.key)
        taken = _total(amounts, found) * (hours if is_money else 1.0)
        return [rule.most] if taken <= rule.most else [float(math.ceil(taken)), float(math.ceil(taken * ROOM))]

    def planned(plan: Plan) -> float:
        return float(math.ceil(sum(n.usd_per_hour for n in plan.nodes if n.offer in quota.amounts) * hours))

    return Limit(
        place,
        rule.most,
        needed,
        lambda s, value: with_value(s, place, value if is_money else int(value)),
        usd_per_month if is_money else lambda value: f"{value:.0f}",
        lambda p: replace(p, quotas=tuple(q for q in p.quotas if q.key != quota.key)),
        step=fine_step(rule.most) if is_money else 1.0,
        planned=planned if is_money else None,
    )


def _cost_share(limit: CostShare) -> Limit:
    place: Place = ("supply", "limits", "rules", int(limit.key.rpartition(".")[2]), "share")

    def needed(p: FleetProblem, found: Solution) -> list[float]:
        offers = next(each.offers for each in p.cost_shares if each.key == limit.key)
        prices = {o.name: o.usd_per_node_h for o in p.offers}
        whole = _total(prices, found)
        share = _total({n: price for n, price in prices.items() if n in offers}, found) / whole if whole > 0.0 else 0.0
        return [limit.share] if share <= limit.share else [math.ceil(SHARE_STEPS * share) / SHARE_STEPS, 1.0]

    return Limit(
        place,
        limit.share,
        needed,
        lambda s, value: with_value(s, place, value),
        per_cent,
        lambda p: replace(p, cost_shares=tuple(each for each in p.cost_shares if each.key != limit.key)),
        step=LEAST_SHARE,
    )
