"""What the pools of a fleet really do at the traffic they got: latency at the mix, load, what limits them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from planner.candidates.pairs import Indices, ShapeArrays, kv_load, make_pairs
from planner.candidates.sharing import lengths_of, mixture, padded
from planner.candidates.types import Array, ResolvedModel, ResolvedWorkload, Shape
from planner.physics.constants import SpeedConstants
from planner.physics.latency import (
    LONE_REPLICA_FACTOR,
    UTILIZATION_GUARD,
    Pairs,
    batch_at,
    percentile,
    saturation,
    throughput,
)
from planner.physics.speed import resource_seconds

SEARCH_STEPS = 20
SHOWN = (("ttft", 0.50), ("ttft", 0.95), ("tpot", 0.50), ("tpot", 0.95))
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
    `resource_s` splits the mean step by resource.
    """

    mean_batch: float
    latency_s: Mapping[tuple[str, str], float]
    shown_s: Mapping[tuple[str, float], float]
    overload: float
    resource_s: Mapping[str, float]
    prompt_s: float

    def misses(self, workloads: Mapping[str, ResolvedWorkload]) -> list[tuple[str, str]]:
        """List the (workload, SLO key) whose predicted percentile exceeds its limit."""
        return [
            (w, key)
            for (w, key), seconds in self.latency_s.items()
            if seconds > workloads[w].spec.slo[key] * (1.0 + LATENCY_RTOL)
        ]

    def holds(self, workloads: Mapping[str, ResolvedWorkload]) -> bool:
        """Tell whether the pool keeps every latency limit of the workloads it serves and is not overloaded."""
        return self.overload <= 1.0 + LATENCY_RTOL and not self.misses(workloads)


def assess(
    model: ResolvedModel,
    workloads: Mapping[str, ResolvedWorkload],
    pools: Sequence[PoolLoad],
    constants: SpeedConstants,
) -> list[PoolState]:
    """Rate every pool of one model at its own mix, from physics alone."""
    if not pools:
        return []
    arrays = ShapeArrays.of(model, [p.shape for p in pools], constants)
    mixes = [padded(_mixture(workloads, p.rates)) for p in pools]
    index = np.arange(len(pools), dtype=np.intp)
    pairs = _pairs(arrays, mixes, pools, index)
    rate = np.array([_rate_per_replica(workloads, p) for p in pools])
    limit = UTILIZATION_GUARD * saturation(pairs).requests_per_s
    batch = batch_at(pairs, np.minimum(rate, limit))
    shown = {key: percentile(pairs, batch, key[0], key[1]) for key in SHOWN}
    latency = _latency(workloads, pools, pairs, batch)
    resources = _resources(pairs, mixes, batch)
    prompt = _prompt_s(pairs, mixes)
    return [
        PoolState(
            mean_batch=float(batch[i]),
            latency_s=latency[i],
            shown_s={key: float(values[i]) for key, values in shown.items()},
            overload=float(rate[i] / limit[i]),
            resource_s={name: float(values[i]) for name, values in resources.items()},
            prompt_s=float(prompt[i]),
        )
        for i in range(len(pools))
    ]


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


def _latency(
    workloads: Mapping[str, ResolvedWorkload], pools: Sequence[PoolLoad], pairs: Pairs, batch: Array
) -> list[dict[tuple[str, str], float]]:
    """Predict every limited percentile of every workload in every pool, at the load of the whole pool."""
    asked = [(i, w, key) for i, p in enumerate(pools) for w in sorted(p.rates) for key in sorted(workloads[w].spec.slo)]
    found: list[dict[tuple[str, str], float]] = [{} for _ in pools]
    for key in sorted({k for _, _, k in asked}):
        some = [(i, w) for i, w, k in asked if k == key]
        at = np.array([i for i, _ in some], dtype=np.intp)
        metric, _, percent = key.partition("_p")
        observed = lengths_of([workloads[w] for _, w in some])
        values = percentile(pairs.take(at), batch[at], metric, int(percent) / 100.0, observed=observed)
        for (i, w), value in zip(some, values.tolist(), strict=True):
            found[i][w, key] = value
    return found


def _resources(pairs: Pairs, mixes: Sequence[ResolvedWorkload], batch: Array) -> dict[str, Array]:
    """Split the mean step by resource: decoding sequences and the prompt tokens that come with them."""
    sequences = np.maximum(batch / np.asarray(pairs.step.streams), 1e-3)
    prompts = throughput(pairs, batch).prompts_per_step
    computed = np.array([float(m.prefill_tokens @ m.prefill_weights) for m in mixes])
    context = np.array([m.mean_input_tokens + m.mean_output_tokens / 2.0 for m in mixes])
    prefill = np.minimum(prompts * computed, pairs.token_budget)
    length = np.array([m.mean_input_tokens for m in mixes])
    parts = resource_seconds(pairs.step, sequences + prefill, sequences, context, prefill, length)
    values = {
        "bandwidth": parts.bandwidth_s,
        "compute": parts.compute_s,
        "interconnect": parts.interconnect_s,
        "overhead": parts.overhead_s,
    }
    return {name: np.broadcast_to(np.asarray(v, dtype=np.float64), sequences.shape) for name, v in values.items()}


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
    low, high = 0.0, 1.0
    for _ in range(SEARCH_STEPS):
        middle = 0.5 * (low + high)
        tried = replace(pool, rates={w: middle * r for w, r in pool.rates.items()})
        held = assess(model, workloads, [tried], constants)[0].holds(workloads)
        low, high = (middle, high) if held else (low, middle)
    return low
