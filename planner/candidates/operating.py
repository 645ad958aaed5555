"""From ratings to candidates: operating batches, what a request costs there, and where such pools may lie."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from planner.candidates.pairs import Indices, ShapeArrays, kv_load, make_pairs, pair_indices
from planner.candidates.types import Array, Candidate, ResolvedModel, ResolvedWorkload, Service, Shape
from planner.physics.latency import throughput
from planner.physics.speed import StepCoefficients, step_bytes, step_flops

LADDER_RATIO = 2.0 ** (1.0 / 8.0)  # batches between breakpoints; powers of two would waste 9 % of the money
SLOT_DEVIATIONS = 4.0  # the batch cap leaves this many standard deviations of the running batch above its mean
BATCH_VARIANCE_FACTOR = 1.5  # variance of the running batch over that of Poisson arrivals (LPS closed form)
LEAST_SEQUENCES = 1e-6
SAME_BATCH = 1e-9

Cells = Mapping[tuple[str, tuple[str, ...]], tuple[str, ...]]


@dataclass(frozen=True)
class PoolRating:
    """Largest mean batch and requests/s of one replica in pools of at least `replicas`, arrays [shape, workload].

    A rate of 0 means that the workload cannot be served, or that this pool class is of no use there.
    """

    replicas: int
    batch: Array
    rate: Array


@dataclass(frozen=True)
class _Static:
    """What holds for a shape and workload at any batch, arrays [shape, workload] and [shape]."""

    kv_bytes: Array
    kv_slots: Array
    bytes_per_s: Array
    flops_per_s: Array


def candidates_of(
    arrays: ShapeArrays, workloads: Sequence[ResolvedWorkload], pools: Sequence[PoolRating], cells: Cells
) -> list[Candidate]:
    """Return a candidate for every shape, pool class, operating batch and group of cells that can serve something.

    A rating that counts on pooling must hold with the spares gone: such a candidate needs that many more replicas.
    """
    spares = arrays.model.reliability.spare_replicas
    static = _static(arrays, workloads)
    found: list[Candidate] = []
    for pool in pools:
        points = [(i, b) for i in range(len(arrays.shapes)) for b in _batches(pool, static, i)]
        if not points:
            continue
        services = _services(arrays, workloads, pool, static, points)
        least = pool.replicas + spares if pool.replicas > 1 else 1
        for (i, batch), served in zip(points, services, strict=True):
            for allowed, where in _placements(arrays.shapes[i], tuple(sorted(served)), cells):
                own = {w: served[w] for w in allowed}
                found.append(_candidate(arrays, workloads, static, i, batch, least, own, where))
    return found


def _static(arrays: ShapeArrays, workloads: Sequence[ResolvedWorkload]) -> _Static:
    size = (len(arrays.shapes), len(workloads))
    load = kv_load(arrays, workloads, *pair_indices(*size))
    streams = np.asarray(arrays.step.streams)
    return _Static(
        load.mean_bytes.reshape(size),
        load.slots.reshape(size),
        np.broadcast_to(np.asarray(arrays.step.achievable_bytes_per_s * streams), size[:1]),
        np.broadcast_to(np.asarray(arrays.step.achievable_flops_per_s * streams), size[:1]),
    )


def _batches(pool: PoolRating, static: _Static, shape: int) -> list[float]:
    """Return the mean batches to offer: the largest that each workload tolerates, and a ladder where KV room is short.

    Where no workload's KV room binds at the largest batch, time is the only scarce thing and a batch between two
    breakpoints serves the same workloads slower than the upper one.
    """
    able = pool.rate[shape] > 0.0
    if not able.any():
        return []
    breaks = sorted({float(b) for b in pool.batch[shape][able]})
    tight = (static.kv_slots[shape][able] < breaks[-1] * (1.0 + SAME_BATCH)).any()
    if not tight:
        return breaks
    steps = range(1, 1 + int(math.log(breaks[-1] / breaks[0]) / math.log(LADDER_RATIO)))
    return sorted({*breaks, *(breaks[0] * LADDER_RATIO**k for k in steps)})


def _services(
    arrays: ShapeArrays,
    workloads: Sequence[ResolvedWorkload],
    pool: PoolRating,
    static: _Static,
    points: Sequence[tuple[int, float]],
) -> list[dict[str, Service]]:
    """Return, for every operating point, the services of the workloads that tolerate its batch."""
    count = len(workloads)
    shape_of = np.repeat(np.array([i for i, _ in points], dtype=np.intp), count)
    workload_of = np.tile(np.arange(count, dtype=np.intp), len(points))
    batch = np.repeat(np.array([b for _, b in points]), count)
    replicas = np.full(shape_of.size, float(pool.replicas))
    slots = static.kv_slots[shape_of, workload_of]
    rate = throughput(make_pairs(arrays, workloads, shape_of, workload_of, slots, replicas), batch).requests_per_s
    streamed, flops = _work_per_request(arrays.step.take(shape_of), workloads, workload_of, batch)
    tolerated = (pool.batch[shape_of, workload_of] >= batch * (1.0 - SAME_BATCH)) & (
        pool.rate[shape_of, workload_of] > 0.0
    )
    kv_bytes = static.kv_bytes[shape_of, workload_of]
    found: list[dict[str, Service]] = [{} for _ in points]
    for p in np.flatnonzero(tolerated).tolist():
        workload = workloads[int(workload_of[p])]
        drift = workload.spec.traffic.peak_to_mean_30s
        found[p // count][workload.name] = Service(
            busy_s=drift / float(rate[p]),
            residence_s=drift * float(batch[p] / rate[p]),
            kv_bytes=float(kv_bytes[p]),
            streamed_bytes=drift * float(streamed[p]),
            flops=drift * float(flops[p]),
        )
    return found


def _work_per_request(
    step: StepCoefficients, workloads: Sequence[ResolvedWorkload], workload_of: Indices, batch: Array
) -> tuple[Array, Array]:
    """Return bytes that one GPU streams and FLOPs it computes per request, at the mean batch of each pair."""
    context = np.array([_mean_context(w) for w in workloads])[workload_of]
    decodes = np.array([max(float((w.output_tokens - 1.0).mean()), 0.0) for w in workloads])[workload_of]
    computed = np.array([float(w.prefill_tokens @ w.prefill_weights) for w in workloads])[workload_of]
    prompt = np.array([w.mean_input_tokens for w in workloads])[workload_of]
    sequences = np.maximum(batch / np.asarray(step.streams), LEAST_SEQUENCES)
    none = np.zeros_like(computed)
    streamed = step_bytes(step, sequences, sequences, context) * decodes / sequences
    decoding = step_flops(step, sequences, sequences, context) * decodes / sequences
    prompting = step_flops(step, computed, none, none, computed, prompt)
    return np.asarray(streamed, dtype=np.float64), np.asarray(decoding + prompting, dtype=np.float64)


def _mean_context(workload: ResolvedWorkload) -> float:
    steps = workload.output_tokens - 1.0
    if steps.sum() <= 0.0:
        return workload.mean_input_tokens
    return workload.mean_input_tokens + float((steps * workload.output_tokens / 2.0).sum() / steps.sum())


def _placements(shape: Shape, served: tuple[str, ...], cells: Cells) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Return (workloads, cells) for every group of supply cells that admits at least one of the workloads served."""
    found: dict[tuple[str, ...], tuple[str, ...]] = {}
    for (gpu, admitted), where in cells.items():
        allowed = tuple(w for w in served if w in admitted) if gpu == shape.gpu else ()
        if allowed:
            found[allowed] = tuple(sorted({*found.get(allowed, ()), *where}))
    return sorted(found.items())


