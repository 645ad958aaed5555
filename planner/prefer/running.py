"""What an earlier plan amounts to today: which candidates its replicas count as, which nodes are paid for, what is gone."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from planner.candidates.types import Candidate, CandidateTable, PricedOffer
from planner.diagnostics import Diagnostic, DiagnosticError, Span
from planner.plan.pools import pool_shape
from planner.plan.schema import NodePlan, Plan, Pool
from planner.program.data import Kept, KeptPool
from planner.spec import FleetSpec

Kind = tuple[str, str, bool, str, int]
"""Model, shape, whether on spot nodes, zone and node size, as far as the model is to survive their loss."""


@dataclass(frozen=True)
class PreferredPlan:
    """A plan whose fleet is to be kept, and the file that it was read from."""

    plan: Plan
    path: str

    def shapes(self) -> dict[str, frozenset[str]]:
        """Return the names of its shapes by model."""
        models = {p.model for p in self.plan.pools}
        return {m: frozenset(pool_shape(p) for p in self.plan.pools if p.model == m) for m in sorted(models)}

    def check_against(self, spec: FleetSpec) -> None:
        """Raise `DiagnosticError` where nothing of the plan can be kept for a spec, whatever it costs."""
        if not self.plan.pools:
            self._refuse("plan/no-fleet", "this plan has no fleet to keep; `planner show` says why")
        own = {p.model for p in self.plan.pools}
        asked = {w.model for w in spec.workloads.values()}
        if own.isdisjoint(asked):
            named = f"it serves {', '.join(sorted(own))}, and the spec {', '.join(sorted(asked))}"
            self._refuse("plan/other-fleet", f"this plan serves no model of the spec: {named}")

    def _refuse(self, code: str, message: str) -> None:
        raise DiagnosticError([Diagnostic(code, message, Span(self.path, 1, 1, 2))])


@dataclass(frozen=True)
class Running:
    """The fleet of an earlier plan in terms of today's candidates and offers.

    `lost` says of each pool or offer that cannot be had any more why that is. `has_new_models` and `has_gone_models` tell
    whether the spec serves models that the plan does not, and the other way round.
    """

    plan: Plan
    pools: tuple[KeptPool, ...]
    nodes: dict[str, int]
    models: frozenset[str]
    lost: tuple[str, ...]
    has_new_models: bool
    has_gone_models: bool

    def kept(self, scale: float, most: float | None) -> Kept:
        """Return it for the program that looks for the fewest changes; without `most`, for one that changes nothing."""
        is_fixed = most is None
        return Kept(
            pools=self.pools,
            nodes=self.nodes,
            models=self.models,
            scale=scale,
            most=most,
            counts_more=not (is_fixed and self.has_new_models),
            counts_fewer=not self.has_gone_models,
            is_fixed=is_fixed,
        )


def running_fleet(plan: Plan, table: CandidateTable) -> Running:
    """Return what of a plan can still be had: candidates of the same model, shape and kind of nodes, and the same offers."""
    asked = {w.model for w in table.workloads.values()}
    pools = [p for p in plan.pools if p.model in asked]
    found: dict[Kind, int] = defaultdict(int)
    columns: dict[Kind, list[Candidate]] = {}
    same: dict[Kind, set[str]] = defaultdict(set)
    lost: list[str] = []
    for pool in pools:
        kinds = _kinds(pool, plan, table)
        if sum(count for _, count in kinds) < pool.replicas:
            lost.append(f"pool {pool.name}: {_why_gone(pool, table)}")
        for kind, count in kinds:
            columns[kind] = [c for c in table.candidates if _kind(c) == kind]
            found[kind] += count
            same[kind].add(_nearest(columns[kind], pool).name)
    nodes, gone = _nodes(plan.nodes, table.supply.offers)
    models = frozenset(p.model for p in pools)
    return Running(
        plan=plan,
        pools=tuple(
            KeptPool(_name(kind), tuple(c.name for c in columns[kind]), found[kind], frozenset(same[kind]))
            for kind in sorted(found)
        ),
        nodes=nodes,
        models=models,
        lost=(*lost, *gone),
        has_new_models=bool(asked - models),
        has_gone_models=len(pools) < len(plan.pools),
    )


def _name(kind: Kind) -> str:
    model, shape, is_spot, zone, node_gpus = kind
    marks = (*(["spot"] if is_spot else []), *([zone] if zone else []), *([f"node{node_gpus}"] if node_gpus else []))
    return "|".join((model, shape, *marks))


def _kind(candidate: Candidate) -> Kind:
    shape, domain = candidate.shape, candidate.domain
    return shape.model, shape.name, domain.spot, domain.zone, domain.node_gpus


def _kinds(pool: Pool, plan: Plan, table: CandidateTable) -> list[tuple[Kind, int]]:
    """Return what the replicas of a pool are today, with how many of them; those that are nothing any more are left out."""
    shape = pool_shape(pool)
    kinds = {
        _kind(c)
        for c in table.candidates
        if (c.shape.model, c.shape.name, c.domain.spot) == (pool.model, shape, pool.spot)
    }
    size = _node_gpus(pool, plan)
    fitting = sorted(kind for kind in kinds if kind[4] in (0, size))
    if any(kind[3] for kind in fitting):
        at = Counter({f"{p.provider}/{p.region}": p.replicas for p in pool.placement})
        return [(kind, at[kind[3]]) for kind in fitting if at[kind[3]]]
    return [(kind, pool.replicas) for kind in fitting[:1]]


def _node_gpus(pool: Pool, plan: Plan) -> int:
    """Return the size of all nodes that a pool can lie on, 0 where they differ."""
    sizes = {n.gpus_per_node for n in plan.nodes if n.gpu == pool.gpu}
    return pool.gpus_per_node or (sizes.pop() if len(sizes) == 1 else 0)


def _nearest(candidates: Iterable[Candidate], pool: Pool) -> Candidate:
    """Return the candidate that is nearest to a pool: one that serves its workloads, then by batch cap."""
    served = set(pool.workloads)
    return min(
        candidates,
        key=lambda c: (
            not served <= set(c.services),
            c.min_replicas > pool.replicas,
            abs(c.max_num_seqs - pool.max_num_seqs),
            len(set(c.services) ^ served),
            -c.min_replicas,
            c.name,
        ),
    )


def _why_gone(pool: Pool, table: CandidateTable) -> str:
    shape = pool_shape(pool)
    ruled = [r for r in table.rejections if r.model == pool.model and (r.shape or r.gpu) in (shape, pool.gpu)]
    if ruled:
        return f"{shape} is ruled out today ({ruled[0].rule}): {ruled[0].reason}"
    if not any(o.gpu == pool.gpu for o in table.supply.offers):
        return f"no offer has {pool.gpu} any more"
    return f"{shape} is no candidate today, on the nodes that it lies on"


def _nodes(nodes: Iterable[NodePlan], offers: Iterable[PricedOffer]) -> tuple[dict[str, int], list[str]]:
    """Return nodes by today's offers: the same name, or else the only one of the same kind of node, place and term."""
    names = {o.name for o in offers}
    found: dict[str, int] = defaultdict(int)
    gone: list[str] = []
    for node in nodes:
        alike = [o.name for o in offers if _is_alike(o, node)]
        if node.offer in names:
            found[node.offer] += node.nodes
        elif len(alike) == 1:
            found[alike[0]] += node.nodes
        else:
            gone.append(f"offer {node.offer} is not in the supply any more")
    return dict(sorted(found.items())), gone


def _is_alike(offer: PricedOffer, node: NodePlan) -> bool:
    now = (offer.provider, offer.region, offer.instance, offer.gpu, offer.gpus_per_node, offer.term)
    return now == (node.provider, node.region, node.instance, node.gpu, node.gpus_per_node, node.term)
