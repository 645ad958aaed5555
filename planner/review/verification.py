"""What `planner verify` answers: whether a fleet that runs still satisfies its spec, and what it would take to repair it."""

from __future__ import annotations

from typing import Literal

from planner.plan.record import Record
from planner.plan.schema import InfeasibleReport, PolicyResult, PreferredChange, Status


class Place(Record):
    """Where a spec has a key; lines and columns count from 1, `end_column` is exclusive."""

    path: str
    line: int
    column: int
    end_column: int


class Stale(Record):
    """Something that a plan was made with and that is another today. What is stale may still hold."""

    what: Literal["spec", "catalog", "calibration", "planner", "date", "certificate"]
    then: str
    now: str


class BrokenLimit(Record):
    """One thing that the fleet breaks."""

    check: str
    """Kind of what is broken: supply, limit, demand, latency, load, loss, settings, routing."""
    subject: str
    """Pool, offer, model, workload or key that it is about."""
    period: str | None = None
    """Period in which it is broken, where demand is hourly."""
    reason: str
    key: str
    """Key of the spec that asks for it."""
    metric: str | None = None
    """Unit of `limit` and `actual`: an SLO key (seconds), `share` (of the demand) or `load`; null where it is that of the key."""
    limit: float | None = None
    actual: float | None = None
    place: Place | None = None


class VerifiedLimit(Record):
    """One latency limit of a workload, in the plan and today."""

    metric: str
    limit_s: float | None
    """Of today; null where the workload is gone or has no such limit any more."""
    predicted_s: float | None
    """Of today, null where queues would grow without end or nothing is known of it."""
    margin: float | None
    """Share of the limit that is left, negative where it is missed."""
    planned_limit_s: float | None = None
    planned_s: float | None = None
    planned_margin: float | None = None


class VerifiedWorkload(Record):
    """Demand (requests/s at peak, headroom not counted) and latency limits of a workload, in the plan and today."""

    name: str
    model: str
    demand_requests_per_s: float | None
    planned_requests_per_s: float | None
    holds_to_requests_per_s: float | None
    """Demand above which the fleet no longer holds every rule; null for a fleet that breaks one already."""
    slo: tuple[VerifiedLimit, ...]


class Repair(Record):
    """The fleet with the fewest changes that meets the spec again, at most `stay_within` dearer than the best one."""

    status: Status
    usd_per_month: float | None
    usd_per_month_delta: float | None
    """Against what the fleet that runs costs today."""
    changes: tuple[PreferredChange, ...] = ()
    infeasible: InfeasibleReport | None = None
    """Why there is none, and what would make one."""


class Verification(Record):
    """Whether a fleet still satisfies a spec."""

    fleet: str
    subject: str
    """File of the plan, or `deployed`."""
    spec: str
    """File of the spec."""
    as_of: str
    """Day that prices, ends of offers and waivers are seen from."""
    holds: bool
    broken: tuple[BrokenLimit, ...]
    stale: tuple[Stale, ...]
    rerouted: tuple[str, ...] = ()
    """Models whose traffic must be shared out otherwise than in the plan for it to hold."""
    workloads: tuple[VerifiedWorkload, ...]
    usd_per_month: float | None
    """Of the nodes that run, at today's prices; null where some of them have none."""
    planned_usd_per_month: float | None
    policies: tuple[PolicyResult, ...] = ()
    """Not evaluated for a fleet that breaks something else."""
    repair: Repair | None = None
    """Absent where the fleet holds, or none was asked for."""


class Verifications(Record):
    """The answer of `planner verify`: one verification for each plan."""

    schema_version: Literal[1] = 1
    verified: tuple[Verification, ...]
