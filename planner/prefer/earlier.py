"""A fleet that runs already: that of a saved plan, or what the spec says is deployed."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NoReturn

from planner.candidates.periods import InPeriod
from planner.candidates.types import CandidateTable, PricedOffer, Shape, shape_name
from planner.catalog import Catalog
from planner.diagnostics import Diagnostic, DiagnosticError, Span
from planner.physics.types import Layout
from planner.plan.pools import pool_shape
from planner.plan.schema import NodePlan, Plan, Pool
from planner.spec import FleetSpec


@dataclass(frozen=True)
class PreferredPlan:
    """A saved plan whose fleet is to be kept, and the file that it was read from."""

    plan: Plan
    path: str

    def fleet_for(self, spec: FleetSpec) -> EarlierFleet:
        """Return its fleet. Raises `DiagnosticError`, at the file, where a spec can keep nothing of it."""
        plan = self.plan
        if not plan.pools:
            self._refuse("plan/no-fleet", "this plan has no fleet to keep; `planner show` says why")
        own = {p.model for p in plan.pools}
        asked = {w.model for w in spec.workloads.values()}
        if own.isdisjoint(asked):
            named = f"it serves {', '.join(sorted(own))}, and the spec {', '.join(sorted(asked))}"
            self._refuse("plan/other-fleet", f"this plan serves no model of the spec: {named}")
        peak = plan.periods[0].name
        return EarlierFleet(
            tuple(_pool(pool, plan, peak) for pool in plan.pools),
            tuple(_nodes(node, node.nodes_by_period[peak]) for node in plan.nodes),
            plan.digests.plan,
            plan.objective.usd_per_month if plan.objective is not None else None,
        )

    def _refuse(self, code: str, message: str) -> NoReturn:
        raise DiagnosticError([Diagnostic(code, message, Span(self.path, 1, 1, 2))])


@dataclass(frozen=True)
class EarlierPool:
    """Replicas of one shape. `placement` counts them by zone, where that is known.

    `node_gpus` is the size of all their nodes, 0 where it is not one. `max_num_seqs` and the workloads are what a candidate should
    be near to. `rates` are requests/s by workload, headroom included, where they are known. `entry` is the offer that replicas
    lie on whose nodes are not listed. `replicas` and `rates` are those at the peak; `by_period` and `rates_by_period` are by
    period, where there are several. `period` is set where these are those of one.
    """

    name: str
    model: str
    gpu: str
    shape: str
    replicas: int
    max_num_seqs: int | None
    rates: Mapping[str, float] = field(default_factory=dict)
    is_spot: bool = False
    node_gpus: int = 0
    placement: Mapping[str, int] = field(default_factory=dict)
    entry: str = ""
    by_period: Mapping[str, int] = field(default_factory=dict)
    rates_by_period: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    period: str = ""

    @property
    def workloads(self) -> frozenset[str]:
        """Workloads that it serves, empty where that is not known."""
        return frozenset(self.rates)

    @property
    def most(self) -> int:
        """Replicas in the period with most of them."""
        return max((self.replicas, *self.by_period.values()))


@dataclass(frozen=True)
class EarlierNodes:
    """Nodes of one offer that are paid for; `kind` is provider, region, instance, GPU, GPUs per node and term.

    `nodes` are those at the peak; `by_period` counts them by period, where there are several; `period` is set where these are
    those of one.
    """

    offer: str
    kind: tuple[str, str, str, str, int, str]
    nodes: int
    by_period: Mapping[str, int] = field(default_factory=dict)
    period: str = ""

    @property
    def most(self) -> int:
        """Nodes in the period with most of them."""
        return max((self.nodes, *self.by_period.values()))


@dataclass(frozen=True)
class EarlierFleet:
    """Pools and nodes, the digest of the plan that they come from (None: of no plan), and what they cost then."""

    pools: tuple[EarlierPool, ...]
    nodes: tuple[EarlierNodes, ...]
    digest: str | None = None
    usd_per_month: float | None = None

    def at_peak(self) -> EarlierFleet:
        """Return what it has at its peak, for a spec that plans all hours as one."""
        pools = tuple(
            replace(p, by_period={}, placement=_scaled(p.placement, p.replicas)) for p in self.pools if p.replicas
        )
        nodes = tuple(replace(n, by_period={}) for n in self.nodes if n.nodes or not n.by_period)
        return replace(self, pools=pools, nodes=nodes)

    def shapes(self) -> dict[str, frozenset[str]]:
        """Return the names of its shapes by model."""
        models = sorted({p.model for p in self.pools})
        return {m: frozenset(p.shape for p in self.pools if p.model == m) for m in models}

    def replicas(self) -> Counter[str]:
        """Count replicas by model and shape."""
        return sum((Counter({described(p.model, p.shape, p.is_spot): p.most}) for p in self.pools), Counter())


def described(model: str, shape: str, is_spot: bool) -> str:
    """Return what replicas of a shape are called in lists of changes."""
    return f"{model} on {shape}{' (spot)' if is_spot else ''}"


def _pool(pool: Pool, plan: Plan, period: str) -> EarlierPool:
    """Return a pool as it runs in a period; its places are known where that is the one that the plan tells them of."""
    sizes = {n.gpus_per_node for n in plan.nodes if n.gpu == pool.gpu}
    return EarlierPool(
        name=pool.name,
        model=pool.model,
        gpu=pool.gpu,
        shape=pool_shape(pool),
        replicas=pool.replicas_by_period[period],
        max_num_seqs=pool.max_num_seqs,
        rates=dict((pool.workloads_by_period or {}).get(period) or pool.workloads),
        is_spot=pool.spot,
        node_gpus=pool.gpus_per_node or (sizes.pop() if len(sizes) == 1 else 0),
        placement=Counter({f"{p.provider}/{p.region}": p.replicas for p in pool.placement}),
        by_period=dict(pool.replicas_by_period),
        rates_by_period=dict(pool.workloads_by_period or {}),
    )


def _nodes(node: NodePlan, nodes: int) -> EarlierNodes:
    kind = (node.provider, node.region, node.instance, node.gpu, node.gpus_per_node, node.term)
    return EarlierNodes(node.offer, kind, nodes, dict(node.nodes_by_period))


def in_periods(fleet: EarlierFleet, parts: Sequence[InPeriod]) -> EarlierFleet:
    """Return a fleet as the copies of its pools and nodes for every period, of which it has what it had in the one of that name.

    In a period that it does not know, it has what it has at its peak. Pools of models that are the same in all periods stay one.
    """
    pools: dict[str, EarlierPool] = {}
    for part in parts:
        for pool in fleet.pools:
            replicas = pool.by_period.get(part.period.name, pool.replicas)
            is_steady = pool.model in part.steady
            name = pool.name if is_steady else part.supply_name(pool.name)
            rates = pool.rates_by_period.get(part.period.name, pool.rates)
            if replicas and name not in pools:
                pools[name] = replace(
                    pool,
                    name=name,
                    period="" if is_steady else part.period.name,
                    model=part.name(pool.model),
                    replicas=pool.most if is_steady else replicas,
                    rates={part.name(w): rate for w, rate in rates.items()},
                    placement=pool.placement if is_steady else _scaled(pool.placement, replicas),
                )
    nodes = [
        replace(
            node,
            offer=part.supply_name(node.offer),
            nodes=node.by_period.get(part.period.name, node.nodes),
            period=part.period.name,
        )
        for part in parts
        for node in fleet.nodes
    ]
    return EarlierFleet(tuple(pools.values()), tuple(nodes), fleet.digest, fleet.usd_per_month)


def _scaled(placement: Mapping[str, int], replicas: int) -> Mapping[str, int]:
    """Return where so many of the replicas of a pool are, the first places filled first."""
    left, found = replicas, {}
    for zone, count in sorted(placement.items()):
        found[zone] = min(count, left)
        left -= found[zone]
    return found


def deployed_fleet(spec: FleetSpec, catalog: Catalog) -> EarlierFleet | None:
    """Return what a spec says is deployed, None where it says nothing. Nodes and places are known once offers have prices."""
    if not spec.deployed:
        return None
    pools = []
    for number, entry in enumerate(spec.deployed, 1):
        gpu = catalog.gpu(entry.gpu).name
        shape = shape_name(gpu, Layout(entry.tensor_parallel, 1, 1, 1), entry.weights, entry.kv_cache)
        pools.append(
            EarlierPool(
                name=f"deployed {number}",
                model=entry.model,
                gpu=gpu,
                shape=shape,
                replicas=entry.replicas,
                max_num_seqs=entry.max_num_seqs,
                entry=entry.offer,
            )
        )
    return EarlierFleet(tuple(pools), ())


def on_nodes(fleet: EarlierFleet, spec: FleetSpec, table: CandidateTable) -> EarlierFleet:
    """Return a fleet whose nodes are not listed with those that it takes: of each entry, as many as hold its replicas.

    They are of the offer with the cheapest GPUs that holds the largest of them. Fleets of plans stay as they are.
    """
    groups: dict[tuple[str, str], list[EarlierPool]] = defaultdict(list)
    for pool in fleet.pools:
        if pool.entry:
            groups[pool.entry, pool.gpu].append(pool)
    if not groups:
        return fleet
    shapes = {(c.shape.model, c.shape.name): c.shape for c in table.candidates}
    pools, nodes, usd_per_h = [], [], 0.0
    for (entry, gpu), members in sorted(groups.items()):
        sizes = [_gpus(shapes.get((p.model, p.shape))) for p in members]
        able = [o for o in table.supply.offers if (o.entry, o.gpu) == (entry, gpu) and o.gpus_per_node >= max(sizes)]
        if not able:
            nodes.append(EarlierNodes(entry, ("", "", "", gpu, 0, ""), 0))
            pools += members
            continue
        offer = min(able, key=lambda o: (o.usd_per_node_h / o.gpus_per_node, o.name))
        count = _nodes_for([s for s, p in zip(sizes, members, strict=True) for _ in range(p.replicas)], offer)
        usd_per_h += count * offer.usd_per_node_h
        kind = (offer.provider, offer.region, offer.instance, offer.gpu, offer.gpus_per_node, offer.term)
        nodes.append(EarlierNodes(offer.name, kind, count))
        pools += [
            replace(
                p, is_spot=offer.is_spot, node_gpus=offer.gpus_per_node, placement=Counter({offer.zone: p.replicas})
            )
            for p in members
        ]
    cost = usd_per_h * spec.planning.hours_per_month
    return EarlierFleet(tuple(sorted(pools, key=lambda p: p.name)), tuple(nodes), None, cost)


def _gpus(shape: Shape | None) -> int:
    return shape.node_gpus if shape is not None else 1


def _nodes_for(gpus: Sequence[int], offer: PricedOffer) -> int:
    """Return how many nodes hold replicas of so many GPUs each, the largest placed first."""
    free: list[int] = []
    for size in sorted(gpus, reverse=True):
        place = next((i for i, left in enumerate(free) if left >= size), None)
        if place is None:
            free.append(offer.gpus_per_node - size)
        else:
            free[place] -= size
    return len(free)
