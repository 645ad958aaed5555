"""The plan as it is saved and printed in JSON: what users, reviewers and pipelines read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import Field

from planner.plan.record import Record
from planner.plan.replayed import Certificate

EXCLUDED = ("egress", "storage", "support", "tax", "staff")

Status = Literal["solved", "unproven", "infeasible"]
Resource = Literal["capacity", "bandwidth", "compute", "interconnect", "overhead", "queueing"]
PolicyOutcome = Literal["ok", "warn", "deny", "waived", "not_evaluated"]


class Objective(Record):
    """What the fleet costs and how far from the best it can be."""

    minimised: Literal["cost", "gpus", "power"]
    """What the program minimised; `value` and `bound` are in USD/h, GPUs or watts."""
    value: float
    bound: float
    usd_per_hour: float
    """Mean over periods, weighted by their hours."""
    peak_usd_per_hour: float
    """In the dearest period."""
    usd_per_month: float
    bound_usd_per_hour: float | None
    """Proven lower bound on the cost; null when something else is minimised, preferences included."""
    preference_penalty: float = 0.0
    """Part of `value` that stands for GPUs that are not preferred; nothing is paid for it."""
    gap: float
    """Distance of `value` from `bound`, as a share of `value`."""
    committed_usd_per_month: float
    idle_committed_usd_per_month: float
    """Cost of committed nodes that hold no replica."""


class Period(Record):
    """Hours of the month that are planned as one; a single one named `peak` where no demand is hourly."""

    name: str
    hours_per_month: float


class Engine(Record):
    """The serving engine of a pool."""

    name: str
    version: str


class Serving(Record):
    """How the engine of a pool is started, beyond its layout, formats and caps: what deployment files need."""

    repository: str | None
    """Repository of the model's own weights, by its catalog name; null where the spec brings a `config.json`."""
    native_weights: str
    """Format of the weights in that repository."""
    gpu_memory_utilization: float
    chunked_prefill: bool
    prefix_caching: bool
    block_size: int
    """Tokens per block of the KV cache."""
    gpus_in_node: int
    """GPUs of one replica inside one node: fewer than it has where it spans nodes."""


class Placement(Record):
    """Replicas of a pool at one place."""

    provider: str
    region: str
    replicas: int


class HbmBytes(Record):
    """Memory of one GPU, the fullest of a replica; the parts sum to `usable`."""

    usable: float
    weights: float
    kv_pool: float
    activations: float
    runtime: float
    graphs: float
    free: float


class Predicted(Record):
    """Latency and rate of a pool at the planned load, times already multiplied by the confidence factor."""

    ttft_p50_s: float
    ttft_p95_s: float
    tpot_p50_s: float
    tpot_p95_s: float
    output_tokens_per_s: float
    requests_per_s: float


class PlanBand(Record):
    """How sure the speed is: provenance class, and the factor that the confidence asks for on step times."""

    provenance: Literal["A", "B", "C", "D"] = Field(alias="class")
    measured: Literal["own", "published", "none"] = "none"
    """Whether this very combination of engine, GPU, kind of model and weight format was measured, and by whom."""
    factor: float
    ttft_factor: float
    factor_if_measured: float = 1.0
    """Factor on step times that the confidence would ask for had the user measured five runs of this combination."""
    measuring_saves_usd_per_hour: float = 0.0
    """Share of the pool's cost that the narrower factor frees if the prediction itself stays; whole nodes not counted."""


class RowLoad(Record):
    """What a pool uses of one capacity at the planned load, and what its replicas offer, over all of them."""

    row: str
    """Name of the row of the program, such as `hbm_budget`."""
    unit: str
    used: float
    available: float


