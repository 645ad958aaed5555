"""From replays to statements: percentiles with confidence intervals, goodput, the worst minute, whether queues grow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

from planner.plan.replayed import Interval, Slice, WorstMinute
from planner.simulate.replay import PoolRun
from planner.simulate.traffic import Floats

PERCENTILES = (50, 90, 95, 99)
METRICS = ("ttft", "tpot", "e2e")
SEEN = ("wait", *METRICS)
LEVEL = 0.95  # of all intervals
LEAST_WARM_UP = 1000  # requests
BATCHES_WARM_UP = 10  # requests per sequence that runs
RESIDENCES_WARM_UP = 3.0
MOST_WARM_UP_SHARE = 0.2  # of the requests: short replays start in what they have
RESAMPLES = 200
BLOCK_S = 300.0  # of resampling a trace; at least MOST_BLOCKS of them
LEAST_BLOCKS = 12
SEED_OF_RESAMPLES = 1
MINUTE_S = 60.0
SLICES = 24
LEAST_IN_MINUTE = 20
GROWING = (
    1.5,
    1.3,
)  # the second third of the requests waits longer than the first, and the last than the second, by this
LEAST_WAIT_S = 1.0  # waits below that are not said to grow
LEAST_GROWING = 3000  # requests; with fewer, waits by thirds tell nothing
LEAST_BEYOND = 5  # requests above a percentile, over all replications: with fewer it is no percentile
BACKLOG = 3.0  # requests there at the last arrival, per slot, or per sequence that runs on average
MOST_BACKLOG_SHARE = 0.1  # of all requests


@dataclass(frozen=True)
class Latencies:
    """Latencies that clients see of the requests of one workload in one replication, seconds, by metric.

    `wait` is the time until admission, part of `ttft`. Requests of one token have no `tpot` (nan). `within` is 1 where a request keeps all limits that apply to it, else 0.
    """

    arrival_s: Floats
    wait: Floats
    ttft: Floats
    tpot: Floats
    e2e: Floats
    within: Floats

    def of(self, metric: str) -> Floats:
        """Return the values of one metric, of the requests that have it."""
        found: Floats = getattr(self, metric)
        return found[~np.isnan(found)]

    def during(self, start_s: float, end_s: float) -> Latencies:
        """Return the requests that arrive from `start_s` on and before `end_s`."""
        own = (self.arrival_s >= start_s) & (self.arrival_s < end_s)
        columns = (self.arrival_s, self.wait, self.ttft, self.tpot, self.e2e, self.within)
        return Latencies(*(column[own] for column in columns))


def latencies(run: PoolRun, workload: str, limits: Mapping[str, float], request_s: float, factor: float) -> Latencies:
    """Return what clients of a workload see after the warm-up; `limits` in seconds by key, such as `ttft_p95`.

    The time to first token is that of the engine plus `request_s`, times `factor`.
    """
    own = (run.workload == run.workloads.index(workload)) & (np.arange(run.workload.size) >= warm_up(run))
    arrival, first, finish, tokens = run.arrival_s[own], run.first_s[own], run.finish_s[own], run.output_tokens[own]
    ttft = (first - arrival + request_s) * factor
    decode = finish - first
    tpot = np.where(tokens > 1, decode / np.maximum(tokens - 1, 1), np.nan)
    wait = run.admitted_s[own] - arrival
    found = Latencies(arrival, wait, ttft, tpot, ttft + decode, np.ones(arrival.size))
    for key, limit in sorted(limits.items()):
        metric = key.partition("_")[0]
        if metric in METRICS:
            values: Floats = getattr(found, metric)
            found.within[values > limit] = 0.0
    return found


def warm_up(run: PoolRun) -> int:
    """Return how many requests at the start are left out, as engines start empty."""
    count = run.arrival_s.size
    if count == 0 or run.span_s == 0.0:
        return 0
    rate = count / run.span_s
    residence = float(np.mean(run.finish_s - run.arrival_s))
    running = BATCHES_WARM_UP * mean_batch(run) * len(run.occupancy)
    asked = max(float(LEAST_WARM_UP), running, RESIDENCES_WARM_UP * rate * residence)
    return int(min(asked, MOST_WARM_UP_SHARE * count))


def mean_batch(run: PoolRun) -> float:
    """Return the sequences that decode in one engine on average while it works."""
    busy = sum(o.busy_ps for o in run.occupancy)
    return sum(o.batch_ps for o in run.occupancy) / busy if busy else 0.0


def percentile(samples: Sequence[Latencies], metric: str, percent: float, *, resampled: bool) -> Interval | None:
    """Return a percentile over replications with its interval; None where too few requests have the metric.

    Over independent replications: Student's t on the logarithms. `resampled`, where arrivals are those of one trace and so
    the same in all, or there is one replication: it is resampled in blocks of time, which keeps bursts whole (block bootstrap).
    """
    values = [each.of(metric) for each in samples]
    count = sum(v.size for v in values)
    if not all(v.size for v in values) or count * (1.0 - percent / 100.0) < LEAST_BEYOND:
        return None
    if resampled or len(samples) == 1:
        point = float(np.percentile(np.concatenate(values), percent))
        low, high = _resampled(samples[0], metric, percent)
        return Interval(value=point, low=min(low, point), high=max(high, point))
    return interval_of([max(float(np.percentile(v, percent)), 1e-12) for v in values])


def goodput(samples: Sequence[Latencies], *, resampled: bool) -> Interval | None:
    """Return the share of requests within all of their limits, with its interval."""
    if not all(each.within.size for each in samples):
        return None
    shares = [float(each.within.mean()) for each in samples]
    value = float(np.mean(shares))
    if resampled or len(samples) == 1:
        low, high = _bounds([float(each.mean()) for each in _blocks(samples[0], samples[0].within) if each.size])
        return Interval(value=value, low=min(low, value), high=max(high, value))
    half = _t_half(shares)
    return Interval(value=value, low=max(0.0, value - half), high=min(1.0, value + half))


def interval_of(values: Sequence[float]) -> Interval:
    """Return the mean of positive figures of replications, in the logarithm, with Student's interval."""
    logs = np.log(values)
    middle, half = float(np.mean(logs)), _t_half(logs.tolist())
    return Interval(value=float(np.exp(middle)), low=float(np.exp(middle - half)), high=float(np.exp(middle + half)))


