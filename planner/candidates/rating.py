"""Rate the shapes of a model: formats that others replace go first, then the largest batch within all limits is found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from planner.candidates.dominance import kept_formats
from planner.candidates.operating import Cells, candidates_of
from planner.candidates.pairs import ShapeArrays, kv_load, limits_of, make_pairs, pair_indices
from planner.candidates.rating_types import PoolRating
from planner.candidates.sharing import rate_shared
from planner.candidates.types import Array, Candidate, Rejection, ResolvedWorkload
from planner.physics.latency import ceiling, largest_within

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
) -> tuple[list[Candidate], list[Rejection]]:
    """Return the candidates of one model and what was ruled out, with reasons.

    `cells` maps (GPU type, workloads admitted) to the supply cells where such a pool may lie, `node_sizes` those to the
    GPUs per node on offer there.
    """
    keep, rejections = kept_formats(arrays) if arrays.model.spec.uniform_format else (np.arange(len(arrays.shapes)), [])
    arrays = arrays.take(keep)
    pools, missed = _rate(arrays, workloads)
    rejections += _latency_rejections(arrays, workloads, missed)
    shared = rate_shared(arrays, workloads, pools)
    return candidates_of(arrays, workloads, pools, shared, cells, node_sizes), rejections


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
    most, best = top.requests_per_s.reshape(size), np.zeros(size)
    missed = Missed(np.ones(size, dtype=bool), np.full(size, "", dtype=object), np.zeros(size))
    tried = np.ones(len(arrays.shapes), dtype=bool)
    pools: list[PoolRating] = []
    for replicas in POOL_CLASSES:
        if pools:
            needed = np.ceil((planned / np.maximum(best, 1e-12)).sum(axis=1)) + arrays.model.reliability.spare_replicas
            tried = (needed > replicas) & (most > best * (1.0 + SAME_RATING)).any(axis=1)
        if not tried.any():
            break
        index = np.flatnonzero(np.repeat(tried, len(workloads)))
        pooled = top.pools(index, np.full(index.size, float(replicas)))
        found = largest_within(pooled, {key: limit[index] for key, limit in limits.items()})
        batch, rate = np.zeros(size), np.zeros(size)
        batch.flat[index], rate.flat[index] = JUST_BELOW * found.batch, JUST_BELOW * found.requests_per_s
        missed.binding.flat[index], missed.best_s.flat[index] = found.binding, found.best_s
        useful = tried if not pools else (rate > best * (1.0 + SAME_RATING)).any(axis=1)
        pools.append(PoolRating(replicas, batch, np.where(useful[:, None], rate, 0.0)))
        best = np.maximum(best, pools[-1].rate)
    return pools, Missed(best <= 0.0, missed.binding, missed.best_s)


def _latency_rejections(arrays: ShapeArrays, workloads: Sequence[ResolvedWorkload], found: Missed) -> list[Rejection]:
    """Say which shapes cannot serve which workload in any pool size, by which limit, and the best they reach."""
    rejections: list[Rejection] = []
    for i, j in np.argwhere(found.missed).tolist():
        shape, workload, key = arrays.shapes[i], workloads[j], str(found.binding[i, j])
        if key in workload.spec.slo:
            limit, reach = workload.spec.slo[key], float(found.best_s[i, j])
            reason = f"{key} of {in_words(limit)}: the best an idle replica reaches is {in_words(reach)}"
        else:
            reason = "no sequence of this workload fits the KV pool"
        rejections.append(Rejection(LATENCY_RULE, shape.model, shape.name, shape.gpu, reason, workload.name))
    return rejections


def in_words(seconds: float) -> str:
    """Return a time as people write it: milliseconds below one second."""
    return f"{seconds:.4g} s" if seconds >= 1.0 else f"{seconds * 1e3:.4g} ms"