class Pool(Record):
    """Equal replicas of one candidate of one model."""

    name: str
    model: str
    engine: Engine
    gpu: str
    tensor_parallel: int
    pipeline_parallel: int
    expert_parallel: int
    attention_data_parallel: int
    weights: str
    kv_cache: str
    checkpoint: str | None
    max_model_len: int
    max_num_seqs: int
    max_num_batched_tokens: int
    serving: Serving | None = None
    """Absent from plans of older releases."""
    replicas: int
    """At most in any period, spares included. What else is said about the pool is about the first such period, `period`; its
    cost and what has periods of its own aside."""
    spare_replicas: int
    """Replicas that this pool may lose while the model still carries its demand, headroom not counted."""
    gpus: int
    spot: bool = False
    """Whether its nodes are spot, which can be taken away at any time."""
    gpus_per_node: int | None = None
    """Size of all its nodes, where the model is to survive the loss of one; else null: they may be of any size."""
    replicas_by_period: Mapping[str, int]
    placement: tuple[Placement, ...]
    workloads: Mapping[str, float]
    """Requests/s of each workload in the period of its peak, headroom included."""
    workloads_by_period: Mapping[str, Mapping[str, float]] | None = None
    """Requests/s of each workload in each period, headroom included; absent where there is only one period."""
    hbm_bytes_per_gpu: HbmBytes
    kv_tokens: float
    max_concurrency: float
    """Sequences of `max_model_len` tokens that one replica holds at once."""
    mean_batch: float
    """Sequences decoding at once on one replica, on average at the planned load."""
    predicted: Predicted
    band: PlanBand
    utilization: float
    """Load as a share of what the latency limits allow."""
    rows: tuple[RowLoad, ...] = ()
    """Every capacity of the pool with what is used of it; empty in plans of older releases."""
    usd_per_hour: float
    """Its share of the nodes it lies on, by GPUs; mean over periods, weighted by their hours."""
    limited_by: Resource
    lever: str

    @property
    def period(self) -> str:
        """Period that the figures of the pool are of: the first one in which it has most replicas."""
        return max(self.replicas_by_period, key=lambda name: self.replicas_by_period[name])

    @property
    def traffic(self) -> Mapping[str, float] | None:
        """Requests/s of each workload in `period`, headroom included; None where a plan of an older release does not say."""
        if self.workloads_by_period is not None:
            return self.workloads_by_period[self.period]
        return self.workloads if len(self.replicas_by_period) == 1 else None


class SloCheck(Record):
    """One latency limit against the prediction, worst pool first."""

    metric: str
    limit_s: float
    predicted_s: float
    margin: float
    """Share of the limit that is left."""


class ApiComparison(Record):
    """A workload on this fleet against the API that its spec names, at the rate that its money per token is computed at.

    Only money is compared. The cost of the fleet is held fixed at what is planned.
    """

    name: str | None
    cached_input_share: float
    """Share of prompt tokens at the price of cached ones."""
    usd_per_request: float
    """Price of a request of mean length on the API."""
    requests_per_s: float
    """Mean rate, or the peak where there is no mean."""
    usd_per_month: float
    """What the API takes at that rate."""
    self_hosted_usd_per_month: float
    """Its share of all that is paid for the fleet, idle nodes included, by what it costs without them."""
    cheaper: Literal["self", "api"]
    break_even_requests_per_s: float
    """Mean rate at which the API takes as much as the fleet."""
    break_even_utilization: float
    """That rate as a share of the most that the fleet carries, all hours grown alike; above 1 the API is always cheaper."""


class WorkloadPlan(Record):
    """What a workload asks for and what it gets."""

    name: str
    model: str
    demand_requests_per_s: float
    """Peak, without headroom."""
    capacity_requests_per_s: float
    """Most this fleet can serve of it while everything else keeps its planned rate, headroom included."""
    slo: tuple[SloCheck, ...]
    usd_per_month: float
    usd_per_million_tokens: float
    """Money over all tokens, input and output."""
    usd_per_million_output_tokens: float
    at: Literal["mean", "peak"]
    """Rate that the money per token is computed at."""
    next_step_requests_per_s: float
    """Demand, without headroom, above which this fleet no longer holds every rule: the next node is due there."""
    api: ApiComparison | None = None
    """What an API would cost; absent for workloads that are not compared."""


class PriceTag(Record):
    """Where a price comes from."""

    basis: Literal["listed", "derived", "ratio", "negotiated", "owned"]
    date: str
    source: str


class NodePlan(Record):
    """Nodes of one offer that are paid for."""

    offer: str
    provider: str
    region: str
    country: str | None = None
    """ISO code of two letters; absent where it is not known."""
    instance: str
    gpu: str
    gpus_per_node: int
    term: str
    nodes: int
    """At most in any period."""
    nodes_by_period: Mapping[str, int]
    usd_per_node_hour: float
    usd_per_hour: float
    """Of all of them, as the mean over periods, weighted by their hours."""
    power_w: float = 0.0
    """Power of all of them, their GPUs at TDP; for owned nodes with host and PUE where the spec gives them."""
    price: PriceTag


