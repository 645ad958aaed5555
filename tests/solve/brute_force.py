"""The cheapest fleet of a tiny problem, by trying every number of replicas and nodes.

Nothing here comes from the program: demand is checked in closed form (below), replicas are packed by search, and rules are
read off the problem. Only `row_needs`, the physics of a replica, is shared.

A model with two workloads is carried when the demand lies in the sum of its replicas' capacity regions. These are convex and
hold every smaller demand, so it is enough to compare support functions in the directions of all their edges.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import combinations, product

import numpy as np
from loss_oracle import withstands
from numpy.typing import NDArray
from scipy.optimize import linprog

from planner.program.data import Column, Demand, FleetProblem, ModelRules
from planner.program.fleet import node_cost
from planner.program.index import row_needs

Floats = NDArray[np.float64]
Counts = tuple[int, ...]
Bin = tuple[str, int]
Piece = tuple[int, int, tuple[str, ...]]

EPSILON = 1e-7
MARGIN = 1  # tries this many replicas more than any plan can need


def cheapest(problem: FleetProblem) -> float | None:
    """Return the least cost of any fleet that meets the problem, in the unit of its objective, or None."""
    combinations_ = list(replica_choices(problem))
    if not combinations_:
        return None
    best = math.inf
    penalty = {c.name: c.penalty for c in problem.columns}
    extras = sorted((sum(penalty[c] * n for c, n in choice.items()), i) for i, choice in enumerate(combinations_))
    for cost, nodes in sorted(node_choices(problem, max(sum(c.values()) for c in combinations_))):
        if cost + extras[0][0] >= best:
            break
        fitting = (extra for extra, i in extras if fits(problem, combinations_[i], dict(nodes)))
        best = min(best, cost + next(fitting, math.inf))
    return best if best < math.inf else None


def replica_choices(problem: FleetProblem) -> Iterator[dict[str, int]]:
    """Yield the fleets, as replicas by candidate, that carry the demand by every rule and need no replica less.

    Where a share of the cost is limited, more replicas may be what nodes are bought for: then all fleets are tried.
    """
    by_model = [minimal_choices(problem, rule) for rule in problem.rules]
    gpus = {c.name: c.gpu for c in problem.columns}
    for parts in product(*by_model):
        choice = {name: n for part in parts for name, n in part.items() if n > 0}
        types = {gpus[name] for name in choice}
        if problem.max_gpu_types is None or len(types) <= problem.max_gpu_types:
            yield choice


def minimal_choices(problem: FleetProblem, rule: ModelRules) -> list[dict[str, int]]:
    """Return the choices of one model from which no replica can be taken away for another valid choice."""
    columns = problem.columns_of(rule.model)
    most = [most_replicas(problem, rule, c) for c in columns]
    counts = np.array(list(product(*(range(n + 1) for n in most))), dtype=int)
    counts = counts[np.argsort(counts.sum(axis=1), kind="stable")]
    kept: list[NDArray[np.int_]] = []
    for row in counts[valid(problem, rule, counts)]:
        needed = problem.cost_shares or not any((smaller <= row).all() for smaller in kept)
        if needed and holds(problem, rule, dict(zip((c.name for c in columns), row.tolist(), strict=True))):
            kept.append(row)
    return [dict(zip((c.name for c in columns), row.tolist(), strict=True)) for row in kept]


def holds(problem: FleetProblem, rule: ModelRules, replicas: Mapping[str, int]) -> bool:
    """Tell whether a choice keeps what only a linear program can tell: mixes, shares of spot nodes, and the loss of zones."""
    if not mixes_add_up(problem, rule, replicas):
        return False
    if not problem.outages and not any(c.spot for c in problem.columns):
        return True
    return withstands(problem, rule, replicas)


def mixes_add_up(problem: FleetProblem, rule: ModelRules, replicas: Mapping[str, int]) -> bool:
    """Tell whether the demand is a sum of what pools bear, each workload by itself or all at the mix of a rating."""
    used = [c for c in problem.columns_of(rule.model) if replicas.get(c.name, 0) > 0]
    if all(s.mix_share is None for c in used for s in c.services.values()):
        return True
    due = {d.workload: d.planned_requests_per_s for d in problem.demands_of(rule.model)}
    flows: list[tuple[Column, dict[str, float]]] = []
    for column in used:
        shares = {w: s.mix_share for w, s in column.services.items() if s.mix_share is not None}
        flows += [(column, shares)] if shares else [(column, {w: 1.0}) for w in column.services]
    capacity = [
        [sum(x * row_needs(c, c.services[w])[k] for w, x in flow.items()) if c is column else 0.0 for c, flow in flows]
        for column in used
        for k in range(5)
    ]
    room = [replicas[c.name] * (1.0 + EPSILON) for c in used for _ in range(5)]
    served = [[flow.get(w, 0.0) for _, flow in flows] for w in due]
    found = linprog([0.0] * len(flows), A_ub=capacity, b_ub=room, A_eq=served, b_eq=list(due.values()))
    return bool(found.status == 0)


def most_replicas(problem: FleetProblem, rule: ModelRules, column: Column) -> int:
    due = {d.workload: d.planned_requests_per_s for d in problem.demands_of(rule.model)}
    alone = sum(due[w] * max(row_needs(column, s)) for w, s in column.services.items())
    margin = 0 if problem.cost_shares else MARGIN
    spares = max(rule.spare_replicas, column.node_replicas)
    return max(math.ceil(alone - EPSILON) + spares, column.min_replicas, rule.min_replicas) + margin


def valid(problem: FleetProblem, rule: ModelRules, counts: NDArray[np.int_]) -> NDArray[np.bool_]:
    """Tell which rows of counts, replicas by candidate of one model, carry its demand by every rule of the model."""
    columns, demands = problem.columns_of(rule.model), problem.demands_of(rule.model)
    used = counts > 0
    fine = carries(columns, demands, counts, headroom=True) & (counts.sum(axis=1) >= rule.min_replicas)
    fine &= (~used | (counts >= [c.min_replicas for c in columns])).all(axis=1)
    fine &= distinct([c.shape for c in columns], used) <= rule.max_shapes
    if rule.uniform_format:
        fine &= distinct([c.weights for c in columns], used) <= 1
        fine &= distinct([c.kv_cache for c in columns], used) <= 1
    for lost, column in enumerate(columns):
        spares = max(rule.spare_replicas, column.node_replicas)
        if spares == 0:
            continue
        left = counts.copy()
        left[:, lost] = np.maximum(left[:, lost] - spares, 0)
        fine &= ~used[:, lost] | carries(columns, demands, left, headroom=False)
    return np.asarray(fine)


def distinct(labels: Sequence[str], used: NDArray[np.bool_]) -> NDArray[np.int_]:
    """Count, for every row, the different labels of the candidates in use."""
    groups = [[i for i, label in enumerate(labels) if label == one] for one in sorted(set(labels))]
    return np.asarray(sum(used[:, group].any(axis=1).astype(int) for group in groups))


def carries(
    columns: Sequence[Column], demands: Sequence[Demand], counts: NDArray[np.int_], headroom: bool
) -> NDArray[np.bool_]:
    """Tell which rows of counts carry the demand of one or two workloads."""
    workloads = [d.workload for d in demands]
    due = np.array([d.planned_requests_per_s if headroom else d.requests_per_s for d in demands])
    regions = [corners(needs(c, workloads)) for c in columns]
    edges = np.concatenate([np.eye(len(workloads)), *(needs(c, workloads) for c in columns)])
    edges = np.where(np.isfinite(edges), edges, 0.0)
    support = np.array([(corner @ edges.T).max(axis=0) for corner in regions])
    return np.asarray((counts @ support >= edges @ due * (1.0 - EPSILON)).all(axis=1))


def needs(column: Column, workloads: Sequence[str]) -> Floats:
    """Return replicas needed per request/s, [row, workload], infinite for a workload that is not served."""
    served = [column.services.get(w) for w in workloads]
    return np.array([row_needs(column, s) if s else (np.inf,) * 5 for s in served]).T


def corners(rows: Floats) -> Floats:
    """Return the corner points of {x >= 0: rows x <= 1}, in one or two dimensions."""
    able = np.isfinite(rows).all(axis=0)
    alone = [np.where(np.arange(able.size) == i, 1.0 / rows[:, i].max(), 0.0) for i in np.flatnonzero(able)]
    points = [np.zeros(able.size), *alone]
    if able.size == 2 and able.all():
        for pair in combinations(range(len(rows)), 2):
            both = rows[list(pair)]
            if abs(np.linalg.det(both)) > 1e-12:
                point = np.linalg.solve(both, np.ones(2))
                if (point >= 0.0).all() and (rows @ point <= 1.0 + 1e-9).all():
                    points.append(point)
    return np.array(points)


def node_choices(problem: FleetProblem, most: int) -> Iterator[tuple[float, tuple[tuple[str, int], ...]]]:
    """Yield every choice of nodes within stock, limits and budget with its cost; `most` replicas bound its size."""
    span = max(c.nodes_spanned for c in problem.columns)
    free = [o for o in problem.offers if o.reserved == ""]
    reserved = sorted({o.reserved for o in problem.offers if o.reserved})
    copies = {name: [o for o in problem.offers if o.reserved == name] for name in reserved}
    groups = [*([o] for o in free), *copies.values()]
    stock = {s.entry: s for s in problem.stock}
    ranges = []
    for offer, *_ in groups:
        entry = stock.get(offer.entry)
        enough = most * span + (entry.committed if entry else 0)
        ranges.append(range(min(enough, entry.available if entry and entry.available is not None else enough) + 1))
    for counts in product(*ranges):
        nodes = {o.name: n for group, n in zip(groups, counts, strict=True) for o in group}
        if allowed(problem, nodes):
            yield sum(node_cost(problem, o) * nodes[o.name] for o in problem.offers), tuple(nodes.items())


def allowed(problem: FleetProblem, nodes: Mapping[str, int]) -> bool:
    """Tell whether a choice of nodes keeps stock, commitments, GPU limits, rules, power and budget.

    Limits on GPUs and power hold in every period; nodes that are reserved are the same in all.
    """
    for name in {o.reserved for o in problem.offers} - {""}:
        if len({nodes.get(o.name, 0) for o in problem.offers if o.reserved == name}) > 1:
            return False
    for name in {o.reserved.rpartition("@")[0] for o in problem.offers if o.term_steps}:
        own = sorted((o for o in problem.offers if o.reserved.rpartition("@")[0] == name), key=lambda o: o.step)
        bought: list[int] = []
        for o in own:
            running = sum(bought[max(0, len(bought) - o.term_steps + 1) :]) if o.term_steps > 1 else 0
            bought.append(nodes.get(o.name, 0) - running)
        if min(bought) < 0:
            return False
    for stock in problem.stock:
        count = sum(nodes.get(o.name, 0) for o in problem.offers if o.entry == stock.entry)
        if count < stock.committed or (stock.available is not None and count > stock.available):
            return False
    periods = sorted({o.period for o in problem.offers})
    for period, (gpu, limit) in product(periods, problem.gpu_limits.items()):
        own = [o for o in problem.offers if (o.gpu, o.period) == (gpu, period)]
        if sum(o.gpus_per_node * nodes.get(o.name, 0) for o in own) > limit:
            return False
    cost = {o.name: o.usd_per_node_h * nodes.get(o.name, 0) for o in problem.offers}
    for quota in problem.quotas:
        if sum(amount * nodes.get(name, 0) for name, amount in quota.amounts.items()) > quota.most * (1.0 + EPSILON):
            return False
    for limit in problem.cost_shares:
        if sum(cost[name] for name in limit.offers) > limit.share * sum(cost.values()) * (1.0 + EPSILON):
            return False
    for period in periods:
        power_w = sum(o.power_w * nodes.get(o.name, 0) for o in problem.offers if o.period == period)
        if problem.max_power_w is not None and power_w > problem.max_power_w:
            return False
    if problem.budget_usd_per_h is None:
        return True
    steps = sorted({(o.step, o.share) for o in problem.offers}) if any(o.step for o in problem.offers) else [("", 1.0)]
    for step, share in steps:
        own_cost = sum(cost[o.name] for o in problem.offers if o.step == step or not step)
        if own_cost > problem.budget_usd_per_h * share * (1.0 + EPSILON):
            return False
    return True


def fits(problem: FleetProblem, replicas: Mapping[str, int], nodes: Mapping[str, int]) -> bool:
    """Tell whether the replicas can be placed on the nodes."""
    columns = {c.name: c for c in problem.columns}
    pieces = [
        (c.node_gpus, c.nodes_spanned, cells)
        for c in columns.values()
        for cells in c.places
        for _ in range(replicas.get(c.name, 0))
    ]
    bins = [(o.cell, o.gpus_per_node) for o in problem.offers for _ in range(nodes.get(o.name, 0))]
    if sum(gpus * span for gpus, span, _ in pieces) > sum(gpus for _, gpus in bins):
        return False
    idle = sum(s.committed for s in problem.stock)
    if problem.cost_shares and sum(span for _, span, _ in pieces) + idle < len(bins):
        return False
    return packs(tuple(sorted(pieces, key=lambda p: (-p[0] * p[1], p))), tuple(sorted(bins)))


@cache
def packs(pieces: tuple[Piece, ...], bins: tuple[Bin, ...]) -> bool:
    """Tell whether the pieces, largest first, can be placed; bins are (cell, free GPUs)."""
    if not pieces:
        return True
    (gpus, span, cells), rest = pieces[0], pieces[1:]
    for cell in cells:
        able = sorted({b for b in bins if b[0] == cell and b[1] >= gpus})
        for chosen in able:
            if bins.count(chosen) >= span and packs(rest, without(bins, chosen, span, gpus)):
                return True
    return False


def without(bins: tuple[Bin, ...], chosen: Bin, span: int, gpus: int) -> tuple[Bin, ...]:
    left = list(bins)
    for _ in range(span):
        left.remove(chosen)
        left.append((chosen[0], chosen[1] - gpus))
    return tuple(sorted(left))
