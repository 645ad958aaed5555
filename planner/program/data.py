"""What the program is stated over: candidates, demand and supply as plain numbers with units in their names."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from planner.candidates.types import Service, Stock


@dataclass(frozen=True, slots=True)
class Column:
    """One candidate as the program sees it: capacities of one replica, and the services it may render.

    `node_gpus` is the number of GPUs that one replica takes inside one node and `nodes_spanned` how many such nodes it takes;
    `min_replicas` is the smallest pool for which its rating holds; `cells` are the supply cells it may be placed in.
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

    @property
    def gpus(self) -> int:
        """GPUs of one replica."""
        return self.node_gpus * self.nodes_spanned


@dataclass(frozen=True, slots=True)
class Demand:
    """Traffic of one workload: the rate to be served, with and without headroom."""

    workload: str
    model: str
    requests_per_s: float
    headroom: float

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
    GPU type that the same candidates may use.
    """

    name: str
    entry: str
    gpu: str
    cell: str
    gpus_per_node: int
    usd_per_node_h: float
    gpu_power_w: float = 0.0


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
class FleetProblem:
    """Everything the program is compiled from. All tuples are sorted by name; nothing else decides the answer.

    `losses` names the candidates whose loss of spares is stated with a routing of its own (rows `spare_demand` and
    `spare_capacity`), besides the projected rows `spare` that hold for every candidate. `block_bounds` are
    bounds found by solving models alone, `cover_weights` weights found by routing.
    """

    columns: tuple[Column, ...]
    demands: tuple[Demand, ...]
    rules: tuple[ModelRules, ...]
    offers: tuple[NodeOffer, ...]
    stock: tuple[Stock, ...] = ()
    gpu_limits: Mapping[str, int] = field(default_factory=dict)
    max_gpu_types: int | None = None
    budget_usd_per_h: float | None = None
    objective: str = "cost"
    losses: tuple[str, ...] = ()
    block_bounds: tuple[BlockBound, ...] = ()
    cover_weights: tuple[CoverWeights, ...] = ()

    def columns_of(self, model: str) -> tuple[Column, ...]:
        """Return the candidates of one model."""
        return tuple(c for c in self.columns if c.model == model)

    def demands_of(self, model: str) -> tuple[Demand, ...]:
        """Return the demands of one model."""
        return tuple(d for d in self.demands if d.model == model)


def by_model(problem: FleetProblem) -> dict[str, FleetProblem]:
    """Return, for each model, the problem with everything about the other models left out; supply stays."""
    columns: dict[str, list[Column]] = defaultdict(list)
    demands: dict[str, list[Demand]] = defaultdict(list)
    bounds: dict[str, list[BlockBound]] = defaultdict(list)
    weights: dict[str, list[CoverWeights]] = defaultdict(list)
    for column in problem.columns:
        columns[column.model].append(column)
    for demand in problem.demands:
        demands[demand.model].append(demand)
    for bound in problem.block_bounds:
        bounds[bound.model].append(bound)
    for found in problem.cover_weights:
        weights[found.model].append(found)
    losses = set(problem.losses)
    return {
        rule.model: replace(
            problem,
            columns=tuple(columns[rule.model]),
            demands=tuple(demands[rule.model]),
            rules=(rule,),
            losses=tuple(c.name for c in columns[rule.model] if c.name in losses),
            block_bounds=tuple(bounds[rule.model]),
            cover_weights=tuple(weights[rule.model]),
        )
        for rule in problem.rules
    }


def node_cost(problem: FleetProblem, offer: NodeOffer) -> float:
    """Return what one node counts in the objective: USD/h, GPUs or watts."""
    if problem.objective == "gpus":
        return float(offer.gpus_per_node)
    if problem.objective == "power":
        return offer.gpus_per_node * offer.gpu_power_w
    return offer.usd_per_node_h


__all__ = [
    "BlockBound",
    "Column",
    "CoverWeights",
    "Demand",
    "FleetProblem",
    "ModelRules",
    "NodeOffer",
    "Service",
    "Stock",
    "by_model",
    "node_cost",
]
