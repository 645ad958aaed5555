"""What `planner diff` answers: how two plans differ in cost, hardware and margins, and what made them differ."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import Field

from planner.plan.record import Record
from planner.plan.schema import InfeasibleReport, PolicyResult, Preferred, Status
from planner.review.verification import Place

Kind = Literal["added", "removed", "changed", "unchanged"]


class SideSummary(Record):
    """One of the two plans."""

    label: str
    """What was given: a file, or `git:REF:PATH`."""
    status: Status
    as_of: str
    usd_per_hour: float | None
    """Null where there is no fleet."""
    usd_per_month: float | None
    """Of the first step, where demand grows."""
    usd_over_horizon: float | None = None
    """Cost of all months that a growing demand is planned for; null where nothing grows."""
    horizon_months: int | None = None
    gap: float | None
    gpus: int
    spec_digest: str
    catalog_digest: str
    planner: str


class Cause(Record):
    """Something that is otherwise on the new side, and what it does to the fleet when the causes are taken one after the other."""

    number: int
    """Pools and workloads name their causes by it."""
    kind: Literal["spec", "catalog", "price", "planner", "date"]
    key: str
    """Key of the spec, file of the catalog, or offer."""
    names: tuple[str, ...] = ()
    """Names that lead to a key of the spec, which may hold dots themselves."""
    where: str | None = None
    """File of the catalog that a price is from."""
    from_: str | None = Field(alias="from")
    """As it is written there; null where it was added."""
    to: str | None
    """Null where it was removed."""
    place: Place | None = None
    """In the new spec, or in the old one for what was removed from it."""
    step: int
    """Causes of one step were taken together: apart, they leave no spec that can be planned, or there are too many."""


class Step(Record):
    """What the causes of one step do when they come on top of those before, the fleet so far preferred."""

    number: int
    usd_per_month_delta: float | None
    """Null where no fleet meets the spec before or after it."""
    usd_over_horizon_delta: float | None = None
    """What it does to the cost of all months, where demand grows before and after it."""
    changes_fleet: bool
    outcome: Literal["planned", "no-fleet", "unsolved", "together"]
    """Planned; no fleet meets the spec from here on; a limit was reached before one was found; or several causes at once."""


class PoolSide(Record):
    """A pool as one of the plans has it."""

    pools: tuple[str, ...]
    replicas: int
    replicas_by_period: Mapping[str, int]
    spare_replicas: tuple[int, ...]
    """Of each pool: what it may lose alone."""
    gpus: int
    max_num_seqs: tuple[int, ...]
    usd_per_month: float
    placement: tuple[str, ...]


class PoolChange(Record):
    """Replicas of one shape of a model."""

    kind: Kind
    model: str
    shape: str
    spot: bool
    old: PoolSide | None
    new: PoolSide | None
    usd_per_month_delta: float
    causes: tuple[int, ...] = ()
    is_direct: bool = True
    """Whether some cause is about the model or its workloads; else it changed because of something else."""


class NodeChange(Record):
    """Nodes of one offer."""

    kind: Kind
    offer: str
    old_nodes: int
    new_nodes: int
    old_nodes_by_period: Mapping[str, int]
    new_nodes_by_period: Mapping[str, int]
    old_usd_per_node_hour: float | None
    new_usd_per_node_hour: float | None
    usd_per_month_delta: float


class LimitChange(Record):
    """A latency limit with its prediction in both plans; margins are shares of the limit that are left."""

    metric: str
    old_limit_s: float | None
    new_limit_s: float | None
    old_predicted_s: float | None
    new_predicted_s: float | None
    old_margin: float | None
    new_margin: float | None


class WorkloadChange(Record):
    """Demand (requests/s at peak), growth, cost and limits of a workload in both plans."""

    kind: Kind
    name: str
    model: str
    old_demand_requests_per_s: float | None
    new_demand_requests_per_s: float | None
    old_holds_to_requests_per_s: float | None
    new_holds_to_requests_per_s: float | None
    old_usd_per_month: float | None
    new_usd_per_month: float | None
    slo: tuple[LimitChange, ...]
    causes: tuple[int, ...] = ()


class PolicyEditRecord(Record):
    """What a change does to one policy: added, removed, or changed in some of its parts."""

    id: str
    rule: str
    kind: Literal["added", "removed", "changed"]
    parts: tuple[str, ...]
    """What changed: limit, workloads, level, waiver, id."""
    loosens: bool
    """Whether some plan may pass now that did not. Such an edit counts once it is merged."""
    tightens: bool
    old_path: str | None
    new_path: str | None


class Difference(Record):
    """How the plan of the new side differs from that of the old one."""

    schema_version: Literal[1] = 1
    fleet: str
    changed: bool
    """Whether fleet, cost, demand or limits differ, today or in the months ahead; margins alone are no change."""
    old: SideSummary
    new: SideSummary
    idle_usd_per_month_delta: float | None
    """Part of the difference that is of committed nodes without replicas, which no pool or workload pays."""
    usd_per_month_delta: float | None
    usd_share_delta: float | None
    """The same as a share of the old cost."""
    is_within_gap: bool
    """Whether the proofs leave room for the whole difference in cost."""
    causes: tuple[Cause, ...]
    steps: tuple[Step, ...]
    pools: tuple[PoolChange, ...]
    nodes: tuple[NodeChange, ...]
    workloads: tuple[WorkloadChange, ...]
    policies: tuple[PolicyResult, ...]
    """Outcomes on the new plan of the policies of both sides, and of files that were given: the stricter wins."""
    policy_edits: tuple[PolicyEditRecord, ...] = ()
    preferred: Preferred | None = None
    """What became of the old fleet, where the new side was planned."""
    infeasible: InfeasibleReport | None = None
    """Why no fleet meets the new side, and what would."""
    unsolved: str | None = None
    """Why no fleet of the new side was found, although none was proven impossible."""
