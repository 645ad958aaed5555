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
from planner.candidates.types import Array, Candidate, Rejection, ResolvedModel, ResolvedWorkload, Shape
from planner.physics.constants import SpeedConstants
from planner.physics.latency import largest_batch

POOL_CLASSES = (1, 2, 4, 8)  # replica counts from which a rating holds: pooling pays most for the first few
JUST_BELOW = 0.999  # batch and rate stay this much below the limit, for the slots that the cap takes away
SAME_RATING = 0.03  # a larger pool class must gain more than this to be a candidate of its own
LATENCY_RULE = "latency"


@dataclass(frozen=True)
class Rating:
    """What rating found, arrays [pool class, shape, workload]; see `planner.physics.latency.Largest`."""

    batch: Array
    rate: Array
    binding: NDArray[np.object_]
    best_s: Array


def rate_shapes(
    model: ResolvedModel,
    workloads: Sequence[ResolvedWorkload],
    shapes: Sequence[Shape],
    cells: Cells,
    node_sizes: Mapping[str, frozenset[int]],
    constants: SpeedConstants,
) -> tuple[list[Candidate], list[Rejection]]:
    """Return the candidates of one model and what was ruled out, with reasons.

    `cells` maps (GPU type, workloads admitted) to the supply cells where such a pool may lie, `node_sizes` those to the
    GPUs per node on offer there.
    """
    if not shapes or not workloads:
        return [], []
    arrays = ShapeArrays.of(model, shapes, constants)
    keep, rejections = kept_formats(arrays) if model.spec.uniform_format else (np.arange(len(shapes)), [])
    arrays = arrays.take(keep)
    rating = _rate(arrays, workloads)
    rejections += _latency_rejections(arrays, workloads, rating)
    pools = _useful_pools(model, workloads, rating)
    shared = rate_shared(arrays, workloads, pools)
    return candidates_of(arrays, workloads, pools, shared, cells, node_sizes), rejections


def _rate(arrays: ShapeArrays, workloads: Sequence[ResolvedWorkload]) -> Rating:
    """Find the largest mean batch within all latency limits, for every pool class."""
    shape_of, workload_of = pair_indices(len(arrays.shapes), len(workloads))
    classes = np.repeat(np.array(POOL_CLASSES, dtype=np.float64), shape_of.size)
    shape_of, workload_of = (np.tile(each, len(POOL_CLASSES)) for each in (shape_of, workload_of))
    load = kv_load(arrays, workloads, shape_of, workload_of)
    pairs = make_pairs(arrays, workloads, shape_of, workload_of, load.slots, classes)
    found = largest_batch(pairs, limits_of(workloads, workload_of))
    size = (len(POOL_CLASSES), len(arrays.shapes), len(workloads))
    return Rating(
        JUST_BELOW * found.batch.reshape(size),
        JUST_BELOW * found.requests_per_s.reshape(size),
        found.binding.reshape(size),
        found.best_s.reshape(size),
    )


def _latency_rejections(arrays: ShapeArrays, workloads: Sequence[ResolvedWorkload], rating: Rating) -> list[Rejection]:
    """Say which shapes cannot serve which workload in any pool size, by which limit, and the best they reach."""
    rejections: list[Rejection] = []
    for i, shape in enumerate(arrays.shapes):
        for j, workload in enumerate(workloads):
            if (rating.rate[:, i, j] > 0.0).any():
                continue
            key = str(rating.binding[-1, i, j])
            slo, reach = "", 0.0
            reason = "no sequence of this workload fits the KV pool"
            if key in workload.spec.slo:
                slo, reach = key, float(rating.best_s[-1, i, j])
                limit = in_words(workload.spec.slo[key])
                reason = f"{key} of {limit}: the best an idle replica reaches is {in_words(reach)}"
            found = Rejection(LATENCY_RULE, shape.model, shape.name, shape.gpu, reason, workload.name, slo, reach)
            rejections.append(found)
    return rejections


def in_words(seconds: float) -> str:
    """Return a time as people write it: milliseconds below one second."""
    return f"{seconds:.4g} s" if seconds >= 1.0 else f"{seconds * 1e3:.4g} ms"


def _useful_pools(model: ResolvedModel, workloads: Sequence[ResolvedWorkload], rating: Rating) -> list[PoolRating]:
    """Return the ratings worth being candidates, by pool class.

    A larger class is of use only where it rates some workload higher, and where the class below needs more replicas than
    it asks for: else the lower class serves everything on no more of them.
    """
    planned = np.array([w.planned_requests_per_s * w.spec.traffic.peak_to_mean_30s for w in workloads])
    pools: list[PoolRating] = []
    useful = np.ones(rating.rate.shape[1], dtype=bool)
    best = np.zeros_like(rating.rate[0])
    for k, pool in enumerate(POOL_CLASSES):
        rate = rating.rate[k]
        if k > 0:
            alone = np.ceil((planned / np.maximum(best, 1e-12)).sum(axis=1)) + model.reliability.spare_replicas
            useful = (rate > best * (1.0 + SAME_RATING)).any(axis=1) & (alone > pool)
        pools.append(PoolRating(pool, rating.batch[k], np.where(useful[:, None], rate, 0.0)))
        best = np.where(useful[:, None], np.maximum(best, rate), best)
    return pools
