"""Rate the shapes of a model in two passes: mean flow over all of them, latency tails on those that are left."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from planner.candidates.dominance import kept_shapes
from planner.candidates.pairs import (
    Indices,
    KvLoad,
    ShapeArrays,
    kv_load,
    limits_of,
    make_pairs,
    pair_indices,
)
from planner.candidates.types import Array, Candidate, Rejection, ResolvedModel, ResolvedWorkload, Service, Shape
from planner.physics.constants import SpeedConstants
from planner.physics.latency import Largest, largest_batch, throughput
from planner.physics.speed import StepCoefficients, step_bytes, step_flops

POOL_CLASSES = (1, 2, 4, 8)  # replica counts from which a rating holds: pooling pays most for the first few
LADDER_RATIO = 2.0 ** (1.0 / 8.0)  # batches between breakpoints; powers of two would waste 9 % of the money
CHEAP_LADDER = 2.0 ** np.arange(-4.0, 10.5, 0.5)  # mean batches of the first pass
SLOT_DEVIATIONS = 4.0  # the batch cap leaves this many standard deviations of the running batch above its mean
BATCH_VARIANCE_FACTOR = 1.5  # variance of the running batch over that of Poisson arrivals (LPS closed form)
JUST_BELOW = 0.999  # the operating batch stays this much below the limit, for the slots that the cap takes away
SAME_RATING = 0.002  # a larger pool class must gain more than this to be a candidate of its own
LATENCY_RULE = "latency"


@dataclass(frozen=True)
class _Rated:
    """Ratings of one model's shapes for one pool class, arrays [shape, workload]."""

    pool: int
    batch: Array
    rate: Array
    binding: NDArray[np.object_]
    best_s: Array


def rate_shapes(
    model: ResolvedModel,
    workloads: Sequence[ResolvedWorkload],
    shapes: Sequence[Shape],
    cells: Mapping[tuple[str, tuple[str, ...]], tuple[str, ...]],
    constants: SpeedConstants,
) -> tuple[list[Candidate], list[Rejection]]:
    """Return the candidates of one model and what was ruled out, with reasons.

    `cells` maps (GPU type, workloads served) to the supply cells where such a pool may lie.
    """
    if not shapes or not workloads:
        return [], []
    arrays = ShapeArrays.of(model, shapes, constants)
    keep, dominated = _first_pass(arrays, workloads)
    arrays = arrays.take(keep)
    rated = [_second_pass(arrays, workloads, pool) for pool in _pool_classes(workloads)]
    load = kv_load(arrays, workloads, *pair_indices(len(arrays.shapes), len(workloads)))
    rejections = dominated + _latency_rejections(arrays, workloads, rated)
    candidates: list[Candidate] = []
    for rating in rated:
        lower = rated[0] if rating is not rated[0] else None
        candidates += _candidates(arrays, workloads, rating, lower, load, cells)
    return candidates, rejections


def _first_pass(arrays: ShapeArrays, workloads: Sequence[ResolvedWorkload]) -> tuple[Indices, list[Rejection]]:
    """Compare shapes by mean flow, and drop those that fewer GPUs of the same type, in the same formats, replace."""
    shape_of, workload_of = pair_indices(len(arrays.shapes), len(workloads))
    load = kv_load(arrays, workloads, shape_of, workload_of)
    pairs = make_pairs(arrays, workloads, shape_of, workload_of, load.slots, np.full(shape_of.size, 4.0))
    grid = np.broadcast_to(CHEAP_LADDER[:, None], (CHEAP_LADDER.size, shape_of.size))
    flow = throughput(pairs, grid)
    tpot = np.array(
        [min((s for k, s in w.spec.slo.items() if k.startswith(("tpot", "itl"))), default=np.inf) for w in workloads]
    )
    able = (grid <= np.maximum(np.minimum(load.slots, pairs.slots), CHEAP_LADDER[0])) & (
        flow.mean_step_s <= tpot[workload_of]
    )
    able[0] = True  # whether a nearly empty replica meets the limits is for the second pass to say
    rates = np.where(able, flow.requests_per_s, 0.0).max(axis=0).reshape(len(arrays.shapes), len(workloads))
    return kept_shapes(arrays.shapes, rates)


def _pool_classes(workloads: Sequence[ResolvedWorkload]) -> tuple[int, ...]:
    """Return the pool classes worth rating: without latency limits, only a lone replica differs from the rest."""
    return POOL_CLASSES if any(w.spec.slo for w in workloads) else POOL_CLASSES[:2]


