"""The replay of a fleet: which limits held, what pools did, and how it was done."""

from __future__ import annotations

from collections.abc import Sequence

from planner.plan.replayed import Interval, LimitReplay, PoolReplay, Replayed, TraceUse, WorkloadReplay
from planner.report import figures
from planner.report.content import Table, numbers, texts
from planner.report.sections.workloads import metric_name

SHOWN_WITHOUT_LIMITS = ("ttft_p95", "tpot_p95")
VERDICT_WORDS = {
    "pass": "every limit holds",
    "inconclusive": "no limit fails, but some cannot be told apart from their percentile",
    "fail": "some limit does not hold",
    "unstable": "some pool cannot keep up",
}
_INTERVAL = (
    "Replayed: over all replications, with its 95 % interval, times at the confidence of the spec. Inconclusive: the limit "
    "lies in the interval, or too few requests came."
)
_TRACED = (
    "Interval of a trace, or of one replication: resampled in blocks of time; else: Student's t over replications."
)
BARS = "▁▂▃▄▅▆▇█"
_REQUESTS = (
    "Wait: from arrival to admission. Over time and worst minute: of the first replication, by arrival, the tallest bar the "
    "highest."
)
_POOLS = (
    "Times: replications. In batch: sequences that decode at once in one engine. KV: share of the blocks held, on average while the pool works and at "
    "most. Busy: share of the time that the least and the most busy engine works; at any load it is near 1, and no measure of it."
)


def about(replayed: Replayed) -> list[str]:
    """Return how a fleet was replayed, and what its pools could not serve."""
    batching = replayed.batching or "as the engine settings say"
    lines = [
        f"{figures.count(replayed.replications, 'replication')} from seed {replayed.seed} ({replayed.generator}); "
        f"router {replayed.router}; batching {batching}."
    ]
    if replayed.by_hour:
        lines.append(
            "Hourly demand follows its hours, other demand has its mean rate, headroom included; req/s are at peak."
        )
    if replayed.fail_at_s is not None:
        pools = figures.visible(figures.listed(replayed.loses_replica))
        lines.append(
            f"One replica of {pools} fails after {figures.seconds(replayed.fail_at_s)}; demand without headroom, as spares are "
            "planned for."
        )
    lines += [
        f"Pool {figures.visible(p.name)}{_period(p)} cannot keep up: its queue grows by "
        f"{figures.number(p.queue_growth_requests_per_s)} req/s; its percentiles grow with the length of the replay."
        for p in replayed.pools
        if p.verdict == "unstable"
    ]
    lines += [
        f"Pool {figures.visible(p.name)}{_period(p)}: {figures.count(p.lost, 'request')} had no replica left to serve them."
        for p in replayed.pools
        if p.lost
    ]
    refused = [(w, p) for p in replayed.pools for w in p.workloads if w.refused]
    lines += [
        f"{figures.count(w.refused, 'request')} of {figures.visible(w.name)} refused by pool {figures.visible(p.name)}: longer than it "
        "takes; they are in no percentile."
        for w, p in refused
    ]
    return lines + [_trace(trace) for trace in replayed.traces]


def _trace(trace: TraceUse) -> str:
    skipped = f", {sum(trace.skipped.values()):,} rows left out" if trace.skipped else ""
    how = "time compressed" if trace.scaling == "compressed" else "shifted copies"
    return (
        f"Workload {figures.visible(trace.workload)}: {trace.used:,} requests of {figures.visible(trace.path)} "
        f"(SHA-256 {trace.sha256[:12]}{skipped}), {how}, {figures.number(trace.time_factor)} s per second of the trace."
    )


def latency(pools: Sequence[PoolReplay]) -> Table:
    """Return every limit with its percentile in the replay; of workloads without limits, what they saw."""
    rows = []
    for pool in pools:
        for workload in pool.workloads:
            head = (_name(pool), figures.visible(workload.name), figures.number(workload.requests_per_s))
            rows += [(*head, *_limit(limit)) for limit in workload.limits]
            if not workload.limits:
                rows += [(*head, *_seen(key, workload)) for key in SHOWN_WITHOUT_LIMITS]
    columns = texts("Pool", "Workload") + numbers("req/s") + texts("Limit on")
    columns += numbers("Replayed", "Interval", "Limit", "Margin") + texts("Verdict")
    return Table("Latency in the replay", columns, tuple(rows), (_INTERVAL, _TRACED))


