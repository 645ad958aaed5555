"""Two plans side by side: pools by model and shape, nodes by offer, workloads with their limits."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from planner.plan.pools import pool_shape
from planner.plan.schema import GrowthPlan, NodePlan, Plan, Pool, SloCheck, WorkloadPlan
from planner.review.difference import Kind, LimitChange, NodeChange, PoolChange, PoolSide, WorkloadChange

SAME_RTOL = 1e-9
PoolKey = tuple[str, str, bool]
"""Model, shape, and whether on spot nodes."""
Item = TypeVar("Item")


def pool_changes(old: Plan, new: Plan) -> tuple[PoolChange, ...]:
    """Return all pools of either plan by model and shape, replicas of one shape together."""
    before, after = _by_key(old), _by_key(new)
    hours = _hours(old), _hours(new)
    return tuple(
        _pool_change(key, _side(before.get(key), hours[0]), _side(after.get(key), hours[1]))
        for key in sorted(before.keys() | after.keys())
    )


def node_changes(old: Plan, new: Plan) -> tuple[NodeChange, ...]:
    """Return the nodes of either plan by offer; an offer that only has another name is the same."""
    return tuple(_node_change(before, after, old, new) for before, after in _node_pairs(old, new))


def _node_pairs(old: Plan, new: Plan) -> list[tuple[NodePlan | None, NodePlan | None]]:
    before, after = ({n.offer: n for n in plan.nodes} for plan in (old, new))
    pairs: dict[str, tuple[NodePlan | None, NodePlan | None]] = {}
    for offer, node in before.items():
        alike = [n for n in after.values() if n.offer not in before and _kind(n) == _kind(node)]
        partner = after.get(offer) or (alike[0] if len(alike) == 1 else None)
        pairs[partner.offer if partner is not None else offer] = (node, partner)
    pairs |= {offer: (None, node) for offer, node in after.items() if offer not in pairs}
    return [pairs[offer] for offer in sorted(pairs)]


def _kind(node: NodePlan) -> tuple[object, ...]:
    return node.provider, node.region, node.instance, node.gpu, node.gpus_per_node, node.term


def workload_changes(old: Plan, new: Plan) -> tuple[WorkloadChange, ...]:
    """Return the workloads of either plan."""
    before, after = ({w.name: w for w in plan.workloads} for plan in (old, new))
    return tuple(_workload_change(before.get(n), after.get(n)) for n in sorted(before.keys() | after.keys()))


def ahead_differs(old: Plan, new: Plan) -> bool:
    """Tell whether the months ahead of a growing demand differ: fleets, purchases or cost."""
    before, after = old.growth, new.growth
    if before is None or after is None:
        return before is not after
    return _ahead(before) != _ahead(after) or differ(before.usd, after.usd)


def _ahead(growth: GrowthPlan) -> object:
    steps = [(s.due, s.months, s.nodes, [(p.model, p.shape, p.replicas) for p in s.pools]) for s in growth.steps]
    return steps, [(p.offer, p.due, p.until, p.nodes) for p in growth.purchases]


def fleet_of(plan: Plan) -> Mapping[object, object]:
    """Return what is a fleet in a plan: replicas and batch caps by shape, and nodes by kind, in every period."""
    pools = {
        key: [(dict(p.replicas_by_period), p.max_num_seqs, p.placement) for p in own]
        for key, own in _by_key(plan).items()
    }
    nodes: dict[object, Counter[str]] = defaultdict(Counter)
    for node in plan.nodes:
        nodes[_kind(node)].update(node.nodes_by_period)
    return {"pools": pools, "nodes": dict(nodes)}


def differ(old: float | None, new: float | None) -> bool:
    """Tell whether two figures are more than rounding apart."""
    if old is None or new is None:
        return old is not new
    return abs(old - new) > SAME_RTOL * max(1.0, abs(old), abs(new))


def kind_of(old: object | None, new: object | None, is_same: bool) -> Kind:
    """Return what happened to something that either side may not have."""
    if old is None:
        return "added"
    if new is None:
        return "removed"
    return "unchanged" if is_same else "changed"


def _hours(plan: Plan) -> float:
    return sum(p.hours_per_month for p in plan.periods)


def _by_key(plan: Plan) -> dict[PoolKey, list[Pool]]:
    found: dict[PoolKey, list[Pool]] = defaultdict(list)
    for pool in plan.pools:
        found[pool.model, pool_shape(pool), pool.spot].append(pool)
    return dict(found)


def _side(pools: Sequence[Pool] | None, hours: float) -> PoolSide | None:
    if not pools:
        return None
    places: dict[str, int] = defaultdict(int)
    for pool in pools:
        for place in pool.placement:
            places[f"{place.provider} {place.region}"] += place.replicas
    return PoolSide(
        pools=tuple(p.name for p in pools),
        replicas=sum(p.replicas for p in pools),
        replicas_by_period=dict(sum((Counter(p.replicas_by_period) for p in pools), Counter())),
        spare_replicas=tuple(p.spare_replicas for p in pools),
        gpus=sum(p.gpus for p in pools),
        max_num_seqs=tuple(p.max_num_seqs for p in pools),
        usd_per_month=sum(p.usd_per_hour for p in pools) * hours,
        placement=tuple(f"{place} x{count}" for place, count in sorted(places.items())),
    )


def _pool_change(key: PoolKey, old: PoolSide | None, new: PoolSide | None) -> PoolChange:
    is_same = old is not None and new is not None and _same_pool(old, new)
    return PoolChange(
        kind=kind_of(old, new, is_same),
        model=key[0],
        shape=key[1],
        spot=key[2],
        old=old,
        new=new,
        usd_per_month_delta=_cost(new) - _cost(old),
    )


def _same_pool(old: PoolSide, new: PoolSide) -> bool:
    settings = [(s.replicas_by_period, s.max_num_seqs, s.placement) for s in (old, new)]
    return settings[0] == settings[1] and not differ(old.usd_per_month, new.usd_per_month)


def _cost(side: PoolSide | None) -> float:
    return 0.0 if side is None else side.usd_per_month


def _node_change(before: NodePlan | None, after: NodePlan | None, old: Plan, new: Plan) -> NodeChange:
    costs = [0.0 if n is None else n.usd_per_hour * _hours(plan) for n, plan in ((before, old), (after, new))]
    prices = [None if n is None else n.usd_per_node_hour for n in (before, after)]
    counts: list[dict[str, int]] = [{} if n is None else dict(n.nodes_by_period) for n in (before, after)]
    is_same = counts[0] == counts[1] and not differ(*prices)
    offer = next(n.offer for n in (after, before) if n is not None)
    return NodeChange(
        kind=kind_of(before, after, is_same),
        offer=offer,
        old_nodes=0 if before is None else before.nodes,
        new_nodes=0 if after is None else after.nodes,
        old_nodes_by_period=counts[0],
        new_nodes_by_period=counts[1],
        old_usd_per_node_hour=prices[0],
        new_usd_per_node_hour=prices[1],
        usd_per_month_delta=costs[1] - costs[0],
    )


def _workload_change(old: WorkloadPlan | None, new: WorkloadPlan | None) -> WorkloadChange:
    limits = tuple(_limits(old, new))
    is_same = old is not None and new is not None and not differ(old.demand_requests_per_s, new.demand_requests_per_s)
    is_same = is_same and not any(differ(c.old_limit_s, c.new_limit_s) for c in limits)
    either = next(w for w in (new, old) if w is not None)
    return WorkloadChange(
        kind=kind_of(old, new, is_same),
        name=either.name,
        model=either.model,
        old_demand_requests_per_s=None if old is None else old.demand_requests_per_s,
        new_demand_requests_per_s=None if new is None else new.demand_requests_per_s,
        old_holds_to_requests_per_s=None if old is None else old.next_step_requests_per_s,
        new_holds_to_requests_per_s=None if new is None else new.next_step_requests_per_s,
        old_usd_per_month=None if old is None else old.usd_per_month,
        new_usd_per_month=None if new is None else new.usd_per_month,
        slo=limits,
    )


def _limits(old: WorkloadPlan | None, new: WorkloadPlan | None) -> Iterable[LimitChange]:
    before: dict[str, SloCheck] = {} if old is None else {c.metric: c for c in old.slo}
    after: dict[str, SloCheck] = {} if new is None else {c.metric: c for c in new.slo}
    for metric in sorted(before.keys() | after.keys()):
        was, now = before.get(metric), after.get(metric)
        yield LimitChange(
            metric=metric,
            old_limit_s=None if was is None else was.limit_s,
            new_limit_s=None if now is None else now.limit_s,
            old_predicted_s=None if was is None else was.predicted_s,
            new_predicted_s=None if now is None else now.predicted_s,
            old_margin=None if was is None else was.margin,
            new_margin=None if now is None else now.margin,
        )