def _second_pass(arrays: ShapeArrays, workloads: Sequence[ResolvedWorkload], pool: int) -> _Rated:
    shape_of, workload_of = pair_indices(len(arrays.shapes), len(workloads))
    load = kv_load(arrays, workloads, shape_of, workload_of)
    pairs = make_pairs(arrays, workloads, shape_of, workload_of, load.slots, np.full(shape_of.size, float(pool)))
    found: Largest = largest_batch(pairs, limits_of(workloads, workload_of))
    size = (len(arrays.shapes), len(workloads))
    return _Rated(
        pool,
        JUST_BELOW * found.batch.reshape(size),
        found.requests_per_s.reshape(size),
        found.binding.reshape(size),
        found.best_s.reshape(size),
    )


def _latency_rejections(
    arrays: ShapeArrays, workloads: Sequence[ResolvedWorkload], rated: Sequence[_Rated]
) -> list[Rejection]:
    """Say which shapes cannot serve which workload in any pool size, by which limit, and the best they reach."""
    best = rated[-1]
    rejections: list[Rejection] = []
    for i, shape in enumerate(arrays.shapes):
        for j, workload in enumerate(workloads):
            if any(r.rate[i, j] > 0.0 for r in rated):
                continue
            key = str(best.binding[i, j])
            if key in workload.spec.slo:
                limit, reach = workload.spec.slo[key], float(best.best_s[i, j])
                reason = f"{key} of {limit * 1e3:.4g} ms: the best an idle replica reaches is {reach * 1e3:.4g} ms"
            else:
                reason = "no sequence of this workload fits the KV pool"
            rejections.append(Rejection(LATENCY_RULE, shape.model, shape.name, shape.gpu, reason, workload.name))
    return rejections


def _candidates(
    arrays: ShapeArrays,
    workloads: Sequence[ResolvedWorkload],
    rated: _Rated,
    lower: _Rated | None,
    load: KvLoad,
    cells: Mapping[tuple[str, tuple[str, ...]], tuple[str, ...]],
) -> list[Candidate]:
    points = _operating_points(rated, lower)
    if not points:
        return []
    shape_of = np.array([i for i, _ in points], dtype=np.intp)
    batch = np.array([b for _, b in points])
    found: list[Candidate] = []
    services = _services(arrays, workloads, rated, load, shape_of, batch)
    for (i, b), served in zip(points, services, strict=True):
        shape = arrays.shapes[i]
        for allowed, where in _placements(shape, tuple(sorted(served)), cells):
            found.append(
                _candidate(arrays, workloads, shape, i, b, rated.pool, {w: served[w] for w in allowed}, where, load)
            )
    return found


def _operating_points(rated: _Rated, lower: _Rated | None) -> list[tuple[int, float]]:
    """Return (shape, mean batch): the largest batch that each workload tolerates, and a ladder between those."""
    points: list[tuple[int, float]] = []
    for i in range(rated.batch.shape[0]):
        able = rated.rate[i] > 0.0
        if not able.any() or (lower is not None and not _gains(rated.rate[i], lower.rate[i])):
            continue
        breaks = sorted({float(b) for b in rated.batch[i][able]})
        steps = range(1, 1 + int(math.log(breaks[-1] / breaks[0]) / math.log(LADDER_RATIO)))
        ladder = {breaks[0] * LADDER_RATIO**k for k in steps}
        points += [(i, b) for b in sorted({*breaks, *ladder})]
    return points


def _gains(rate: Array, lower: Array) -> bool:
    return bool((rate > lower * (1.0 + SAME_RATING)).any())


def _services(
    arrays: ShapeArrays,
    workloads: Sequence[ResolvedWorkload],
    rated: _Rated,
    load: KvLoad,
    shape_of: Indices,
    batch: Array,
) -> list[dict[str, Service]]:
    """Return, for every operating point, the services of the workloads that tolerate its batch."""
    points = shape_of.size
    pair_shape = np.repeat(shape_of, len(workloads))
    pair_workload = np.tile(np.arange(len(workloads), dtype=np.intp), points)
    pair_batch = np.repeat(batch, len(workloads))
    mean_kv = load.mean_bytes.reshape(-1, len(workloads))[pair_shape, pair_workload]
    slots = load.slots.reshape(-1, len(workloads))[pair_shape, pair_workload]
    pairs = make_pairs(arrays, workloads, pair_shape, pair_workload, slots, np.full(pair_shape.size, float(rated.pool)))
    rate = throughput(pairs, pair_batch).requests_per_s
    step = arrays.step.take(pair_shape)
    bytes_per_request, flops_per_request = _work_per_request(step, workloads, pair_workload, pair_batch)
    tolerated = rated.batch[pair_shape, pair_workload] >= pair_batch * (1.0 - 1e-9)
    tolerated &= rated.rate[pair_shape, pair_workload] > 0.0
    found: list[dict[str, Service]] = [{} for _ in range(points)]
    for p in np.flatnonzero(tolerated):
        workload = workloads[int(pair_workload[p])]
        drift = workload.spec.traffic.peak_to_mean_30s
        found[int(p) // len(workloads)][workload.name] = Service(
            busy_s=drift / float(rate[p]),
            residence_s=float(pair_batch[p] / rate[p]) * drift,
            kv_bytes=float(mean_kv[p]),
            streamed_bytes=float(bytes_per_request[p]) * drift,
            flops=float(flops_per_request[p]) * drift,
        )
    return found