def _candidate(
    arrays: ShapeArrays,
    workloads: Sequence[ResolvedWorkload],
    static: _Static,
    place: int,
    batch: float,
    replicas: int,
    services: dict[str, Service],
    cells: tuple[str, ...],
) -> Candidate:
    shape = arrays.shapes[place]
    served = [j for j, w in enumerate(workloads) if w.name in services]
    cap = batch_cap(arrays.model, shape, [workloads[j] for j in served], batch)
    suffix = "" if len(served) == len(workloads) else "-" + "+".join(sorted(services))
    return Candidate(
        name=f"{shape.model}|{shape.name}|b{cap}|r{replicas}{suffix}",
        shape=shape,
        mean_batch=batch,
        max_num_seqs=cap,
        min_replicas=replicas,
        cells=cells,
        kv_pool_bytes=float((static.kv_slots[place] * static.kv_bytes[place])[served].min()),
        bandwidth_bytes_per_s=float(static.bytes_per_s[place]),
        flops_per_s=float(static.flops_per_s[place]),
        services=services,
    )


def batch_cap(model: ResolvedModel, shape: Shape, served: Sequence[ResolvedWorkload], batch: float) -> int:
    """Return max_num_seqs: the mean batch and what it swings by, so that requests wait for slots only rarely."""
    if model.spec.engine.max_num_seqs is not None:
        return model.spec.engine.max_num_seqs
    if all(float(w.output_tokens.max()) <= 1.0 for w in served):
        return shape.max_num_seqs
    cv2 = max(w.spec.traffic.arrival_cv2 for w in served)
    swing = SLOT_DEVIATIONS * math.sqrt(BATCH_VARIANCE_FACTOR * batch * (1.0 + max(cv2, 1.0)) / 2.0)
    return min(shape.max_num_seqs, math.ceil(batch + swing) + 1)
