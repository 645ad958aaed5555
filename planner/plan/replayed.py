"""What a replay of a fleet says: by pool and workload, and as the certificate of a plan."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from planner.plan.record import Record

Verdict = Literal["pass", "inconclusive", "fail", "unstable"]
"""Whether limits hold: in doubt where the confidence interval holds the limit; the queues of an unstable pool grow."""
VERDICTS: tuple[Verdict, ...] = ("pass", "inconclusive", "fail", "unstable")


class Interval(Record):
    """A figure with its 95 % confidence interval."""

    value: float
    low: float
    high: float


class LimitReplay(Record):
    """A latency limit against what clients saw in the replay."""

    metric: str
    limit_s: float
    replayed_s: Interval | None
    """None where too few requests came to tell; the verdict is then `inconclusive`."""
    verdict: Verdict


class PhaseReplay(Record):
    """Limits of the requests that arrived before a replica failed, in the minute after, or later."""

    name: str
    limits: tuple[LimitReplay, ...]


class WorstMinute(Record):
    """The minute of the first replication, by arrival, in which a percentile was highest."""

    metric: str
    start_s: float
    requests_per_s: float
    value_s: float


class Slice(Record):
    """Requests of the first replication that arrived in one of equal parts of its time; percentiles are null without any."""

    start_s: float
    requests_per_s: float
    ttft_p95_s: float | None
    tpot_p95_s: float | None


class WorkloadReplay(Record):
    """What the requests of one workload saw in one pool."""

    name: str
    requests_per_s: float
    traced: bool
    """Whether arrivals and lengths are those of a trace; else they are drawn from the spec."""
    requests: int
    """Over all replications, warm-up included."""
    refused: int
    """Requests longer than the pool takes; they are in no percentile."""
    percentiles_s: Mapping[str, Interval]
    """By metric and percentile, such as `ttft_p95`; `wait` is the time until admission, part of `ttft`."""
    limits: tuple[LimitReplay, ...]
    """Where a replica fails: of the requests that arrived later than a minute after."""
    goodput: Interval | None
    """Share of the requests within all of their limits; null without limits."""
    worst_minute: WorstMinute | None
    timeline: tuple[Slice, ...] = ()
    phases: tuple[PhaseReplay, ...] = ()


class PoolReplay(Record):
    """What a pool did, over all replications."""

    name: str
    model: str
    period: str | None = None
    replicas: int
    replications: int
    duration_s: float
    """Of one replication."""
    verdict: Verdict
    queue_growth_requests_per_s: float
    """0 where the pool keeps up."""
    mean_batch: float
    """Sequences that decode at once in one engine, while it works."""
    kv_mean_share: float
    kv_most_share: float
    """Share of the KV blocks that are held, on average while the pool works and at most."""
    preempted_share: float
    """Share of the requests that were preempted at least once."""
    cached_share: float
    """Share of the prompt tokens that were cached."""
    least_busy_share: float
    most_busy_share: float
    """Share of the time in which an engine works, the least and the most busy one."""
    lost: int = 0
    """Requests that no replica was left for."""
    workloads: tuple[WorkloadReplay, ...]
    digest: str
    """SHA-256 of the end of every request: the same on every machine."""


class TraceUse(Record):
    """A trace whose requests a workload got."""

    workload: str
    path: str
    sha256: str
    rows: int
    used: int
    scaling: Literal["compressed", "copies"]
    time_factor: float
    """Seconds of the replay per second of the trace."""
    skipped: Mapping[str, int] = {}
    """Rows that were left out, by reason."""


class Replayed(Record):
    """How a fleet was replayed and what came of it."""

    verdict: Verdict
    """The worst of all pools."""
    seed: int
    replications: int
    generator: Literal["PCG64"] = "PCG64"
    router: str
    batching: str | None = None
    """None: that of the engine settings of each model."""
    by_hour: bool = False
    """Whether drawn arrivals follow the hours of a day, or of a week; else they come at the planned rate throughout."""
    loses_replica: tuple[str, ...] = ()
    """Pools that lose a replica at `fail_at_s`."""
    fail_at_s: float | None = None
    traces: tuple[TraceUse, ...]
    pools: tuple[PoolReplay, ...]


class Tightening(Record):
    """A pool that failed its replay, and the share of its rating that its candidate kept."""

    round: int
    pool: str
    shape: str
    verdict: Verdict
    failed: tuple[str, ...]
    """Limits that did not hold, such as `assistant ttft_p95`."""
    kept_share: float


class Certificate(Record):
    """The replay of the planned fleet, and what was tightened until it held."""

    replayed: Replayed
    rounds: int
    tightened: tuple[Tightening, ...]
    first_usd_per_hour: float
    """Cost of the fleet before anything was tightened."""
    price_usd_per_hour: float
    """What the fleet costs more for what was tightened."""
    gave_up: str | None = None
    """Why the search for a fleet that holds ended before it found one; null where it did."""