def _limit(limit: LimitReplay) -> tuple[str, ...]:
    if limit.replayed_s is None:
        return (metric_name(limit.metric), "-", "too few requests", figures.seconds(limit.limit_s), "-", limit.verdict)
    margin = 1.0 - limit.replayed_s.value / limit.limit_s
    seen = (figures.seconds(limit.replayed_s.value), _interval(limit.replayed_s))
    return (metric_name(limit.metric), *seen, figures.seconds(limit.limit_s), figures.share(margin), limit.verdict)


def _seen(key: str, workload: WorkloadReplay) -> tuple[str, ...]:
    found = workload.percentiles_s.get(key)
    seen = ("-", "-") if found is None else (figures.seconds(found.value), _interval(found))
    return (metric_name(key), *seen, "-", "-", "-")


def _interval(found: Interval) -> str:
    return f"{figures.seconds(found.low)} to {figures.seconds(found.high)}"


def phases(pools: Sequence[PoolReplay]) -> Table | None:
    """Return the limits before and after a failure, None where nothing fails."""
    rows = [
        (
            _name(pool),
            figures.visible(workload.name),
            metric_name(limit.metric),
            phase.name,
            figures.seconds(limit.replayed_s.value) if limit.replayed_s is not None else "-",
            figures.seconds(limit.limit_s),
            limit.verdict,
        )
        for pool in pools
        for workload in pool.workloads
        for phase in workload.phases
        for limit in phase.limits
    ]
    columns = texts("Pool", "Workload", "Limit on", "Arrived") + numbers("Replayed", "Limit") + texts("Verdict")
    return Table("Before and after the failure", columns, tuple(rows)) if rows else None


def goodput(pools: Sequence[PoolReplay]) -> Table:
    """Return how many requests kept all of their limits, and the worst minute of each workload."""
    columns = texts("Pool", "Workload", "Arrivals") + numbers("Requests", "Within all limits", "Interval", "Wait p95")
    columns += texts("TTFT p95 over time", "Worst minute")
    rows = tuple(
        (
            _name(pool),
            figures.visible(w.name),
            "trace" if w.traced else "drawn",
            f"{w.requests:,}",
            figures.share(w.goodput.value) if w.goodput is not None else "-",
            f"{figures.share(w.goodput.low)} to {figures.share(w.goodput.high)}" if w.goodput is not None else "-",
            figures.seconds(w.percentiles_s["wait_p95"].value) if "wait_p95" in w.percentiles_s else "-",
            _picture([each.ttft_p95_s for each in w.timeline]),
            _worst(w),
        )
        for pool in pools
        for w in pool.workloads
    )
    return Table("Requests", columns, rows, (_REQUESTS,))


def _picture(values: Sequence[float | None]) -> str:
    """Return a bar for each value, the highest eight eighths high; a blank where there is none."""
    most = max((v for v in values if v is not None), default=0.0)
    if most <= 0.0:
        return "-"
    return "".join(" " if v is None else BARS[min(int(v / most * len(BARS)), len(BARS) - 1)] for v in values)


def _worst(workload: WorkloadReplay) -> str:
    worst = workload.worst_minute
    if worst is None:
        return "-"
    return (
        f"{metric_name(worst.metric)} {figures.seconds(worst.value_s)} at {figures.number(worst.requests_per_s)} req/s, "
        f"from {figures.seconds(worst.start_s)}"
    )


def pools(replays: Sequence[PoolReplay]) -> Table:
    """Return what the pools did."""
    columns = texts("Pool", "Verdict") + numbers("Replicas", "Replayed", "Times", "In batch", "KV mean", "KV most")
    columns += numbers("Preempted", "Cached", "Busy")
    rows = tuple(
        (
            _name(p),
            p.verdict,
            f"{p.replicas:,}",
            figures.seconds(p.duration_s),
            f"{p.replications:,}",
            figures.number(p.mean_batch),
            figures.share(p.kv_mean_share),
            figures.share(p.kv_most_share),
            figures.share(p.preempted_share),
            figures.share(p.cached_share),
            f"{figures.share(p.least_busy_share)} to {figures.share(p.most_busy_share)}",
        )
        for p in replays
    )
    return Table("Pools in the replay", columns, rows, (_POOLS,))


def _name(pool: PoolReplay) -> str:
    return figures.visible(pool.name) + _period(pool)


def _period(pool: PoolReplay) -> str:
    return f" ({figures.visible(pool.period)})" if pool.period is not None else ""