def _work_per_request(
    step: StepCoefficients,
    workloads: Sequence[ResolvedWorkload],
    workload_of: Indices,
    batch: Array,
) -> tuple[Array, Array]:
    """Return bytes that one GPU streams and FLOPs it computes per request, at the mean batch of each pair."""
    context = np.array([_mean_context(w) for w in workloads])[workload_of]
    decodes = np.array([max(float((w.output_tokens - 1.0).mean()), 0.0) for w in workloads])[workload_of]
    computed = np.array([float(w.prefill_tokens @ w.prefill_weights) for w in workloads])[workload_of]
    prompt = np.array([w.mean_input_tokens for w in workloads])[workload_of]
    sequences = np.maximum(batch / np.asarray(step.streams), 1e-6)
    steps_per_request = decodes / sequences
    streamed = step_bytes(step, sequences, sequences, context) * steps_per_request
    decoding = step_flops(step, sequences, sequences, context) * steps_per_request
    prompting = step_flops(step, computed, np.zeros_like(computed), np.zeros_like(computed), computed, prompt)
    return np.asarray(streamed, dtype=np.float64), np.asarray(decoding + prompting, dtype=np.float64)


def _mean_context(workload: ResolvedWorkload) -> float:
    steps = workload.output_tokens - 1.0
    if steps.sum() <= 0.0:
        return workload.mean_input_tokens
    return workload.mean_input_tokens + float((steps * workload.output_tokens / 2.0).sum() / steps.sum())


def _placements(
    shape: Shape, served: tuple[str, ...], cells: Mapping[tuple[str, tuple[str, ...]], tuple[str, ...]]
) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Return (workloads, cells) for every group of supply cells that admits at least one of the workloads served."""
    found: dict[tuple[str, ...], tuple[str, ...]] = {}
    for (gpu, admitted), where in sorted(cells.items()):
        allowed = tuple(w for w in served if w in admitted)
        if gpu == shape.gpu and allowed:
            found[allowed] = tuple(sorted({*found.get(allowed, ()), *where}))
    return sorted(found.items())


def _candidate(
    arrays: ShapeArrays,
    workloads: Sequence[ResolvedWorkload],
    shape: Shape,
    place: int,
    batch: float,
    pool: int,
    services: dict[str, Service],
    cells: tuple[str, ...],
    load: KvLoad,
) -> Candidate:
    by_pair = load.slots.reshape(-1, len(workloads))[place] * load.mean_bytes.reshape(-1, len(workloads))[place]
    pool_bytes = min(float(by_pair[j]) for j, w in enumerate(workloads) if w.name in services)
    step = arrays.step.take(np.array([place], dtype=np.intp))
    cap = _batch_cap(arrays.model, shape, [w for w in workloads if w.name in services], batch)
    streams = float(np.asarray(step.streams).reshape(-1)[0])
    suffix = "" if len(services) == len(workloads) else "-" + "+".join(sorted(services))
    return Candidate(
        name=f"{shape.model}|{shape.name}|b{cap}|r{pool}{suffix}",
        shape=shape,
        mean_batch=batch,
        max_num_seqs=cap,
        min_replicas=pool,
        cells=cells,
        kv_pool_bytes=pool_bytes,
        bandwidth_bytes_per_s=float(np.asarray(step.achievable_bytes_per_s).reshape(-1)[0]) * streams,
        flops_per_s=float(np.asarray(step.achievable_flops_per_s).reshape(-1)[0]) * streams,
        services=services,
    )


def _batch_cap(model: ResolvedModel, shape: Shape, served: Sequence[ResolvedWorkload], batch: float) -> int:
    """Return max_num_seqs: the mean batch and what it swings by, so that requests wait for slots only rarely."""
    if model.spec.engine.max_num_seqs is not None:
        return model.spec.engine.max_num_seqs
    if all(float(w.output_tokens.max()) <= 1.0 for w in served):
        return shape.max_num_seqs
    cv2 = max(w.spec.traffic.arrival_cv2 for w in served)
    swing = SLOT_DEVIATIONS * math.sqrt(BATCH_VARIANCE_FACTOR * batch * (1.0 + max(cv2, 1.0)) / 2.0)
    return min(shape.max_num_seqs, math.ceil(batch + swing) + 1)