def _t_half(values: Sequence[float]) -> float:
    if len(values) < 2:
        return 0.0
    spread = float(np.std(values, ddof=1)) / np.sqrt(len(values))
    return float(stdtrit(len(values) - 1, 0.5 + LEVEL / 2.0) * spread)


def _resampled(sample: Latencies, metric: str, percent: float) -> tuple[float, float]:
    parts = [each[~np.isnan(each)] for each in _blocks(sample, getattr(sample, metric))]
    return _bounds([float(np.percentile(each, percent)) for each in parts if each.size])


def _blocks(sample: Latencies, values: Floats) -> list[Floats]:
    """Return resamples of values that go with arrivals: as many blocks of time as there are, each drawn by chance."""
    span = float(sample.arrival_s[-1] - sample.arrival_s[0])
    count = max(LEAST_BLOCKS, int(span / BLOCK_S))
    edges = sample.arrival_s[0] + span * np.arange(1, count) / count
    blocks = np.split(values, np.searchsorted(sample.arrival_s, edges))
    draw = np.random.Generator(np.random.PCG64(SEED_OF_RESAMPLES))
    picks = draw.integers(0, count, (RESAMPLES, count))
    return [np.concatenate([blocks[i] for i in row]) for row in picks.tolist()]


def _bounds(values: Sequence[float]) -> tuple[float, float]:
    tail = 100.0 * (1.0 - LEVEL) / 2.0
    low, high = np.percentile(values, [tail, 100.0 - tail])
    return float(low), float(high)


def metric_of(key: str) -> tuple[str, float]:
    """Return metric and percentile of the key of a limit, such as `ttft_p95`."""
    metric, _, percent = key.partition("_p")
    return metric, float(percent)


def worst_minute(sample: Latencies, key: str) -> WorstMinute | None:
    """Return the minute of arrivals with the highest percentile of `ttft` or `e2e`; None where no minute has enough."""
    metric, percent = metric_of(key)
    values, arrival = sample.of(metric), sample.arrival_s
    if not values.size:
        return None
    number = ((arrival - arrival[0]) // MINUTE_S).astype(np.int64)
    edges = np.flatnonzero(np.diff(number)) + 1
    worst: WorstMinute | None = None
    for own in np.split(np.arange(values.size), edges):
        if own.size < LEAST_IN_MINUTE:
            continue
        value = float(np.percentile(values[own], percent))
        if worst is None or value > worst.value_s:
            start = float(arrival[0] + number[own[0]] * MINUTE_S)
            worst = WorstMinute(metric=key, start_s=start, requests_per_s=own.size / MINUTE_S, value_s=value)
    return worst


def timeline(sample: Latencies) -> tuple[Slice, ...]:
    """Return what requests saw in equal parts of the time that they arrived in."""
    arrival = sample.arrival_s
    if arrival.size < 2 or arrival[-1] == arrival[0]:
        return ()
    edges = np.linspace(arrival[0], arrival[-1], SLICES + 1)
    places = np.searchsorted(arrival, edges[1:-1])
    parts = [np.split(column, places) for column in (arrival, sample.ttft, sample.tpot)]
    length = float(edges[1] - edges[0])
    return tuple(
        Slice(start_s=start, requests_per_s=own.size / length, ttft_p95_s=_p95(ttft), tpot_p95_s=_p95(tpot))
        for start, own, ttft, tpot in zip(edges[:-1].tolist(), *parts, strict=True)
    )


def _p95(values: Floats) -> float | None:
    known = values[~np.isnan(values)]
    return float(np.percentile(known, 95)) if known.size else None


def queue_growth(run: PoolRun, *, steady: bool) -> float:
    """Return by how many requests/s the queue of a pool grows; 0 where it keeps up.

    It does not when more requests are there at the last arrival than a few times what can run at once, or what does and a
    tenth of all, or, where arrivals are
    `steady` and many, when each third of them waits clearly longer than the one before.
    """
    count = run.arrival_s.size
    if count < 3 or run.span_s == 0.0:
        return 0.0
    backlog = int((run.finish_s > run.arrival_s[-1]).sum())
    running = mean_batch(run) * len(run.occupancy)
    growing = backlog > BACKLOG * run.slots * len(run.occupancy)
    growing |= count >= LEAST_WARM_UP and backlog > max(BACKLOG * running, MOST_BACKLOG_SHARE * count)
    if steady and not growing and count >= LEAST_GROWING:
        waits = run.admitted_s - run.arrival_s
        thirds = [float(np.percentile(waits[i * count // 3 : (i + 1) * count // 3], 95)) for i in range(3)]
        growing = thirds[1] > GROWING[0] * thirds[0] and thirds[2] > max(GROWING[1] * thirds[1], LEAST_WAIT_S)
    return backlog / run.span_s if growing else 0.0
