"""Rate the shapes of a model: formats that others replace go first, then the largest batch within all limits is found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from planner.candidates.dominance import kept_formats
from planner.candidates.operating import Cells, candidates_of
from planner.candidates.pairs import Indices, ShapeArrays, kv_load, limits_of, make_pairs, pair_indices
from planner.candidates.rating_types import PoolRating
from planner.candidates.sharing import rate_shared
from planner.candidates.types import Array, Candidate, Domain, Rejection, ResolvedWorkload
from planner.physics.latency import Ceiling, ceiling, holds_at, idle_miss, largest_within
from planner.physics.latency.types import Limits

POOL_CLASSES = (1, 2, 4, 8)  # replica counts from which a rating holds: pooling pays most for the first few
JUST_BELOW = 0.999  # batch and rate stay this much below the limit, for the slots that the cap takes away
SAME_RATING = 0.03  # a larger pool class must gain more than this to be a candidate of its own
LATENCY_RULE = "latency"


@dataclass(frozen=True)
class Missed:
    """What keeps pairs from being served, arrays [shape, workload]: `binding` and `best_s` of the largest pool tried.

    `missed` tells where no pool class serves; see `planner.physics.latency.Largest`.
    """

    missed: NDArray[np.bool_]
    binding: NDArray[np.object_]
    best_s: Array


def rate_shapes(
    arrays: ShapeArrays,
    workloads: Sequence[ResolvedWorkload],
    cells: Cells,
    node_sizes: Mapping[str, frozenset[int]],
    domains: Mapping[str, Domain],
    running: frozenset[str] = frozenset(),
) -> tuple[list[Candidate], list[Rejection]]:
    """Return the candidates of one model and what was ruled out, with reasons.

    `cells` maps (GPU type, workloads admitted) to the supply cells where such a pool may lie, `node_sizes` those to the
    GPUs per node on offer there and `domains` those to what fails with them. Shapes that are `running` are rated in any case.
    """
    keep, rejections = np.arange(len(arrays.shapes)), list[Rejection]()
    if arrays.model.spec.uniform_format:
        keep, rejections = kept_formats(arrays, running)
    arrays = arrays.take(keep)
    pools, missed = _rate(arrays, workloads)
    rejections += _latency_rejections(arrays, workloads, missed)
    shared = rate_shared(arrays, workloads, pools)
    return candidates_of(arrays, workloads, pools, shared, cells, node_sizes, domains), rejections


def _rate(arrays: ShapeArrays, workloads: Sequence[ResolvedWorkload]) -> tuple[list[PoolRating], Missed]:
    """Find the largest mean batch within all latency limits, for every pool class that may be of use.

    A larger class is of use only where it rates some workload higher, and where the class below needs more replicas than
    it asks for: else the lower class serves everything on no more of them.
    """
    shape_of, workload_of = pair_indices(len(arrays.shapes), len(workloads))
    load = kv_load(arrays, workloads, shape_of, workload_of)
    top = ceiling(make_pairs(arrays, workloads, shape_of, workload_of, load.slots, np.ones(shape_of.size)))
    limits = limits_of(workloads, workload_of)
    planned = np.array([w.planned_requests_per_s * w.spec.traffic.peak_to_mean_30s for w in workloads])
    size = (len(arrays.shapes), len(workloads))
    most, best, carried = top.requests_per_s.reshape(size), np.zeros(size), np.zeros(size)
    reached, binding = np.zeros(size), np.full(size, "", dtype=object)
    tried = np.ones(len(arrays.shapes), dtype=bool)
    pools: list[PoolRating] = []
    for replicas in POOL_CLASSES:
        if pools:
            needed = np.ceil((planned / np.maximum(best, 1e-12)).sum(axis=1)) + arrays.model.reliability.spare_replicas
            tried = np.asarray((needed > replicas) & (most > best * (1.0 + SAME_RATING)).any(axis=1))
            # The rate grows by no larger a factor than the batch does, so that this much more must be within the limits.
            index, pooled, asked = _of_shapes(tried, top, limits, replicas)
            gains = np.zeros(size, dtype=bool)
            gains.flat[index] = holds_at(pooled, asked, (1.0 + SAME_RATING) * carried.flat[index])
            tried = np.asarray(gains.any(axis=1))
        if not tried.any():
            break
        index, pooled, asked = _of_shapes(tried, top, limits, replicas)
        found = largest_within(pooled, asked, guess=reached.flat[index] if pools else None)
        batch, rate, limit_batch = (np.zeros(size) for _ in range(3))
        batch.flat[index], rate.flat[index] = JUST_BELOW * found.batch, JUST_BELOW * found.requests_per_s
        limit_batch.flat[index], binding.flat[index] = found.limit_batch, found.binding
        useful = tried if not pools else np.asarray((rate > best * (1.0 + SAME_RATING)).any(axis=1))
        pools.append(PoolRating(replicas, batch, np.where(useful[:, None], rate, 0.0), limit_batch))
        best = np.maximum(best, pools[-1].rate)
        reached = np.maximum(reached, limit_batch)
        carried = np.maximum(carried, np.where(useful[:, None], batch, 0.0))
    return pools, _missed(top, limits, best <= 0.0, binding)


def _of_shapes(
    tried: NDArray[np.bool_], top: Ceiling, limits: Limits, replicas: int
) -> tuple[Indices, Ceiling, dict[str, Array]]:
    """Return the pairs of the shapes tried: their index, their ceiling in pools of `replicas`, their limits."""
    index = np.flatnonzero(np.repeat(tried, top.batch.size // tried.size))
    pooled = top.pools(index, np.full(index.size, float(replicas)))
    return index, pooled, {key: limit[index] for key, limit in limits.items()}


def _missed(top: Ceiling, limits: Limits, missed: NDArray[np.bool_], binding: NDArray[np.object_]) -> Missed:
    """Find what the pairs that no pool class serves lack in the largest one."""
    best_s = np.zeros(missed.shape)
    index = np.flatnonzero(missed)
    if index.size and limits:
        largest = top.pools(index, np.full(index.size, float(POOL_CLASSES[-1])))
        binding.flat[index], best_s.flat[index] = idle_miss(
            largest, {key: limit[index] for key, limit in limits.items()}
        )
    return Missed(missed, binding, best_s)


def _latency_rejections(arrays: ShapeArrays, workloads: Sequence[ResolvedWorkload], found: Missed) -> list[Rejection]:
    """Say which shapes cannot serve which workload in any pool size, by which limit, and the best they reach."""
    rejections: list[Rejection] = []
    for i, j in np.argwhere(found.missed).tolist():
        shape, workload, key = arrays.shapes[i], workloads[j], str(found.binding[i, j])
        slo, reach, reason = "", 0.0, "no sequence of this workload fits the KV pool"
        if key in workload.spec.slo:
            slo, reach = key, float(found.best_s[i, j])
            limit = in_words(workload.spec.slo[key])
            reason = f"{key} of {limit}: the best an idle replica reaches is {in_words(reach)}"
        rejected = Rejection(LATENCY_RULE, shape.model, shape.name, shape.gpu, reason, workload.name, slo, reach)
        rejections.append(rejected)
    return rejections


def in_words(seconds: float) -> str:
    """Return a time as people write it: milliseconds below one second."""
    return f"{seconds:.4g} s" if seconds >= 1.0 else f"{seconds * 1e3:.4g} ms"
