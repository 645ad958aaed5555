"""Frozen types of the candidate stage: resolved models and workloads, priced offers, rated candidates, rejections."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from planner.catalog.engine import EngineProfile
from planner.catalog.quality import QualityEvidence
from planner.physics.bands import Provenance
from planner.physics.memory import EngineMemory, HbmBudget
from planner.physics.types import Architecture, Device, Layout
from planner.spec import ModelSpec, ReliabilitySpec, WorkloadSpec
from planner.spec.vocabulary import SPOT

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Assumption:
    """Something the answer rests on that the user did not say: a key, its value, and where it comes from."""

    key: str
    value: str
    source: str


@dataclass(frozen=True)
class Rejection:
    """A candidate or a service that is ruled out, by which rule and with which numbers.

    `gpu` is empty for a rejection that holds on every GPU type. `workload` is named when only that service is ruled out.
    Where a latency limit is missed, `slo` is its key and `best_s` what an idle replica reaches; `short_bytes` is what the
    memory of a GPU lacks. What of the supply is ruled out has the name of its entry for a shape and, where only one `offer`
    of it is, the name of that.
    """

    rule: str
    model: str
    shape: str
    gpu: str
    reason: str
    workload: str = ""
    slo: str = ""
    best_s: float = 0.0
    short_bytes: float = 0.0
    offer: str = ""


@dataclass(frozen=True)
class ResolvedModel:
    """A model of the spec with everything that defaults and the catalog decide about it."""

    name: str
    spec: ModelSpec
    architecture: Architecture
    engine: EngineProfile
    memory: EngineMemory
    weights: tuple[str, ...]
    kv_cache: tuple[str, ...]
    quality: Mapping[tuple[str, str], QualityEvidence]
    max_model_len: int
    reliability: ReliabilitySpec
    preferred_gpus: tuple[str, ...] = ()


@dataclass(frozen=True)
class ResolvedWorkload:
    """A workload as demand and token distributions.

    `input_tokens` and `output_tokens` are equally likely lengths; `prefill_tokens` with `prefill_weights` are the prompt
    tokens computed after prefix-cache hits; `shared_tokens` of KV are stored once for the share `shared_hit_rate` of the
    requests. `truncated_share` is the share of requests cut to `max_model_len`.
    """

    name: str
    spec: WorkloadSpec
    model: str
    peak_requests_per_s: float
    mean_requests_per_s: float | None
    headroom: float
    input_tokens: Array
    output_tokens: Array
    prefill_tokens: Array
    prefill_weights: Array
    shared_tokens: float
    shared_hit_rate: float
    truncated_share: float

    @property
    def planned_requests_per_s(self) -> float:
        """Rate that the fleet is sized for: the peak with headroom."""
        return self.peak_requests_per_s * (1.0 + self.headroom)

    @property
    def mean_output_tokens(self) -> float:
        """Mean tokens generated per request."""
        return float(self.output_tokens.mean())

    @property
    def mean_input_tokens(self) -> float:
        """Mean prompt tokens per request, shared prefix included."""
        return float(self.input_tokens.mean())


@dataclass(frozen=True)
class Price:
    """Where a price comes from: listed, derived, ratio (estimated), negotiated or owned; its date and source."""

    basis: str
    date: str
    source: str
    stale_unknown: bool = False


@dataclass(frozen=True)
class PricedOffer:
    """A kind of node that can be bought or is owned, at one place, term and price.

    `power_w` is what a node draws with its GPUs at their TDP: for owned nodes with host and PUE where the spec gives them.
    `vcpus` is None where the provider does not say, and for owned nodes. Where hours are planned in several `period`s, this
    is one of as many copies of an offer, `share` the share of hours in its period and the price that of an hour times that;
    copies of one offer that is `reserved` for all hours have its name there. `step` is that of a growing fleet, and `term_steps` the
    steps that nodes are paid for once they are bought, 0 where they are paid by the hour.
    """

    name: str
    entry: str
    provider: str
    region: str
    country: str
    instance: str
    gpu: str
    gpus_per_node: int
    term: str
    usd_per_node_h: float
    price: Price
    power_w: float
    vcpus: int | None = None
    cell: str = ""
    period: str = ""
    share: float = 1.0
    reserved: str = ""
    step: str = ""
    term_steps: int = 0

    @property
    def site(self) -> str:
        """Place whose nodes one replica may span: provider, region and instance."""
        return f"{self.provider}/{self.region}/{self.instance}"

    @property
    def zone(self) -> str:
        """Place that fails as a whole: provider and region."""
        return f"{self.provider}/{self.region}"

    @property
    def is_spot(self) -> bool:
        """Tell whether its nodes can be taken away at any time."""
        return self.term == SPOT


@dataclass(frozen=True, order=True)
class Domain:
    """What the nodes of a supply cell have in common when they fail: spot nodes are taken away, a zone may go dark.

    `node_gpus` are the GPUs that a failing node takes. Zone and node are set where some model is to survive their loss.
    """

    spot: bool = False
    zone: str = ""
    node_gpus: int = 0

    def __str__(self) -> str:
        node = f"node{self.node_gpus}" if self.node_gpus else ""
        return "".join(f"|{part}" for part in ("spot" if self.spot else "", self.zone, node) if part)

    def for_failure(self, survive: str) -> Domain:
        """Return what matters of it to a model that is to survive a kind of failure."""
        return Domain(self.spot, self.zone if survive == "zone" else "", self.node_gpus if survive == "node" else 0)


@dataclass(frozen=True)
class Stock:
    """Fewest (paid for anyway) and most nodes of one spec entry."""

    entry: str
    committed: int
    available: int | None


@dataclass(frozen=True)
class OnDemandPrice:
    """What a GPU costs on demand, and where."""

    usd_per_gpu_h: float
    offer: str


@dataclass(frozen=True)
class Supply:
    """All priced offers, their stock, and what could not be priced.

    `matched` holds the offers that each rule of the limits matches, `on_demand` what GPUs with other terms cost on demand.
    """

    offers: tuple[PricedOffer, ...]
    stock: tuple[Stock, ...]
    rejections: tuple[Rejection, ...]
    assumptions: tuple[Assumption, ...]
    matched: tuple[frozenset[str], ...] = ()
    on_demand: Mapping[str, OnDemandPrice] = field(default_factory=dict)


def shape_name(gpu: str, layout: Layout, weights: str, kv_cache: str) -> str:
    """Return the name of a shape, unique within a model: GPU, layout, formats."""
    parts = [f"tp{layout.tensor}"]
    parts += [f"pp{layout.pipeline}"] if layout.pipeline > 1 else []
    parts += [f"dp{layout.attention_data}"] if layout.attention_data > 1 else []
    parts += [f"ep{layout.expert}"] if layout.expert > 1 else []
    return f"{gpu}-{''.join(parts)}-{weights}-kv{kv_cache}"


@dataclass(frozen=True)
class Shape:
    """A layout of a model on a GPU type in a weight and a KV format, with its memory budget at `max_num_seqs`.

    Predicted times are multiplied by `throughput_factor` and, to the first token, `ttft_factor`; step times would be by
    `measured_factor` had the user measured this combination.
    """

    model: str
    gpu: str
    layout: Layout
    weights: str
    kv_cache: str
    node_gpus: int
    nodes_spanned: int
    device: Device
    budget: HbmBudget
    max_num_seqs: int
    quality: float
    provenance: Provenance
    throughput_factor: float
    ttft_factor: float
    measured_factor: float

    @property
    def name(self) -> str:
        """Short name, unique within a model: GPU, layout, formats."""
        return shape_name(self.gpu, self.layout, self.weights, self.kv_cache)

    @property
    def gpus(self) -> int:
        """GPUs of one replica."""
        return self.node_gpus * self.nodes_spanned


@dataclass(frozen=True)
class Service:
    """What one request of a workload costs one replica of a candidate.

    `busy_s` is replica time per request at the mean batch that the workload's limits allow (its inverse is the
    largest request rate of one replica). `residence_s` is the time a request holds a batch slot and `kv_bytes` the mean
    KV bytes per GPU it holds meanwhile; `streamed_bytes` and `flops` are what one GPU reads and computes for it.
    `mix_share` is its share of the requests of a pool that workloads share, where the rating is for such a mix.
    """

    busy_s: float
    residence_s: float
    kv_bytes: float
    streamed_bytes: float
    flops: float
    mix_share: float | None = None


Flow = Mapping[str, float]
"""Requests/s of several workloads in fixed shares, by workload."""


def flows_of(services: Mapping[str, Service]) -> tuple[Flow, ...]:
    """Return what may be routed to a candidate by itself: each workload, or all of them at the mix of its rating."""
    shares = {w: s.mix_share for w, s in sorted(services.items()) if s.mix_share is not None}
    free = tuple({w: 1.0} for w in sorted(services) if w not in shares)
    return (*free, shares) if shares else free


@dataclass(frozen=True)
class Candidate:
    """A shape with a batch cap, rated: which workloads it can serve, and at what cost in replica time.

    `mean_batch` is the operating point that the latency limits allow, `max_num_seqs` the engine's cap that goes with it,
    `min_replicas` the smallest pool for which the rating holds, `cells` the supply cells its replicas may lie in, all of one
    `domain`. With `cells_by_period`, each replica lies in one of the cells of every period.
    """

    name: str
    shape: Shape
    mean_batch: float
    max_num_seqs: int
    min_replicas: int
    cells: tuple[str, ...]
    kv_pool_bytes: float
    bandwidth_bytes_per_s: float
    flops_per_s: float
    services: Mapping[str, Service]
    domain: Domain = Domain()
    cells_by_period: tuple[tuple[str, ...], ...] = ()

    @property
    def node_replicas(self) -> int:
        """Replicas that a node may hold, where its loss is to be survived; else 0."""
        return replicas_on_node(self.shape, self.domain.node_gpus)


def replicas_on_node(shape: Shape, node_gpus: int) -> int:
    """Return the replicas of a shape that fail with a node of so many GPUs: one where a replica spans nodes."""
    return min(1, node_gpus) if shape.nodes_spanned > 1 else node_gpus // shape.node_gpus


@dataclass(frozen=True)
class CandidateTable:
    """Everything the program is stated over, and everything that was ruled out on the way.

    `held_to` names the offers that some workloads are held to, besides the rules of the spec: what an explanation tries.
    """

    models: Mapping[str, ResolvedModel]
    workloads: Mapping[str, ResolvedWorkload]
    supply: Supply
    candidates: tuple[Candidate, ...]
    rejections: tuple[Rejection, ...]
    rejection_counts: Mapping[str, int]
    assumptions: tuple[Assumption, ...] = field(default=())
    held_to: Mapping[str, frozenset[str]] = field(default_factory=dict)

    @property
    def has_mixes(self) -> bool:
        """Tell whether some candidates take several workloads in the shares of their rating alone."""
        return any(s.mix_share is not None for c in self.candidates for s in c.services.values())

    def at_any_mix(self) -> CandidateTable:
        """Return a table whose shared candidates take workloads in any shares, each at what it takes in the mix that is rated."""

        def free(candidate: Candidate) -> Candidate:
            services = {w: replace(s, mix_share=None) for w, s in candidate.services.items()}
            return replace(candidate, services=services)

        return replace(self, candidates=tuple(free(c) for c in self.candidates))

    def by_model(self) -> dict[str, CandidateTable]:
        """Return, for each model, the table with the candidates of that model alone."""
        own: dict[str, list[Candidate]] = {name: [] for name in self.models}
        for candidate in self.candidates:
            own[candidate.shape.model].append(candidate)
        return {name: replace(self, models={name: self.models[name]}, candidates=tuple(own[name])) for name in own}
