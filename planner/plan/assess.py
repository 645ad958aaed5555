"""What the pools of a fleet really do at the traffic they got: latency at the mix, load, what limits them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from planner.candidates.pairs import Indices, ShapeArrays, kv_load, make_pairs
from planner.candidates.sharing import lengths_of, mixture
from planner.candidates.types import Array, CandidateTable, ResolvedModel, ResolvedWorkload, Shape
from planner.parallel import LEAST_MODELS_SHARED_OUT, in_order
from planner.physics.constants import SpeedConstants
from planner.physics.latency import (
    LONE_REPLICA_FACTOR,
    UTILIZATION_GUARD,
    AtBatch,
    Lengths,
    Pairs,
    allowed_share,
    batch_at,
    saturation,
    throughput,
)
from planner.physics.speed import resource_seconds, step_s

SHARE_STEPS = 64  # shares of a pool's traffic that are told apart when it misses a limit
COARSE_STEPS = 8  # those that are tried first: the fine ones are tried above the largest of them that holds
SHOWN = ("ttft", "tpot")
SHOWN_PERCENTILES = (0.50, 0.95)
LATENCY_RTOL = 1e-6  # a prediction this close above its limit is on it: both come from a bisection


@dataclass(frozen=True)
class PoolLoad:
    """A pool and the traffic it is given: requests/s by workload over all its replicas."""

    name: str
    shape: Shape
    max_num_seqs: int
    replicas: int
    rates: Mapping[str, float]


@dataclass(frozen=True)
class PoolState:
    """What a pool does at its load.

    `latency_s` maps (workload, SLO key) to the predicted percentile, `shown_s` the same over all traffic of the pool
    by (metric, percentile). `overload` is the load over the largest one that queues can bear; above 1 nothing holds.
    `resource_s` splits the mean step by resource, `decode_step_s` is a
    step without prompts, `prompt_s` what a long prompt needs alone.
    """

    mean_batch: float
    latency_s: Mapping[tuple[str, str], float]
    shown_s: Mapping[tuple[str, float], float]
    overload: float
    resource_s: Mapping[str, float]
    prompt_s: float
    decode_step_s: float


@dataclass(frozen=True)
class LoadedPools:
    """The pools of one model at their mean batch, arrays over pools."""

    pairs: Pairs
    mixes: list[ResolvedWorkload]
    batch: Array
    overload: Array


def assess(
    model: ResolvedModel,
    workloads: Mapping[str, ResolvedWorkload],
    pools: Sequence[PoolLoad],
    constants: SpeedConstants,
) -> list[PoolState]:
    """Rate every pool of one model at its own mix, from physics alone."""
    if not pools:
        return []
    return states(workloads, pools, load_pools(model, workloads, pools, constants))


def assess_models(
    table: CandidateTable, loads: Mapping[str, Sequence[PoolLoad]], constants: SpeedConstants
) -> dict[str, list[PoolState]]:
    """Rate the pools of several models, given by model, each at its own mix."""

    def rated(name: str) -> list[PoolState]:
        return assess(table.models[name], table.workloads, loads[name], constants)

    names = list(loads)
    return dict(zip(names, in_order(rated, names, least_items=LEAST_MODELS_SHARED_OUT), strict=True))


def states(workloads: Mapping[str, ResolvedWorkload], pools: Sequence[PoolLoad], at: LoadedPools) -> list[PoolState]:
    """Return what pools do at the mean batches of `at`."""
    requests = AtBatch.of(at.pairs, at.batch)
    shown = _shown(requests, len(pools))
    latency = _latency(workloads, pools, requests)
    resources = _resources(at.pairs, at.mixes, at.batch)
    prompt = _prompt_s(at.pairs, at.mixes)
    decode = _decode_step_s(at.pairs, at.mixes, at.batch)
    return [
        PoolState(
            mean_batch=float(at.batch[i]),
            latency_s=latency[i],
            shown_s={key: float(values[i]) for key, values in shown.items()},
            overload=float(at.overload[i]),
            resource_s={name: float(values[i]) for name, values in resources.items()},
            prompt_s=float(prompt[i]),
            decode_step_s=float(decode[i]),
        )
        for i in range(len(pools))
    ]


def missed(
    model: ResolvedModel,
    workloads: Mapping[str, ResolvedWorkload],
    pools: Sequence[PoolLoad],
    constants: SpeedConstants,
) -> list[tuple[str, ...]]:
    """Return, for every pool of one model, what it misses at its own mix: `overload`, or workload and latency limit.

    The same judgement as `assess`, at the cost of one tail per limit instead of a search for the percentile.
    """
    if not pools:
        return []
    at = load_pools(model, workloads, pools, constants)
    requests = AtBatch.of(at.pairs, at.batch)
    found: list[list[str]] = [["overload"] if o > 1.0 + LATENCY_RTOL else [] for o in at.overload.tolist()]
    for metric, percent, some in _asked(workloads, pools):
        index, observed = _observed(workloads, some)
        limit = np.array([workloads[w].spec.slo[f"{metric}_p{percent}"] for _, w in some]) * (1.0 + LATENCY_RTOL)
        tails = requests.take(index).tail(metric, limit, observed=observed)
        for (i, w), share in zip(some, tails.tolist(), strict=True):
            if share > allowed_share(metric, percent / 100.0, halved=True):
                found[i].append(f"{w} {metric}_p{percent}")
    return [tuple(each) for each in found]


def load_pools(
    model: ResolvedModel,
    workloads: Mapping[str, ResolvedWorkload],
    pools: Sequence[PoolLoad],
    constants: SpeedConstants,
) -> LoadedPools:
    """Return the pools of one model at the mean batch that carries their traffic, that of saturation where none does."""
    arrays = ShapeArrays.of(model, [p.shape for p in pools], constants)
    mixes = [_mixture(workloads, p.rates) for p in pools]
    pairs = _pairs(arrays, mixes, pools, np.arange(len(pools), dtype=np.intp))
    rate = np.array([_rate_per_replica(workloads, p) for p in pools])
    # The batch cap shapes the queue, not what the work amounts to: saturation is that of the engine's own cap.
    uncapped = replace(pairs, slots=np.array([float(p.shape.max_num_seqs) for p in pools]))
    limit = UTILIZATION_GUARD * saturation(uncapped).requests_per_s
    return LoadedPools(pairs, mixes, batch_at(pairs, np.minimum(rate, limit)), rate / limit)


def stable_factors(
    model: ResolvedModel,
    workloads: Mapping[str, ResolvedWorkload],
    pools: Sequence[PoolLoad],
    constants: SpeedConstants,
) -> list[float]:
    """Return, for every pool of one model, the multiple of its traffic from which on its queues grow without end.

    Slots are those of the pool's own batch cap here: what waits for one waits, whatever the engine could hold.
    """
    pairs = load_pools(model, workloads, pools, constants).pairs
    bearable = UTILIZATION_GUARD * saturation(pairs).requests_per_s
    return [float(b) / _rate_per_replica(workloads, p) for b, p in zip(bearable, pools, strict=True)]


def _mixture(workloads: Mapping[str, ResolvedWorkload], rates: Mapping[str, float]) -> ResolvedWorkload:
    names = sorted(rates)
    return mixture([workloads[n] for n in names], [rates[n] for n in names])


def _rate_per_replica(workloads: Mapping[str, ResolvedWorkload], pool: PoolLoad) -> float:
    """Return the requests/s one replica must be able to bear: drift counted, the allowance of a lone replica too."""
    rate = sum(r * workloads[w].spec.traffic.peak_to_mean_30s for w, r in sorted(pool.rates.items())) / pool.replicas
    return rate / LONE_REPLICA_FACTOR if pool.replicas == 1 else rate


def _pairs(arrays: ShapeArrays, mixes: Sequence[ResolvedWorkload], pools: Sequence[PoolLoad], index: Indices) -> Pairs:
    load = kv_load(arrays, mixes, index, index)
    replicas = np.array([float(p.replicas) for p in pools])
    slots = np.array([float(p.max_num_seqs) for p in pools])
    return make_pairs(arrays, mixes, index, index, load.slots, replicas, slots)


def _asked(
    workloads: Mapping[str, ResolvedWorkload], pools: Sequence[PoolLoad]
) -> list[tuple[str, int, list[tuple[int, str]]]]:
    """Return (metric, percentile, pairs of pool and workload that limit it), sorted."""
    asked = [(key, i, w) for i, p in enumerate(pools) for w in sorted(p.rates) for key in sorted(workloads[w].spec.slo)]
    found = []
    for key in sorted({k for k, _, _ in asked}):
        metric, _, percent = key.partition("_p")
        found.append((metric, int(percent), [(i, w) for k, i, w in asked if k == key]))
    return found


def _observed(workloads: Mapping[str, ResolvedWorkload], some: Sequence[tuple[int, str]]) -> tuple[Indices, Lengths]:
    index = np.array([i for i, _ in some], dtype=np.intp)
    return index, lengths_of([workloads[w] for _, w in some])


def _shown(requests: AtBatch, pools: int) -> dict[tuple[str, float], Array]:
    """Predict the percentiles that are shown of every pool, over all of its requests."""
    each = requests.take(np.tile(np.arange(pools), len(SHOWN_PERCENTILES)))
    percents = np.repeat(SHOWN_PERCENTILES, pools)
    values = {metric: np.split(each.percentile(metric, percents), len(SHOWN_PERCENTILES)) for metric in SHOWN}
    return {(m, p): own for m, parts in values.items() for p, own in zip(SHOWN_PERCENTILES, parts, strict=True)}


def _latency(
    workloads: Mapping[str, ResolvedWorkload], pools: Sequence[PoolLoad], requests: AtBatch
) -> list[dict[tuple[str, str], float]]:
    """Predict every limited percentile of every workload in every pool, at the load of the whole pool."""
    found: list[dict[tuple[str, str], float]] = [{} for _ in pools]
    for metric, percent, some in _asked(workloads, pools):
        index, observed = _observed(workloads, some)
        values = requests.take(index).percentile(metric, percent / 100.0, observed=observed)
        for (i, w), value in zip(some, values.tolist(), strict=True):
            found[i][w, f"{metric}_p{percent}"] = value
    return found


def mean_step(
    pairs: Pairs, mixes: Sequence[ResolvedWorkload], batch: Array
) -> tuple[Array, Array, Array, Array, Array]:
    """Return the load of the mean step as `step_parts` takes it: decoding sequences, and the prompt tokens with them."""
    sequences = np.maximum(batch / np.asarray(pairs.step.streams), 1e-3)
    prompts = throughput(pairs, batch).prompts_per_step
    computed = np.array([float(m.prefill_tokens @ m.prefill_weights) for m in mixes])
    context = np.array([m.mean_input_tokens + m.mean_output_tokens / 2.0 for m in mixes])
    prefill = np.minimum(prompts * computed, pairs.token_budget)
    length = np.array([m.mean_input_tokens for m in mixes])
    return sequences + prefill, sequences, context, prefill, length


def _resources(pairs: Pairs, mixes: Sequence[ResolvedWorkload], batch: Array) -> dict[str, Array]:
    """Split the mean step by resource."""
    load = mean_step(pairs, mixes, batch)
    parts = resource_seconds(pairs.step, *load)
    values = {
        "bandwidth": parts.bandwidth_s,
        "compute": parts.compute_s,
        "interconnect": parts.interconnect_s,
        "overhead": parts.overhead_s,
    }
    return {name: np.broadcast_to(np.asarray(v, dtype=np.float64), batch.shape) for name, v in values.items()}


def _decode_step_s(pairs: Pairs, mixes: Sequence[ResolvedWorkload], batch: Array) -> Array:
    """Return the seconds of a step that only decodes, at the mean batch, confidence factor included."""
    sequences = np.maximum(batch / np.asarray(pairs.step.streams), 1.0)
    context = np.array([m.mean_input_tokens + m.mean_output_tokens / 2.0 for m in mixes])
    return np.asarray(step_s(pairs.step, sequences, sequences, context) * pairs.step_factor)


def _prompt_s(pairs: Pairs, mixes: Sequence[ResolvedWorkload]) -> Array:
    """Return the seconds that the longest of 20 prompts needs alone on an idle replica."""
    long = np.array([float(np.quantile(m.prefill_tokens[m.prefill_weights > 0.0], 0.95)) for m in mixes])
    chunk = np.minimum(long, pairs.token_budget)
    parts = resource_seconds(pairs.step, chunk, np.zeros_like(chunk), np.zeros_like(chunk), chunk, long)
    step = parts.bandwidth_s + parts.compute_s + parts.interconnect_s + parts.overhead_s
    return np.asarray(step * np.asarray(pairs.step.prefill_factor) * (long / chunk) * pairs.step_factor)


def largest_share(
    model: ResolvedModel, workloads: Mapping[str, ResolvedWorkload], pool: PoolLoad, constants: SpeedConstants
) -> float:
    """Return the largest share (0 to 1) of its traffic that a pool bears within all limits, at the same mix."""
    low = 0
    for step in (SHARE_STEPS // COARSE_STEPS, 1):
        steps = range(low + step, min(low + COARSE_STEPS * step, SHARE_STEPS), step)
        tried = [replace(pool, rates={w: i / SHARE_STEPS * r for w, r in pool.rates.items()}) for i in steps]
        misses = missed(model, workloads, tried, constants)
        low = max((i for i, miss in zip(steps, misses, strict=True) if not miss), default=low)
    return low / SHARE_STEPS
