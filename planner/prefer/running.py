"""What an earlier plan amounts to today: which candidates its replicas count as, which nodes are paid for, what is gone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from planner.candidates.periods import MARK
from planner.candidates.types import Candidate, CandidateTable, PricedOffer
from planner.prefer.broken import Broken
from planner.prefer.earlier import EarlierFleet, EarlierNodes, EarlierPool
from planner.program.data import Kept, KeptPool

OFFERS = "supply.offers"
Kind = tuple[str, str, bool, str, int]
"""Model, shape, whether on spot nodes, zone and node size, as far as the model is to survive their loss."""


@dataclass(frozen=True)
class Piece:
    """Replicas of an earlier pool that are of one kind today, and the candidates of that kind, the nearest first."""

    pool: EarlierPool
    kind: Kind
    replicas: int
    candidates: tuple[Candidate, ...]

    @property
    def name(self) -> str:
        """A name of its own: that of the pool, with its zone where replicas are told apart by it."""
        zone = self.kind[3]
        if not zone:
            return self.pool.name
        base = self.pool.name.removesuffix(f"{MARK}{self.pool.period}") if self.pool.period else self.pool.name
        return f"{base}|{zone}{MARK + self.pool.period if self.pool.period else ''}"


@dataclass(frozen=True)
class Running:
    """An earlier fleet in terms of today's candidates and offers.

    `lost` says of each pool or offer that cannot be had any more why that is. `has_new_models` and `has_gone_models` tell
    whether the spec serves models that it does not, and the other way round. `pieces` are the pools one by one.
    """

    pools: tuple[KeptPool, ...]
    nodes: dict[str, int]
    models: frozenset[str]
    lost: tuple[Broken, ...]
    has_new_models: bool
    has_gone_models: bool
    pieces: tuple[Piece, ...] = ()

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


def running_fleet(fleet: EarlierFleet, table: CandidateTable) -> Running:
    """Return what of a fleet can still be had: candidates of the same model, shape and kind of nodes, and the same offers."""
    asked = {w.model for w in table.workloads.values()}
    pools = [p for p in fleet.pools if p.model in asked]
    pieces: list[Piece] = []
    lost: list[Broken] = []
    for pool in pools:
        kinds = _kinds(pool, table)
        if sum(count for _, count in kinds) < pool.replicas:
            why, key = _why_gone(pool, table)
            lost.append(Broken("supply", pool.name, f"pool {pool.name}: {why}", key=key))
        pieces += [Piece(pool, kind, count, tuple(_nearest_first(kind, pool, table))) for kind, count in kinds]
    found: dict[Kind, int] = defaultdict(int)
    columns: dict[Kind, list[str]] = {}
    same: dict[Kind, set[str]] = defaultdict(set)
    for piece in pieces:
        found[piece.kind] += piece.replicas
        columns[piece.kind] = sorted(c.name for c in piece.candidates)
        same[piece.kind].add(piece.candidates[0].name)
    nodes, gone = _nodes(fleet.nodes, table.supply.offers)
    nodes = _with_committed(nodes, table)
    models = frozenset(p.model for p in pools)
    return Running(
        pools=tuple(
            KeptPool(_name(kind), tuple(columns[kind]), found[kind], frozenset(same[kind])) for kind in sorted(found)
        ),
        nodes=nodes,
        models=models,
        lost=(*lost, *gone),
        has_new_models=bool(asked - models),
        has_gone_models=len(pools) < len(fleet.pools),
        pieces=tuple(pieces),
    )


def _name(kind: Kind) -> str:
    model, shape, is_spot, zone, node_gpus = kind
    marks = (*(["spot"] if is_spot else []), *([zone] if zone else []), *([f"node{node_gpus}"] if node_gpus else []))
    return "|".join((model, shape, *marks))


def _kind(candidate: Candidate) -> Kind:
    shape, domain = candidate.shape, candidate.domain
    return shape.model, shape.name, domain.spot, domain.zone, domain.node_gpus


def _kinds(pool: EarlierPool, table: CandidateTable) -> list[tuple[Kind, int]]:
    """Return what the replicas of a pool are today, with how many of them; those that are nothing any more are left out."""
    kinds = {
        _kind(c)
        for c in table.candidates
        if (c.shape.model, c.shape.name, c.domain.spot) == (pool.model, pool.shape, pool.is_spot)
    }
    fitting = sorted(kind for kind in kinds if kind[4] in (0, pool.node_gpus))
    if any(kind[3] for kind in fitting):
        at = [(kind, pool.placement.get(kind[3], 0)) for kind in fitting]
        return [(kind, count) for kind, count in at if count]
    return [(kind, pool.replicas) for kind in fitting[:1]]


def _nearest_first(kind: Kind, pool: EarlierPool, table: CandidateTable) -> list[Candidate]:
    """Return the candidates of a kind, the nearest to a pool first: one that serves its workloads, then by batch cap."""
    return sorted(
        (c for c in table.candidates if _kind(c) == kind),
        key=lambda c: (
            not pool.workloads <= set(c.services),
            c.min_replicas > pool.replicas,
            abs(c.max_num_seqs - (pool.max_num_seqs or c.max_num_seqs)),
            len(set(c.services) ^ pool.workloads),
            -c.min_replicas,
            c.name,
        ),
    )


def _why_gone(pool: EarlierPool, table: CandidateTable) -> tuple[str, str]:
    """Return why replicas of a pool cannot be had any more, and the key that is in the way."""
    ruled = [r for r in table.rejections if r.model == pool.model and (r.shape or r.gpu) in (pool.shape, pool.gpu)]
    if ruled:
        return f"{pool.shape} is ruled out today ({ruled[0].rule}): {ruled[0].reason}", f"models.{pool.model}"
    if not any(o.gpu == pool.gpu for o in table.supply.offers):
        return f"no offer has {pool.gpu} any more", OFFERS
    return f"{pool.shape} is no candidate today, on the nodes that it lies on", f"models.{pool.model}"


def _nodes(nodes: Iterable[EarlierNodes], offers: Iterable[PricedOffer]) -> tuple[dict[str, int], list[Broken]]:
    """Return nodes by today's offers: the same name, or else the only one of the same kind of node, place and term."""
    names = {o.name for o in offers}
    found: dict[str, int] = defaultdict(int)
    gone: list[Broken] = []
    for node in nodes:
        alike = [o.name for o in offers if _is_alike(o, node)]
        if node.period and not node.nodes and node.by_period:
            continue  # none of them in this period
        if node.offer in names:
            found[node.offer] += node.nodes
        elif len(alike) == 1:
            found[alike[0]] += node.nodes
        else:
            gpu = node.kind[3]
            unknown = f"offer {node.offer} has no such nodes of {gpu} any more"
            reason = f"offer {node.offer} is not in the supply any more" if node.nodes else unknown
            gone.append(Broken("supply", node.offer, reason, key=OFFERS))
    return dict(sorted(found.items())), gone


def _with_committed(nodes: dict[str, int], table: CandidateTable) -> dict[str, int]:
    """Return nodes with those that the spec pays for anyway, where only one offer is of their entry."""
    found = dict(nodes)
    for stock in table.supply.stock:
        offers = [o.name for o in table.supply.offers if o.entry == stock.entry]
        if len(offers) == 1 and found.get(offers[0], 0) < stock.committed:
            found[offers[0]] = stock.committed
    return dict(sorted(found.items()))


def _is_alike(offer: PricedOffer, node: EarlierNodes) -> bool:
    return (node.period, *node.kind) == (
        offer.period,
        offer.provider,
        offer.region,
        offer.instance,
        offer.gpu,
        offer.gpus_per_node,
        offer.term,
    )