class Commitment(Record):
    """Nodes of one offer that are paid for whether used or not: committed, owned, or bought for a year or more."""

    offer: str
    gpu: str
    gpus_per_node: int
    term: str
    until: str | None
    upfront: str | None
    """How much is paid in advance: none, partial or all; null for terms below a year."""
    nodes: int
    idle_nodes: int
    """Of those, nodes that hold no replica in any period."""
    gpu_utilization: float
    """Share of their GPUs that replicas take, on average over all hours."""
    usd_per_month: float
    idle_usd_per_month: float
    """What they cost in hours in which they hold no replica."""
    on_demand_usd_per_gpu_hour: float | None
    """Cheapest on-demand price of the same GPU: among the offers of the spec, or else in the catalog."""
    on_demand_offer: str | None
    break_even_utilization: float | None
    """Share of the GPU hours in use from which on demand would cost as much; above 1 it is always cheaper."""


class Rejections(Record):
    """How many shapes and services were ruled out, by rule."""

    total: int
    by_rule: Mapping[str, int]


class PlanAssumption(Record):
    """Something the answer rests on that the spec does not say."""

    key: str
    value: str
    source: str


class PolicyWaiver(Record):
    """The exception that a policy has."""

    reason: str
    by: str
    until: str
    """Last day on which it holds."""
    expired: bool


class PolicyResult(Record):
    """Outcome of one policy. What its numbers count is part of the rule: USD per month or per million tokens, shares, days."""

    id: str
    rule: str
    outcome: PolicyOutcome
    limit: float | str | None
    actual: float | str | None
    path: str
    """Its place in its file."""
    at: str | None = None
    """What has the actual value: a workload with its limit, an offer, a pool, a part of the cost; absent for the whole fleet."""
    file: str | None = None
    """File of the policy; absent for the spec of the plan."""
    waiver: PolicyWaiver | None = None
    """Its exception, whether needed or not; absent without one."""


class Digests(Record):
    """SHA-256 of what went in and of what came out."""

    spec: str
    catalog: str
    calibration: str
    inputs: str
    plan: str


class Versions(Record):
    """Releases of the software that made the plan."""

    planner: str
    pyomo: str
    highs: str


class Conflict(Record):
    """A key of the spec that takes part in the infeasibility."""

    key: str
    value: str


class Relaxation(Record):
    """A change of one key of the spec; the changes of one way, together, make it feasible, verified by planning it.

    Values are YAML, as the spec has them; `from` is `null` for a key that it does not have.
    """

    key: str
    from_: str = Field(alias="from")
    to: str
    usd_per_hour: float | None
    """Cost of the fleet that the way leads to."""
    way: int = 1
    """Number of the way that this change belongs to; the changes of one way are made together."""


class InfeasibleReport(Record):
    """Why no fleet meets the spec, and what would."""

    reason: str
    conflict: tuple[Conflict, ...] = ()
    relaxations: tuple[Relaxation, ...] = ()


class PreferredChange(Record):
    """Something that the planned fleet has otherwise than the preferred one: replicas of a shape, nodes, batch caps."""

    kind: Literal["replicas", "nodes", "max_num_seqs"]
    name: str
    """Model and shape, or offer."""
    from_: int = Field(alias="from")
    to: int


class Preferred(Record):
    """What became of the fleet that was to be kept."""

    plan: str | None
    """Digest of the plan that it comes from; null for what the spec says is deployed."""
    outcome: Literal["kept", "changed", "not_possible"]
    """Kept as it is; changed as little as possible; or given up for the best fleet, if there is any."""
    stay_within: float
    """Share of the best value of the objective that the planned fleet may count more."""
    best_usd_per_hour: float | None = None
    """Cost of the best fleet that was found."""
    would_save_usd_per_hour: float | None = None
    """What the best fleet would save against the planned one."""
    would_save: float | None = None
    """The same as a share of the cost of the best one, as `stay_within` is."""
    reasons: tuple[str, ...] = ()
    """Why the preferred fleet is not kept as it is."""
    changes: tuple[PreferredChange, ...] = ()


class GrowthPool(Record):
    """A pool of a step of a growing fleet."""

    name: str
    model: str
    shape: str
    replicas: int


