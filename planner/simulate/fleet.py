"""Replay every pool of a fleet, several times, and say which latency limits hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import ceil

import numpy as np

from planner.candidates.hours import SECONDS_PER_HOUR
from planner.candidates.types import ResolvedModel, ResolvedWorkload
from planner.diagnostics import Diagnostic, DiagnosticError
from planner.parallel import in_order
from planner.physics.constants import SpeedConstants
from planner.plan.assess import PoolLoad
from planner.plan.io import sha256
from planner.plan.replayed import (
    VERDICTS,
    Interval,
    LimitReplay,
    PhaseReplay,
    PoolReplay,
    Verdict,
    WorkloadReplay,
)
from planner.simulate.costs import PoolModel, pool_model
from planner.simulate.measure import (
    METRICS,
    PERCENTILES,
    SEEN,
    Latencies,
    goodput,
    interval_of,
    latencies,
    mean_batch,
    metric_of,
    percentile,
    queue_growth,
    timeline,
    worst_minute,
)
from planner.simulate.replay import PoolRun, run_pool
from planner.simulate.trace import Trace
from planner.simulate.traffic import (
    DAY,
    Scaling,
    Stream,
    copies_of,
    from_trace,
    generator,
    hourly_shares,
    shares_of,
    synthetic,
)
from planner.simulate.types import PS_PER_S, Batching, Router, longest_in_bin

REQUESTS = 40_000  # of a pool in one replication, where no duration is asked for
MOST_FOR_SMALL_POOLS = 4  # times as many, so that a pool with a small share of its workloads gets enough
LEAST_AFTER = 3.0  # times as long as before a failure, at least, is replayed
TRANSIENT_S = 60.0  # after a failure, judged apart
SPARED = 0.97  # of a limit: intervals are wider than a search can wait for
LEAST_TRACED = 10_000  # requests of a pool with a trace in one replication: shorter traces are repeated
MOST_REFUSED_SHARE = 0.01  # of the requests of a workload
MOST_TIMES = 16  # times its replicas: a pool that does not pass with so many never will
MOST_REQUESTS = 20_000_000  # of a model in one replication
LONGEST_S = 7 * 86_400.0


@dataclass(frozen=True)
class Settings:
    """How pools are replayed.

    Without `duration_s`, each replication has about `requests` requests a pool. Traces, by workload, give arrivals and lengths;
    all else is drawn from the spec; with `drop_long`, however many requests of a trace may be too long. `by_hour` gives hourly demand its rate of every hour of a day
    or a week, and other demand its mean. At `fail_at_s` each of the pools `failing` loses a replica for good:
    its model then shares traffic out by the replicas that are left.
    """

    seed: int = 1
    replications: int = 5
    duration_s: float | None = None
    requests: int = REQUESTS
    router: Router = Router.LEAST_OUTSTANDING
    batching: Batching | None = None
    traces: Mapping[str, Trace] = field(default_factory=dict)
    scaling: Scaling = Scaling.COMPRESSED
    drop_long: bool = False
    by_hour: bool = False
    fail_at_s: float | None = None
    failing: frozenset[str] = frozenset()

    def text(self) -> str:
        """Return all of it as text, traces by their digests: the same for the same replay."""
        known = {name: value for name, value in vars(self).items() if name not in ("traces", "failing")}
        return repr((known, sorted((w, t.sha256) for w, t in self.traces.items()), sorted(self.failing)))


@dataclass(frozen=True)
class _Sample:
    """One replication of one pool, small enough to travel between processes."""

    latencies: Mapping[str, Latencies]
    requests: Mapping[str, int]
    refused: Mapping[str, int]
    growth_per_s: float
    gaps: Counter[int]
    mean_batch: float
    kv_mean: float
    kv_most: float
    preempted: float
    cached: float
    busy: tuple[float, float]
    lost: int
    digest: str


def replay_fleet(
    models: Mapping[str, ResolvedModel],
    workloads: Mapping[str, ResolvedWorkload],
    pools: Sequence[PoolLoad],
    constants: SpeedConstants,
    settings: Settings,
) -> list[PoolReplay]:
    """Replay pools, in the order given; `pools` must be all of their models, as traffic is shared out over them by chance."""
    fleet = _Fleet(models, workloads, pools, constants, settings)
    tasks = [(n, replication) for n in range(len(pools)) for replication in range(fleet.replications(n))]
    samples = in_order(lambda task: fleet.sample(*task), tasks)
    return [
        fleet.summary(n, [sample for (own, _), sample in zip(tasks, samples, strict=True) if own == n])
        for n in range(len(pools))
    ]


def fewest_replicas(
    models: Mapping[str, ResolvedModel],
    workloads: Mapping[str, ResolvedWorkload],
    pools: Sequence[PoolLoad],
    constants: SpeedConstants,
    settings: Settings,
    name: str,
) -> int | None:
    """Return the fewest replicas, more than it has, with which a pool passes at its traffic; None where too many do not.

    `pools` are all of its model. Large pools are tried in steps of a share of their size.
    """
    number = [p.name for p in pools].index(name)
    has = pools[number].replicas

    def passes(replicas: int) -> bool:
        tried = [replace(p, replicas=replicas) if p.name == name else p for p in pools]
        fleet = _Fleet(models, workloads, tried, constants, settings)
        samples = in_order(partial(fleet.sample, number), range(fleet.replications(number)))
        return _holds(fleet.summary(number, samples))

    low, high, step = has, has + max(1, has // 8), max(1, has // 8)
    while not passes(high):
        if high >= MOST_TIMES * has:
            return None
        low, step = high, 2 * step
        high = min(low + step, MOST_TIMES * has)
    while high - low > max(1, has // 32):
        middle = (low + high) // 2
        low, high = (low, middle) if passes(middle) else (middle, high)
    return high


def _holds(pool: PoolReplay) -> bool:
    """Tell whether a pool keeps up and every limit that enough requests came for, with a little to spare."""
    seen = [limit for w in pool.workloads for limit in w.limits if limit.replayed_s is not None]
    within = all(limit.replayed_s.value <= SPARED * limit.limit_s for limit in seen if limit.replayed_s is not None)
    return within and pool.verdict != "unstable"


class _Fleet:
    def __init__(
        self,
        models: Mapping[str, ResolvedModel],
        workloads: Mapping[str, ResolvedWorkload],
        pools: Sequence[PoolLoad],
        constants: SpeedConstants,
        settings: Settings,
    ) -> None:
        self.models, self.workloads, self.pools, self.settings = models, workloads, pools, settings
        self.durations = {name: self._duration(name) for name in dict.fromkeys(p.shape.model for p in pools)}
        self._check()
        self.engines = [self._engines(pool, constants) for pool in pools]

    def _engines(self, pool: PoolLoad, constants: SpeedConstants) -> PoolModel:
        model = self.models[pool.shape.model]
        made = pool_model(model, pool, constants, model.max_model_len, self.settings.batching)
        asks = any(key.startswith("itl") for w in pool.rates for key in self.workloads[w].spec.slo)
        return replace(made, rules=replace(made.rules, counts_gaps=asks))

    def _check(self) -> None:
        """Refuse replays of more requests than fit, and failures after the end. Raises `DiagnosticError`."""
        for model, duration in self.durations.items():
            own = [p for p in self.pools if p.shape.model == model]
            requests = sum(sum(p.rates.values()) for p in own) * duration
            if requests > MOST_REQUESTS:
                message = f"the replay of model {model} would have {requests:,.0f} requests, and {MOST_REQUESTS:,} is the most"
                raise DiagnosticError([Diagnostic("replay/too-long", message, help=("give a shorter --duration",))])
            left: Counter[str] = Counter()
            for pool in own:
                left.update({w: rate * self._left(pool) for w, rate in pool.rates.items()})
            alone = sorted(w for p in own for w in p.rates if left[w] <= 0.0)
            if alone:
                message = f"no replica is left for workload {alone[0]} of model {model} when one fails"
                raise DiagnosticError([Diagnostic("plan/no-replica-left", message)])
            fails = self._fails_at(model)
            if fails != np.inf and fails + TRANSIENT_S >= duration:
                message = f"a replica of model {model} is to fail after {fails:,.0f} s, and its replay ends after {duration:,.0f} s"
                how = "let it fail more than a minute before the end, or give a longer --duration"
                raise DiagnosticError([Diagnostic("replay/fails-too-late", message, help=(how,))])

    def rate(self, workload: str) -> float:
        """Return the requests/s of a workload over all pools."""
        return sum(p.rates.get(workload, 0.0) for p in self.pools)

    def _duration(self, model: str) -> float:
        """Return how long the pools of a model are replayed: as asked, or as long as the longest of its traces lasts."""
        own = [p for p in self.pools if p.shape.model == model]
        names = sorted({w for p in own for w in p.rates})
        spans = [self._span(self.settings.traces[w], self.rate(w)) for w in names if w in self.settings.traces]
        if self.settings.by_hour:
            return SECONDS_PER_HOUR * max(len(self.workloads[w].spec.traffic.hourly or DAY) for w in names)
        if self.settings.duration_s is not None:
            return self.settings.duration_s
        after = 0.0 if self._fails_at(model) == np.inf else LEAST_AFTER * self._fails_at(model) + TRANSIENT_S
        rates = [sum(p.rates.values()) for p in own]
        most = min(MOST_FOR_SMALL_POOLS * self.settings.requests / sum(rates), LONGEST_S)
        wanted = max(*spans, LEAST_TRACED / max(rates)) if spans else self.settings.requests / min(rates)
        return max(after, min(wanted, most))

    def _span(self, trace: Trace, requests_per_s: float) -> float:
        return copies_of(trace, requests_per_s, self.settings.scaling) * trace.input_tokens.size / requests_per_s

    def replications(self, number: int) -> int:
        """Return how often a pool is replayed: once where nothing in it is drawn."""
        return 1 if all(self._is_fixed(w) for w in self.pools[number].rates) else self.settings.replications

    def _is_fixed(self, name: str) -> bool:
        """Tell whether every request of a workload comes from a trace as it is: arrival, lengths, prefix hits and pool."""
        trace = self.settings.traces.get(name)
        if trace is None or self.settings.scaling is not Scaling.COMPRESSED:
            return False
        hits_known = trace.hit_tokens is not None or self.workloads[name].shared_hit_rate in (0.0, 1.0)
        return hits_known and sum(name in p.rates for p in self.pools) == 1

    def streams(self, number: int, replication: int) -> list[Stream]:
        """Return the requests that a pool gets in a replication, by workload."""
        pool, settings = self.pools[number], self.settings
        model = self.models[pool.shape.model]
        duration = self.durations[model.name]
        found = []
        for name in sorted(pool.rates):
            workload, draw = self.workloads[name], generator(settings.seed, replication, name)
            if name in settings.traces:
                trace = settings.traces[name]
                whole = from_trace(workload, trace, self.rate(name), duration, settings.scaling, draw)
            else:
                drift = workload.spec.traffic.peak_to_mean_30s
                hours = hourly_shares(workload) if settings.by_hour else DAY[:1]
                whole = synthetic(workload, drift * self.rate(name), duration, model.max_model_len, draw, hours)
            sharing = [p for p in self.pools if name in p.rates]
            shares = [p.rates[name] for p in sharing]
            then_s, after = self._fails_at(model.name), [p.rates[name] * self._left(p) for p in sharing]
            parts = shares_of(whole, shares, draw, then_s, after)
            found.append(parts[[p.name for p in sharing].index(pool.name)])
        return found

    def run(self, number: int, replication: int) -> PoolRun:
        """Replay a pool once."""
        pool = self.pools[number]
        limit = self.models[pool.shape.model].max_model_len
        streams = self.streams(number, replication)
        fail_at_s = self.settings.fail_at_s if pool.name in self.settings.failing else None
        made, lost = self.engines[number], self.engines[number].engines // pool.replicas
        return run_pool(made, self.workloads, streams, limit, self.settings.router, fail_at_s, lost)

    def _fails_at(self, model: str) -> float:
        """Return when a pool of a model loses a replica, infinity where none does."""
        fails = any(p.name in self.settings.failing for p in self.pools if p.shape.model == model)
        return self.settings.fail_at_s if fails and self.settings.fail_at_s is not None else np.inf

    def _left(self, pool: PoolLoad) -> float:
        """Return the share of its replicas that a pool has left after the failure."""
        return 1.0 - 1.0 / pool.replicas if pool.name in self.settings.failing else 1.0

    def sample(self, number: int, replication: int) -> _Sample:
        pool, made = self.pools[number], self.engines[number]
        run = self.run(number, replication)
        busy = [o.busy_ps for o in run.occupancy]
        worked = max(sum(busy), 1)
        end_ps = max(float(run.finish_s.max(initial=0.0)) * PS_PER_S, 1.0)
        return _Sample(
            latencies={
                w: latencies(run, w, self.workloads[w].spec.slo, made.request_s, made.ttft_factor)
                for w in sorted(pool.rates)
            },
            requests={w: int((run.workload == n).sum()) for n, w in enumerate(run.workloads)},
            refused=run.refused,
            growth_per_s=queue_growth(run, steady=self._is_steady(number)),
            gaps=sum((o.gaps for o in run.occupancy), Counter()),
            mean_batch=mean_batch(run),
            kv_mean=sum(o.blocks_ps for o in run.occupancy) / worked / run.blocks,
            kv_most=max((o.most_blocks for o in run.occupancy), default=0) / run.blocks,
            preempted=float((run.preemptions > 0).mean()) if run.preemptions.size else 0.0,
            cached=float(run.hit_tokens.sum() / max(run.input_tokens.sum(), 1)),
            busy=(min(busy) / end_ps, max(busy) / end_ps),
            lost=run.lost,
            digest=run.digest,
        )

    def _is_steady(self, number: int) -> bool:
        """Tell whether arrivals and replicas of a pool are alike at all times."""
        fails = self._fails_at(self.pools[number].shape.model) != np.inf
        return not (self._is_traced(number) or self.settings.by_hour or fails)

    def _is_traced(self, number: int) -> bool:
        return any(w in self.settings.traces for w in self.pools[number].rates)

    def summary(self, number: int, samples: Sequence[_Sample]) -> PoolReplay:
        pool = self.pools[number]
        resampled = self._is_traced(number)
        growth = sorted(s.growth_per_s for s in samples)[len(samples) // 2]
        parts = tuple(self._workload(pool, w, samples, resampled=resampled) for w in sorted(pool.rates))
        verdicts: list[Verdict] = [limit.verdict for part in parts for limit in part.limits]
        if not self.settings.drop_long:
            verdicts += ["fail" for w in parts if w.refused > MOST_REFUSED_SHARE * (w.refused + w.requests)]
        return PoolReplay(
            name=pool.name,
            model=pool.shape.model,
            replicas=pool.replicas,
            replications=len(samples),
            duration_s=self.durations[pool.shape.model],
            verdict="unstable" if growth > 0.0 else worst_of(verdicts),
            queue_growth_requests_per_s=growth,
            mean_batch=_mean([s.mean_batch for s in samples]),
            kv_mean_share=_mean([s.kv_mean for s in samples]),
            kv_most_share=max(s.kv_most for s in samples),
            preempted_share=_mean([s.preempted for s in samples]),
            cached_share=_mean([s.cached for s in samples]),
            least_busy_share=min(s.busy[0] for s in samples),
            most_busy_share=max(s.busy[1] for s in samples),
            lost=sum(s.lost for s in samples),
            workloads=parts,
            digest=sha256("".join(s.digest for s in samples)),
        )

    def _workload(self, pool: PoolLoad, name: str, samples: Sequence[_Sample], *, resampled: bool) -> WorkloadReplay:
        limits = self.workloads[name].spec.slo
        own = [s.latencies[name] for s in samples]
        found = {
            f"{metric}_p{percent}": each
            for metric in SEEN
            for percent in PERCENTILES
            if (each := percentile(own, metric, percent, resampled=resampled)) is not None
        }
        if any(key.startswith("itl") for key in limits):
            found |= {f"itl_p{p}": _gap_percentile(samples, p) for p in PERCENTILES if samples[0].gaps}
        phases = self._phases(pool.shape.model, own, limits)
        asked = next((key for key in sorted(limits, reverse=True) if key.startswith(("ttft", "e2e"))), "ttft_p95")
        return WorkloadReplay(
            name=name,
            requests_per_s=pool.rates[name],
            traced=name in self.settings.traces,
            requests=sum(s.requests[name] for s in samples),
            refused=sum(s.refused[name] for s in samples),
            percentiles_s=found,
            limits=_last(phases, _judged(limits, found)),
            goodput=goodput(own, resampled=resampled) if limits else None,
            worst_minute=worst_minute(own[0], asked),
            timeline=timeline(own[0]),
            phases=phases,
        )

    def _phases(self, model: str, samples: Sequence[Latencies], limits: Mapping[str, float]) -> tuple[PhaseReplay, ...]:
        at = self._fails_at(model)
        if at == np.inf:
            return ()
        spans = {"before": (0.0, at), "the minute after": (at, at + TRANSIENT_S), "later": (at + TRANSIENT_S, np.inf)}
        found = []
        for name, span in spans.items():
            own = [each.during(*span) for each in samples]
            known = {key: limit for key, limit in limits.items() if metric_of(key)[0] in METRICS}
            values = {key: percentile(own, *metric_of(key), resampled=False) for key in known}
            seen = {key: value for key, value in values.items() if value is not None}
            found.append(PhaseReplay(name=name, limits=_judged(known, seen)))
        return tuple(found)


def worst_of(verdicts: Iterable[Verdict]) -> Verdict:
    """Return the worst verdict, `pass` of none."""
    return max(verdicts, key=VERDICTS.index, default="pass")


def _judged(limits: Mapping[str, float], found: Mapping[str, Interval]) -> tuple[LimitReplay, ...]:
    """Return every limit against its percentile, if enough requests had the metric."""
    return tuple(
        LimitReplay(metric=key, limit_s=limit, replayed_s=found.get(key), verdict=_verdict(found.get(key), limit))
        for key, limit in sorted(limits.items())
    )


def _last(phases: Sequence[PhaseReplay], whole: Sequence[LimitReplay]) -> tuple[LimitReplay, ...]:
    """Return the limits of the last phase, those of gaps between tokens, which are counted over all, from the whole replay."""
    late = {limit.metric: limit for limit in phases[-1].limits} if phases else {}
    return tuple(late.get(limit.metric, limit) for limit in whole)


def _verdict(found: Interval | None, limit_s: float) -> Verdict:
    if found is None:
        return "inconclusive"
    if found.high <= limit_s:
        return "pass"
    return "fail" if found.low > limit_s else "inconclusive"


def _gap_percentile(samples: Sequence[_Sample], percent: int) -> Interval:
    """Return a percentile of the times between tokens, all of a pool's alike: each token counts once."""
    values = []
    for sample in samples:
        due = ceil(sample.gaps.total() * percent / 100.0)
        for number in sorted(sample.gaps):
            due -= sample.gaps[number]
            if due <= 0:
                values.append(longest_in_bin(number) / PS_PER_S)
                break
    return interval_of(values)


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values))
