"""The independent audit: every limit of a finished plan recomputed from spec, catalog and physics.

Nothing here looks at the program, its rows or the solver's word: shapes are rebuilt from what the plan says.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from planner.candidates.selection import admits, matches
from planner.candidates.types import CandidateTable, PricedOffer, Shape
from planner.catalog import Catalog
from planner.physics.constants import SpeedConstants
from planner.physics.memory import hbm_budget
from planner.plan.assess import PoolLoad, missed
from planner.plan.figures import MONEY_RTOL, RATE_RTOL, Violation, wrong_figures
from planner.plan.schema import Placement, Plan, Pool
from planner.spec import FleetSpec

LIMIT_RTOL = 1e-5  # the solver keeps rows to this share

Rates = Mapping[str, Mapping[str, float]]
"""Requests/s by pool and workload."""


@dataclass(frozen=True)
class _Audit:
    plan: Plan
    spec: FleetSpec
    table: CandidateTable
    catalog: Catalog
    constants: SpeedConstants
    reroutes: Mapping[str, Rates]

    @cached_property
    def offers(self) -> dict[str, PricedOffer]:
        return {o.name: o for o in self.table.supply.offers}

    @cached_property
    def pools(self) -> list[Pool]:
        """Pools whose shape is a candidate of their model; the others are violations of their own."""
        return [p for p in self.plan.pools if _key(p) in self._shapes]

    def pools_of(self, model: str) -> list[Pool]:
        return self._pools_by_model.get(model, [])

    def shape(self, pool: Pool) -> Shape:
        return self._shapes[_key(pool)]

    def workloads_of(self, model: str) -> list[str]:
        return self._workloads_by_model.get(model, [])

    @cached_property
    def _workloads_by_model(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = defaultdict(list)
        for name, workload in self.spec.workloads.items():
            found[workload.model].append(name)
        return dict(found)

    def knows(self, pool: Pool) -> bool:
        return _key(pool) in self._shapes

    def allowed(self, pool: Pool) -> frozenset[str]:
        """Return the offers that all workloads of a pool are allowed on."""
        served = tuple(sorted(pool.workloads))
        if served not in self._allowed:
            self._allowed[served] = frozenset(
                name for name, offer in self.offers.items() if all(_admitted(self, w, offer) for w in served)
            )
        return self._allowed[served]

    @cached_property
    def _allowed(self) -> dict[tuple[str, ...], frozenset[str]]:
        return {}

    @cached_property
    def _shapes(self) -> dict[tuple[object, ...], Shape]:
        found: dict[tuple[object, ...], Shape] = {}
        for shape in (c.shape for c in self.table.candidates):
            layout = shape.layout
            own = (layout.tensor, layout.pipeline, layout.expert, layout.attention_data)
            found.setdefault((shape.model, shape.gpu, shape.weights, shape.kv_cache, *own), shape)
        return found

    @cached_property
    def _pools_by_model(self) -> dict[str, list[Pool]]:
        found: dict[str, list[Pool]] = defaultdict(list)
        for pool in self.pools:
            found[pool.model].append(pool)
        return dict(found)


def _key(pool: Pool) -> tuple[object, ...]:
    layout = (pool.tensor_parallel, pool.pipeline_parallel, pool.expert_parallel, pool.attention_data_parallel)
    return (pool.model, pool.gpu, pool.weights, pool.kv_cache, *layout)


def audit(
    plan: Plan,
    spec: FleetSpec,
    table: CandidateTable,
    catalog: Catalog,
    constants: SpeedConstants,
    reroutes: Mapping[str, Rates],
) -> tuple[Violation, ...]:
    """Return every violation of the spec by the plan; none for a plan that holds.

    `reroutes` gives, for every pool of a model with spares, where its traffic goes when they are lost; whether that
    works is checked here.
    """
    subject = _Audit(plan, spec, table, catalog, constants, reroutes)
    found = [v for check in CHECKS for v in check(subject)]
    return (*found, *wrong_figures(plan, spec, table, subject.pools, subject.shape, constants))


def _demand(a: _Audit) -> Iterator[Violation]:
    """Pool rates of a workload sum to demand x (1 + headroom)."""
    served: Counter[str] = Counter()
    for pool in a.plan.pools:
        served.update(pool.workloads)
    for name, workload in a.spec.workloads.items():
        due = workload.traffic.peak_requests_per_s() * (1.0 + a.spec.reliability_of(workload.model).headroom)
        if abs(served[name] - due) > RATE_RTOL * due:
            yield Violation("demand", name, f"{served[name]:g} of {due:g} req/s are served")


def _budget(a: _Audit) -> Iterator[Violation]:
    """All nodes together stay within the budget, at the prices of the supply."""
    budget = a.spec.supply.budget_usd_per_month
    total = sum(a.offers[n.offer].usd_per_node_h * n.nodes for n in a.plan.nodes)
    month = total * a.spec.planning.hours_per_month
    if budget is not None and month > budget * (1.0 + MONEY_RTOL):
        yield Violation("budget", "supply.budget", f"{month:,.2f} of {budget:,.2f} USD/month")


def _candidates(a: _Audit) -> Iterator[Violation]:
    """Every pool is of a shape that the rules leave to its model."""
    for pool in a.plan.pools:
        if not a.knows(pool):
            yield Violation("shape", pool.name, "no candidate of its model has this GPU, layout and formats")


def _memory(a: _Audit) -> Iterator[Violation]:
    """Every part of the HBM budget recomputed; it must fit, and be what the plan shows."""
    for pool in a.pools:
        model = a.table.models[pool.model]
        engine = model.spec.engine
        budget = hbm_budget(
            model.architecture,
            a.catalog.gpu(pool.gpu).device(),
            a.shape(pool).layout,
            pool.weights,
            pool.kv_cache,
            model.memory,
            pool.max_num_seqs,
            pool.max_num_batched_tokens,
            pool.max_model_len,
            engine.gpu_memory_utilization,
            engine.chunked_prefill,
        )
        shown = pool.hbm_bytes_per_gpu
        if not budget.fits:
            yield Violation("memory", pool.name, f"short by {budget.shortfall_bytes:g} bytes per GPU")
        parts = shown.weights + shown.kv_pool + shown.activations + shown.runtime + shown.graphs + shown.free
        recomputed = (budget.weights_bytes, budget.kv_pool_bytes, budget.kv_tokens)
        if (shown.weights, shown.kv_pool, pool.kv_tokens) != recomputed or parts != shown.usable:
            yield Violation("memory", pool.name, "the budget shown is not the one recomputed")


def _latency(a: _Audit) -> Iterator[Violation]:
    """Every latency limit of every workload in every pool, at the mix the pool really got."""
    for name, model in a.table.models.items():
        pools = a.pools_of(name)
        loads = [_load(a, p, p.replicas, p.workloads) for p in pools]
        for pool, misses in zip(pools, missed(model, a.table.workloads, loads, a.constants), strict=True):
            for miss in misses:
                yield Violation("latency", pool.name, f"misses {miss}")


def _load(a: _Audit, pool: Pool, replicas: int, rates: Mapping[str, float]) -> PoolLoad:
    return PoolLoad(pool.name, a.shape(pool), pool.max_num_seqs, replicas, rates)


def _nodes(a: _Audit) -> Iterator[Violation]:
    """Every replica fits nodes that are paid for, at its place, where all workloads of its pool are allowed."""
    free = Counter({(n.offer, n.gpus_per_node): n.nodes for n in a.plan.nodes if n.nodes})
    for pool in a.plan.pools:
        if sum(place.replicas for place in pool.placement) != pool.replicas:
            yield Violation("placement", pool.name, "the placement does not add up to the replicas")
    choice = {p.name: sum(free[key] for key in _fitting(a, p, free)) for p in a.pools}
    for pool in sorted(a.pools, key=lambda p: (-a.shape(p).gpus, -a.shape(p).node_gpus, choice[p.name])):
        yield from _placed(a, pool, free)
    yield from _stock(a)


FreeNodes = Counter[tuple[str, int]]
"""Nodes by offer and GPUs that are still free on them."""


def _fitting(a: _Audit, pool: Pool, free: FreeNodes) -> list[tuple[str, int]]:
    """Return the kinds of nodes that may hold some of the pool, by GPU type and by the selectors of all its workloads."""
    return [
        (name, left)
        for name, left in free
        if (offer := a.offers[name]).gpu == pool.gpu
        and name in a.allowed(pool)
        and offer.is_spot == pool.spot
        and pool.gpus_per_node in (None, offer.gpus_per_node)
    ]


def _placed(a: _Audit, pool: Pool, free: FreeNodes) -> Iterator[Violation]:
    """Put the replicas of a pool on nodes, fullest first, and say which find none."""
    shape = a.shape(pool)
    for place in pool.placement:
        here = FreeNodes({key: n for key, n in free.items() if _is_at(a.offers[key[0]], place)})
        if any(a.offers[name].gpu == pool.gpu for name, _ in here) and not _fitting(a, pool, here):
            yield Violation(
                "selector", pool.name, f"{place.provider}/{place.region} has no node allowed for its workloads"
            )
            continue
        for replica in range(place.replicas):
            taken = _first_nodes(a, pool, shape, here)
            if taken is None:
                where = f"{place.provider}/{place.region}"
                yield Violation("placement", pool.name, f"no node is left at {where} for replica {replica + 1}")
                break
            for nodes in (here, free):
                for name, left in taken:
                    nodes[name, left] -= 1
                    nodes[name, left - shape.node_gpus] += 1


def _is_at(offer: PricedOffer, place: Placement) -> bool:
    return (offer.provider, offer.region) == (place.provider, place.region)


def _first_nodes(a: _Audit, pool: Pool, shape: Shape, here: FreeNodes) -> list[tuple[str, int]] | None:
    """Return the fullest nodes that hold a replica, one that spans nodes on whole ones; None where there are too few."""
    found: list[tuple[str, int]] = []
    for name, left in sorted(_fitting(a, pool, here), key=lambda key: (key[1], key[0])):
        whole = shape.nodes_spanned == 1 or left == a.offers[name].gpus_per_node == shape.node_gpus
        if left >= shape.node_gpus and whole:
            found += [(name, left)] * min(here[name, left], shape.nodes_spanned - len(found))
    return found if len(found) == shape.nodes_spanned else None


def _stock(a: _Audit) -> Iterator[Violation]:
    counts: Counter[str] = Counter()
    gpus: Counter[str] = Counter()
    for node in a.plan.nodes:
        counts[a.offers[node.offer].entry] += node.nodes
        gpus[node.gpu] += node.nodes * node.gpus_per_node
    for stock in a.table.supply.stock:
        if stock.available is not None and counts[stock.entry] > stock.available:
            yield Violation("stock", stock.entry, f"{counts[stock.entry]} nodes of {stock.available}")
        if counts[stock.entry] < stock.committed:
            yield Violation(
                "commitment", stock.entry, f"{counts[stock.entry]} nodes paid of {stock.committed} committed"
            )
    for name, limit in a.spec.supply.limits.gpus.items():
        gpu = a.catalog.gpu(name).name
        if gpus[gpu] > limit:
            yield Violation("limits", gpu, f"{gpus[gpu]} GPUs of {limit}")
    yield from _rules_of_limits(a)
    types = a.spec.supply.limits.gpu_types
    in_use = {p.gpu for p in a.plan.pools}
    if types is not None and len(in_use) > types:
        yield Violation("limits", "gpu_types", f"{len(in_use)} GPU types of {types}")


def _rules_of_limits(a: _Audit) -> Iterator[Violation]:
    """The power of all nodes, and every rule on the nodes that it matches."""
    nodes = [(a.offers[n.offer], n.nodes) for n in a.plan.nodes]
    most_w, drawn_w = a.spec.supply.limits.power_w, sum(o.power_w * n for o, n in nodes)
    if most_w is not None and drawn_w > most_w * (1.0 + MONEY_RTOL):
        yield Violation("limits", "power", f"{drawn_w:,.0f} W of {most_w:,.0f}")
    hours = a.spec.planning.hours_per_month
    total = sum(o.usd_per_node_h * n for o, n in nodes)
    for number, rule in enumerate(a.spec.supply.limits.rules):
        own = [(o, n) for o, n in nodes if matches(rule.match, o, a.catalog)]
        cost = sum(o.usd_per_node_h * n for o, n in own)
        taken = {
            "gpus": sum(o.gpus_per_node * n for o, n in own),
            "nodes": sum(n for _, n in own),
            "vcpus": sum((o.vcpus or 0) * n for o, n in own),
            "usd_per_month": cost * hours,
            "share": cost / total if total > 0.0 else 0.0,
        }[rule.measure]
        if taken > rule.most * (1.0 + LIMIT_RTOL):
            yield Violation("limits", f"rules.{number}", f"{taken:g} {rule.measure} of {rule.most:g}")


def _rules(a: _Audit) -> Iterator[Violation]:
    """Shapes, formats, quality and replicas of each model."""
    for name, model in a.table.models.items():
        pools = a.pools_of(name)
        shapes = {a.shape(p).name for p in pools}
        if len(shapes) > model.spec.max_shapes:
            yield Violation("max_shapes", name, f"{len(shapes)} shapes of {model.spec.max_shapes}")
        if model.spec.uniform_format and len({(p.weights, p.kv_cache) for p in pools}) > 1:
            yield Violation("uniform_format", name, "its pools differ in weight or KV format")
        for pool in pools:
            kept = model.quality[pool.weights, pool.kv_cache].recovery
            if kept < model.spec.min_quality:
                yield Violation("quality", pool.name, f"{kept:.4f} is below {model.spec.min_quality:.4f}")
        replicas = sum(p.replicas for p in pools)
        if pools and replicas < model.reliability.min_replicas:
            yield Violation("min_replicas", name, f"{replicas} replicas of {model.reliability.min_replicas}")


def _admitted(a: _Audit, workload: str, offer: PricedOffer) -> bool:
    asked = a.spec.workloads[workload]
    model = a.spec.models[asked.model]
    if offer.is_spot and asked.spot is None:
        return False
    return admits(model.allow, model.deny, offer, a.catalog) and admits(asked.allow, asked.deny, offer, a.catalog)


def _spot(a: _Audit) -> Iterator[Violation]:
    """Spot nodes take no more of a workload than it allows; with a floor, not in any loss either."""
    normal = {p.name: p.workloads for p in a.plan.pools}
    yield from _spot_shares(a, "as planned", normal, floor_only=False)
    for loss, rates in a.reroutes.items():
        yield from _spot_shares(a, f"without {loss}", rates, floor_only=True)


def _spot_shares(a: _Audit, when: str, rates: Rates, floor_only: bool) -> Iterator[Violation]:
    spot_pools = {p.name for p in a.plan.pools if p.spot}
    for name, workload in a.spec.workloads.items():
        served = {pool: own[name] for pool, own in rates.items() if name in own}
        total, on_spot = sum(served.values()), sum(r for pool, r in served.items() if pool in spot_pools)
        allowed = workload.spot.max_share if workload.spot is not None else 0.0
        if floor_only and workload.spot is not None and not workload.spot.on_demand_floor:
            continue
        if on_spot > allowed * total + RATE_RTOL * total:
            yield Violation("spot", name, f"{on_spot:g} of {total:g} req/s are on spot nodes {when}")


def _spares(a: _Audit) -> Iterator[Violation]:
    """With the spares of any pool gone, the rest carries the demand without headroom, within all latency limits."""
    for name, model in a.table.models.items():
        losses = [(p, _loss_of(a, p), a.reroutes.get(p.name)) for p in a.pools_of(name)]
        loads: list[tuple[Pool, PoolLoad]] = []
        for lost, spares, rates in losses:
            if spares == 0:
                continue
            if rates is None:
                yield Violation("spare", lost.name, f"no routing is known for the loss of {spares} replicas")
                continue
            yield from _rerouted_demand(a, name, lost.name, rates)
            left = {p.name: p.replicas - (spares if p.name == lost.name else 0) for p in a.pools_of(name)}
            pools = [p for p in a.pools_of(name) if rates.get(p.name)]
            empty = [p.name for p in pools if left[p.name] < 1]
            if empty:
                yield Violation("spare", lost.name, f"traffic is rerouted to {empty[0]}, which has no replica left")
            loads += [(lost, _load(a, p, left[p.name], rates[p.name])) for p in pools if left[p.name] >= 1]
        misses = missed(model, a.table.workloads, [load for _, load in loads], a.constants)
        for (lost, load), miss in zip(loads, misses, strict=True):
            if miss:
                yield Violation("spare", lost.name, f"{load.name} misses {', '.join(miss)} without the spares")


def _loss_of(a: _Audit, pool: Pool) -> int:
    """Return the replicas that a failure takes of a pool: the spares, or as many as one of its nodes may hold."""
    reliability, shape = a.table.models[pool.model].reliability, a.shape(pool)
    if reliability.survive != "node":
        return reliability.spare_replicas
    sizes = [a.offers[n.offer].gpus_per_node for n in a.plan.nodes if n.gpu == pool.gpu]
    size = pool.gpus_per_node or max(sizes)
    return max(reliability.spare_replicas, 1 if shape.nodes_spanned > 1 else size // shape.node_gpus)


def _zones(a: _Audit) -> Iterator[Violation]:
    """With all nodes of any one zone gone, the other replicas carry the demand without headroom, within all limits."""
    for name, model in a.table.models.items():
        pools = a.pools_of(name)
        zones = sorted({f"{at.provider}/{at.region}" for p in pools for at in p.placement})
        for zone in zones if model.reliability.survive == "zone" else ():
            rates = a.reroutes.get(f"{name}@{zone}")
            if rates is None:
                yield Violation("zone", name, f"no routing is known for the loss of {zone}")
                continue
            yield from _rerouted_demand(a, name, zone, rates)
            left = {
                p.name: sum(at.replicas for at in p.placement if f"{at.provider}/{at.region}" != zone) for p in pools
            }
            for pool in pools:
                if rates.get(pool.name) and left[pool.name] < 1:
                    yield Violation("zone", name, f"traffic is rerouted to {pool.name}, which is gone with {zone}")
            serving = [p for p in pools if rates.get(p.name) and left[p.name] >= 1]
            loads = [_load(a, p, left[p.name], rates[p.name]) for p in serving]
            for load, miss in zip(loads, missed(model, a.table.workloads, loads, a.constants), strict=True):
                if miss:
                    yield Violation("zone", name, f"{load.name} misses {', '.join(miss)} without {zone}")


def _rerouted_demand(a: _Audit, model: str, lost: str, rates: Rates) -> Iterator[Violation]:
    served: Counter[str] = Counter()
    for own in rates.values():
        served.update(own)
    for name in a.workloads_of(model):
        due = a.spec.workloads[name].traffic.peak_requests_per_s()
        if served[name] < due * (1.0 - RATE_RTOL):
            yield Violation("spare", lost, f"{name}: {served[name]:g} of {due:g} req/s are served when this is lost")


CHECKS: tuple[Callable[[_Audit], Iterator[Violation]], ...] = (
    _candidates,
    _demand,
    _budget,
    _memory,
    _latency,
    _nodes,
    _rules,
    _spares,
    _spot,
    _zones,
)


def in_words(violations: tuple[Violation, ...]) -> str:
    """Return the violations as one text, for a report of a bug."""
    return "; ".join(f"{v.check} {v.subject}: {v.reason}" for v in violations)
