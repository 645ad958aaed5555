"""What the program is stated over: candidates, demand and supply as plain numbers with units in their names."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TypeVar

from planner.candidates.periods import MARK
from planner.candidates.types import Flow, PricedOffer, Service, Stock, flows_of


@dataclass(frozen=True, slots=True)
class Column:
    """One candidate as the program sees it: capacities of one replica, and the services it may render.

    `node_gpus` is the number of GPUs that one replica takes inside one node and `nodes_spanned` how many such nodes it takes;
    `min_replicas` is the smallest pool for which its rating holds; `cells` are the supply cells it may be placed in;
    with `cells_by_period` it is placed in one of those of every period. `penalty` is what a replica counts in the objective, in
    its unit, besides its nodes. `spot` tells whether its nodes can be
    taken away; `zone` is set where its model is to survive the loss of one, and `node_replicas`, those that a node may hold,
    where it is to survive the loss of a node.
    """

    name: str
    model: str
    shape: str
    gpu: str
    weights: str
    kv_cache: str
    node_gpus: int
    nodes_spanned: int
    min_replicas: int
    cells: tuple[str, ...]
    kv_pool_bytes: float
    batch_slots: float
    bandwidth_bytes_per_s: float
    flops_per_s: float
    services: Mapping[str, Service]
    penalty: float = 0.0
    spot: bool = False
    zone: str = ""
    node_replicas: int = 0
    cells_by_period: tuple[tuple[str, ...], ...] = ()

    @property
    def flows(self) -> tuple[Flow, ...]:
        """What may be routed to the candidate by itself: each workload, or all of them at the mix of its rating."""
        return flows_of(self.services)

    @property
    def gpus(self) -> int:
        """GPUs of one replica."""
        return self.node_gpus * self.nodes_spanned

    @property
    def places(self) -> tuple[tuple[str, ...], ...]:
        """Choices of cells, of each of which a replica takes one: as many as there are periods that it runs in."""
        return self.cells_by_period or (self.cells,)

    @property
    def has_choice(self) -> bool:
        """Tell whether a replica may go to one cell or another."""
        return any(len(cells) > 1 for cells in self.places)


@dataclass(frozen=True, slots=True)
class Demand:
    """Traffic of one workload: the rate to be served, with and without headroom.

    At most `spot_share` of it is served on spot nodes; with `on_demand_floor` also while something is lost.
    """

    workload: str
    model: str
    requests_per_s: float
    headroom: float
    spot_share: float = 1.0
    on_demand_floor: bool = False

    @property
    def planned_requests_per_s(self) -> float:
        """Rate that the fleet is sized for."""
        return self.requests_per_s * (1.0 + self.headroom)


@dataclass(frozen=True, slots=True)
class ModelRules:
    """Rules of one model that bind its pools together."""

    model: str
    max_shapes: int
    uniform_format: bool
    spare_replicas: int
    min_replicas: int


@dataclass(frozen=True, slots=True)
class NodeOffer:
    """A kind of node that can be bought: whole nodes of `gpus_per_node` GPUs at one place, term and price.

    `entry` is the spec entry it comes from (stock and commitments are stated there); `cell` groups the offers of a
    GPU type that the same candidates may use; `power_w` is drawn by one node with its GPUs at their TDP. `period`, `share`
    and `reserved` are set where an offer is there once for every period, `step` and `term_steps` where demand grows; see `PricedOffer`.
    """

    name: str
    entry: str
    gpu: str
    cell: str
    gpus_per_node: int
    usd_per_node_h: float
    power_w: float = 0.0
    period: str = ""
    share: float = 1.0
    reserved: str = ""
    step: str = ""
    term_steps: int = 0


@dataclass(frozen=True, slots=True)
class Quota:
    """A limit of the spec on selected nodes: the `amounts` of one node (by offer) times nodes sum to at most `most`.

    `key` names it in the spec; `unit` is GPUs, nodes, vCPUs or USD/h.
    """

    key: str
    unit: str
    amounts: Mapping[str, float]
    most: float


@dataclass(frozen=True, slots=True)
class CostShare:
    """A limit of the spec on what selected `offers` cost together, as a `share` of the cost of all nodes, those of a `step` alone where demand grows."""

    key: str
    offers: frozenset[str]
    share: float
    step: str = ""


@dataclass(frozen=True, slots=True)
class Outage:
    """The loss of all nodes of one zone, which the other replicas of a model are to survive."""

    model: str
    zone: str


@dataclass(frozen=True, slots=True)
class BlockBound:
    """A proven lower bound on what the replicas of one model cost at `prices` (by candidate), in the same unit."""

    model: str
    prices: Mapping[str, float]
    least: float


@dataclass(frozen=True, slots=True)
class CoverWeights:
    """Weights of the workloads of one model for further `cover` and `spare` rows, largest weight 1."""

    model: str
    weights: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class KeptPool:
    """Replicas of one shape that run already. `columns` are the candidates that they may count as from now on.

    `same` are those of the columns that leave the settings of the replicas as they are.
    """

    name: str
    columns: tuple[str, ...]
    replicas: int
    same: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Kept:
    """A fleet that runs already and is to change as little as possible: the objective counts changes then, before cost.

    `models` are those that have `pools`, `nodes` the nodes by offer. More nodes than those are a change where
    `counts_more` says so, fewer where `counts_fewer` does. `most` is what the new fleet may cost, in the unit of the objective
    (None: anything), `scale` a cost that is about as large. With `is_fixed` nothing may change.
    """

    pools: tuple[KeptPool, ...]
    nodes: Mapping[str, int]
    models: frozenset[str]
    scale: float
    most: float | None = None
    counts_more: bool = True
    counts_fewer: bool = True
    is_fixed: bool = False


@dataclass(frozen=True)
class FleetProblem:
    """Everything the program is compiled from. All tuples are sorted by name; nothing else decides the answer.

    `losses` names the candidates whose loss of spares is stated with a routing of its own (rows `spare_demand` and
    `spare_capacity`), besides the projected rows `spare` that hold for every candidate; `routed_outages` are those of the
    `outages` that are, besides the projected rows `zone_cover`. `block_bounds` are
    bounds found by solving models alone, `cover_weights` weights found by routing. With `kept` the fewest changes of a fleet
    are asked for, not the least cost. `step_shares` are those of the steps of a growing
    demand, also where nothing is worth buying in one.
    """

    columns: tuple[Column, ...]
    demands: tuple[Demand, ...]
    rules: tuple[ModelRules, ...]
    offers: tuple[NodeOffer, ...]
    stock: tuple[Stock, ...] = ()
    gpu_limits: Mapping[str, int] = field(default_factory=dict)
    max_gpu_types: int | None = None
    budget_usd_per_h: float | None = None
    max_power_w: float | None = None
    quotas: tuple[Quota, ...] = ()
    cost_shares: tuple[CostShare, ...] = ()
    outages: tuple[Outage, ...] = ()
    routed_outages: tuple[Outage, ...] = ()
    objective: str = "cost"
    losses: tuple[str, ...] = ()
    block_bounds: tuple[BlockBound, ...] = ()
    cover_weights: tuple[CoverWeights, ...] = ()
    kept: Kept | None = None
    step_shares: Mapping[str, float] = field(default_factory=dict)

    @cached_property
    def steps(self) -> Mapping[str, float]:
        """Steps of a growing demand with their shares of the horizon, in their order; a single one without a name, if nothing grows."""
        return self.step_shares or shares_of_steps(self.offers)

    def columns_of(self, model: str) -> tuple[Column, ...]:
        """Return the candidates of one model."""
        return self._columns_by_model.get(model, ())

    def demands_of(self, model: str) -> tuple[Demand, ...]:
        """Return the demands of one model."""
        return self._demands_by_model.get(model, ())

    def column(self, name: str) -> Column:
        """Return the candidate of a name."""
        return self._columns_by_name[name]

    @cached_property
    def _columns_by_name(self) -> dict[str, Column]:
        return {c.name: c for c in self.columns}

    @cached_property
    def _columns_by_model(self) -> dict[str, tuple[Column, ...]]:
        return _by_model(self.columns)

    @cached_property
    def _demands_by_model(self) -> dict[str, tuple[Demand, ...]]:
        return _by_model(self.demands)


Owned = TypeVar("Owned", Column, Demand, BlockBound, CoverWeights, Outage)


def _by_model(items: Iterable[Owned]) -> dict[str, tuple[Owned, ...]]:
    found: dict[str, list[Owned]] = defaultdict(list)
    for item in items:
        found[item.model].append(item)
    return {model: tuple(own) for model, own in found.items()}


def spares_by_candidate(problem: FleetProblem) -> dict[str, int]:
    """Return the replicas that every pool may lose at once while its model still carries its demand."""
    rules = {r.model: r.spare_replicas for r in problem.rules}
    return {c.name: max(rules[c.model], c.node_replicas) for c in problem.columns}


def by_model(problem: FleetProblem) -> dict[str, FleetProblem]:
    """Return, for each model, the problem with everything about the other models left out; supply stays."""
    bounds, weights = _by_model(problem.block_bounds), _by_model(problem.cover_weights)
    outages, routed = _by_model(problem.outages), _by_model(problem.routed_outages)
    losses = set(problem.losses)
    return {
        rule.model: replace(
            problem,
            columns=problem.columns_of(rule.model),
            demands=problem.demands_of(rule.model),
            rules=(rule,),
            losses=tuple(c.name for c in problem.columns_of(rule.model) if c.name in losses),
            block_bounds=bounds.get(rule.model, ()),
            cover_weights=weights.get(rule.model, ()),
            outages=outages.get(rule.model, ()),
            routed_outages=routed.get(rule.model, ()),
        )
        for rule in problem.rules
    }


def minimises_cost_alone(problem: FleetProblem) -> bool:
    """Tell whether the objective is what the nodes cost, and nothing else."""
    return problem.objective == "cost" and not any(c.penalty for c in problem.columns)


def node_cost(problem: FleetProblem, offer: NodeOffer) -> float:
    """Return what one node counts in the objective: USD/h, GPUs or watts."""
    return counted(problem.objective, offer)


def counted(objective: str, offer: NodeOffer | PricedOffer) -> float:
    """Return what one node of an offer counts by an objective: USD/h (cost), GPUs (gpus) or watts (power).

    Where hours are planned in periods, this is its part of the mean over all hours.
    """
    if objective == "gpus":
        return offer.gpus_per_node * offer.share
    if objective == "power":
        return offer.power_w * offer.share
    return offer.usd_per_node_h


def bought_as(offer: NodeOffer | PricedOffer) -> str:
    """Return the name of what nodes are bought from for several periods or steps at once, empty where each is for itself."""
    return offer.reserved.removesuffix(f"{MARK}{offer.step}") if offer.step else offer.reserved


def shares_of_steps(offers: Iterable[NodeOffer | PricedOffer]) -> dict[str, float]:
    """Return the share of the horizon by step of a growing demand, in their order; all of it without a name, if nothing grows."""
    found: dict[str, float] = defaultdict(float)
    for step, _, share in sorted({(o.step, o.period, o.share) for o in offers}):
        found[step] += share
    return dict(found) if "" not in found else {"": 1.0}


def penalties(problem: FleetProblem, replicas: Mapping[str, int]) -> float:
    """Return what preferences add to the objective of a fleet, replicas by candidate."""
    return sum(c.penalty * replicas.get(c.name, 0) for c in problem.columns)


__all__ = [
    "BlockBound",
    "Column",
    "CostShare",
    "CoverWeights",
    "Demand",
    "FleetProblem",
    "Flow",
    "Kept",
    "KeptPool",
    "ModelRules",
    "NodeOffer",
    "Outage",
    "Quota",
    "Service",
    "Stock",
    "bought_as",
    "by_model",
    "counted",
    "minimises_cost_alone",
    "node_cost",
    "penalties",
    "shares_of_steps",
    "spares_by_candidate",
]