class GrowthStep(Record):
    """Months of a growing fleet that are planned as one."""

    first_month: int
    """From 1, which is today."""
    months: int
    due: str
    """Day that it starts."""
    requests_per_s: Mapping[str, float]
    """Demand by workload, headroom not counted: that of the last month of the step."""
    usd_per_month: float
    nodes: Mapping[str, int]
    """Nodes by offer."""
    change: Mapping[str, int]
    """Nodes more (or less, below zero) than in the step before, by offer; in the first, all of them."""
    pools: tuple[GrowthPool, ...]


class Purchase(Record):
    """Nodes of a long term that are bought at the start of a step."""

    offer: str
    term: str
    nodes: int
    first_month: int
    due: str
    """Day to buy them."""
    until: str
    """Day that the term ends."""
    usd_per_month: float
    usd_after_horizon: float
    """What is still to be paid when the horizon ends."""


class GrowthPlan(Record):
    """What a growing fleet needs in the months ahead; the plan that it is part of is that of its first step."""

    horizon_months: int
    growth_per_month: Mapping[str, float]
    """By workload, as a share of its demand."""
    usd: float
    """Cost over the horizon: payments that are due until it ends."""
    bound_usd: float | None
    """Proven lower bound on `usd`; null when something else is minimised, preferences included."""
    usd_after_horizon: float
    """What is still to be paid for terms that run longer."""
    steps: tuple[GrowthStep, ...]
    purchases: tuple[Purchase, ...]
    """Nodes of long terms, those to buy first first."""


class ScenarioPlan(Record):
    """A scenario that a fleet was to hold in, and how it and the nominal fleet fare there."""

    name: str
    values: Mapping[str, str]
    """Values of the keys that are otherwise than in the spec, as YAML."""
    holds: bool
    """Whether the scenario can be served on the nodes of the plan: a fleet on them was found and audited; else proven impossible."""
    nominal_holds: bool
    """The same of the nodes that would be bought for the spec alone."""
    decides: bool
    """Whether the plan was made with it; the others follow from these."""


class RobustPlan(Record):
    """What a fleet holds in besides the spec, and what that costs."""

    hold_in: float
    """Share of the scenarios that it was to hold in."""
    held: int
    nominal_held: int
    nominal_usd_per_month: float
    """Cost of the cheapest fleet for the spec alone."""
    nominal_nodes: Mapping[str, int]
    """Its nodes by offer."""
    extra_usd_per_month: float
    """What holding in the scenarios costs more than that."""
    scenarios: tuple[ScenarioPlan, ...]


class Plan(Record):
    """The answer to a spec."""

    schema_version: Literal[1] = 1
    fleet: str
    status: Status
    as_of: str
    objective: Objective | None
    periods: tuple[Period, ...]
    demand_by_period: Mapping[str, Mapping[str, float]] | None = None
    """Requests/s of every workload in each period, headroom not counted; absent where there is only one period."""
    pools: tuple[Pool, ...]
    workloads: tuple[WorkloadPlan, ...]
    max_load_factor: float | None = None
    """Factor on all demands at once up to which this fleet holds every rule; absent from plans without pools."""
    nodes: tuple[NodePlan, ...]
    commitments: tuple[Commitment, ...] = ()
    candidates: int = 0
    """Candidates that the program chose from."""
    rejections: Rejections
    assumptions: tuple[PlanAssumption, ...]
    excluded: tuple[str, ...] = EXCLUDED
    policies: tuple[PolicyResult, ...]
    digests: Digests
    versions: Versions
    growth: GrowthPlan | None = None
    """The months ahead; absent where demand does not grow. `objective` has the mean over them in `value`, `bound` and `gap` then."""
    robust: RobustPlan | None = None
    """The scenarios that the nodes hold in; absent where there was only the spec."""
    infeasible: InfeasibleReport | None = None
    """Why no fleet meets the spec; absent from the JSON of other plans."""
    preferred: Preferred | None = None
    """What became of the fleet of an earlier plan; absent where none was to be kept."""
    certificate: Certificate | None = None
    """Replay of the fleet on real or drawn traffic; absent from plans that were not certified."""
    unsolved: str | None = None
    """Why there is no plan although none was proven impossible (a limit was reached); absent otherwise."""
