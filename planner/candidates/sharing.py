"""Rate pools that several workloads share: on their merged lengths, within the limits of each of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np

from planner.candidates.pairs import ShapeArrays, kv_load, limits_of, make_pairs, prefill_points
from planner.candidates.rating_types import PoolRating, SharedRating
from planner.candidates.types import ResolvedWorkload
from planner.physics.latency import Lengths, ceiling, largest_within, merge

MERGED_POINTS = 32
SKEWED_SIZE = 2  # groups so large are rated for skewed mixes too
SKEW = 1 / 8  # part of a demand that a skewed mix has, beside all of the other
MOST_FOR_ALL_GROUPS = 3  # with more workloads, only pairs and the whole group are rated together


def shared_groups(count: int) -> list[tuple[int, ...]]:
    """Return the groups of workloads (by index) that may share a pool: all of two or more, or pairs and the whole."""
    sizes = range(2, count + 1) if count <= MOST_FOR_ALL_GROUPS else (2, count)
    return [group for size in sizes for group in combinations(range(count), size)]


def mixes_of(group: Sequence[int], planned: Sequence[float]) -> list[tuple[float, ...]]:
    """Return the mixes, as shares of the requests, that a group is rated for: that of its demands, and skewed ones of pairs.

    In a skewed one the pool takes a small part of one demand beside all of the other: what dedicated pools leave over.
    """
    rates = [planned[j] for j in group]
    skews = [[1.0] * len(group)]
    if len(group) == SKEWED_SIZE:
        skews += [[SKEW, 1.0], [1.0, SKEW]]
    weighted = [[rate * skew for rate, skew in zip(rates, each, strict=True)] for each in skews]
    return [tuple(w / sum(each) for w in each) for each in weighted]


def mixture(workloads: Sequence[ResolvedWorkload], rates: Sequence[float]) -> ResolvedWorkload:
    """Merge workloads, weighted by their rates, into one with equally likely lengths.

    Prefixes that some of them share are held once each; sequences of the mixture are counted with their whole context.
    """
    if len(workloads) == 1:
        return workloads[0]
    total = sum(rates)
    computed = merge(
        [w.prefill_tokens for w in workloads], rates, MERGED_POINTS, [w.prefill_weights for w in workloads]
    )
    cv2 = sum(r * w.spec.traffic.arrival_cv2 for r, w in zip(rates, workloads, strict=True)) / total
    first = workloads[0]
    traffic = first.spec.traffic.model_copy(update={"arrival_cv2": cv2})
    return replace(
        first,
        name="+".join(w.name for w in workloads),
        spec=first.spec.model_copy(update={"traffic": traffic}),
        input_tokens=merge([w.input_tokens for w in workloads], rates, MERGED_POINTS),
        output_tokens=merge([w.output_tokens for w in workloads], rates, MERGED_POINTS),
        prefill_tokens=computed,
        prefill_weights=np.full(MERGED_POINTS, 1.0 / MERGED_POINTS),
        shared_tokens=sum(w.shared_tokens for w in workloads if w.shared_hit_rate > 0.0),
        shared_hit_rate=0.0,
    )


def lengths_of(workloads: Sequence[ResolvedWorkload]) -> Lengths:
    """Return the lengths of workloads as arrays, one row each."""
    return Lengths(*prefill_points(workloads), np.stack([w.output_tokens for w in workloads]))


def rate_shared(
    arrays: ShapeArrays, workloads: Sequence[ResolvedWorkload], pools: Sequence[PoolRating]
) -> list[SharedRating]:
    """Rate every group of workloads on the shapes and pool classes that serve each of them alone.

    The plan's audit rates the mix that a pool really gets.
    """
    planned = [w.planned_requests_per_s for w in workloads]
    mixed = {group: mixes_of(group, planned) for group in shared_groups(len(workloads))}
    asked = [
        (pool, shape, (group, mix))
        for pool in pools
        for group, mixes in mixed.items()
        for mix in (mixes if pool is pools[0] else mixes[:1])
        for shape in np.flatnonzero((pool.rate[:, list(group)] > 0.0).all(axis=1)).tolist()
    ]
    if not asked:
        return []
    groups = sorted({group for _, _, group in asked})
    merged = [mixture([workloads[j] for j in g], mix) for g, mix in groups]
    # Pool classes of one group on one shape share the pair that merges the group.
    pair_of = {(g, s): n for n, (g, s) in enumerate(sorted({(groups.index(g), s) for _, s, g in asked}))}
    group_of, shape_of = (np.array([pair[k] for pair in pair_of], dtype=np.intp) for k in (0, 1))
    load = kv_load(arrays, merged, shape_of, group_of)
    top = ceiling(make_pairs(arrays, merged, shape_of, group_of, load.slots, np.ones(shape_of.size)))
    at = np.array([pair_of[groups.index(g), s] for _, s, g in asked], dtype=np.intp)
    of, member_of = (
        np.array(each, dtype=np.intp)
        for each in zip(*((n, j) for n, (_, _, (group, _)) in enumerate(asked) for j in group), strict=True)
    )
    pooled = top.pools(at, np.array([float(pool.replicas) for pool, _, _ in asked]))
    guess = np.array([pool.limit_batch[shape, list(group)].min() for pool, shape, (group, _) in asked])
    observed = lengths_of(workloads).take(member_of)
    found = largest_within(pooled, limits_of(workloads, member_of), observed=observed, of=of, guess=guess)
    pool_bytes = (load.slots * load.mean_bytes)[at]
    return [
        SharedRating(pool.replicas, shape, group, mix, *figures)
        for (pool, shape, (group, mix)), *figures in zip(
            asked,
            found.batch.tolist(),
            found.limit_batch.tolist(),
            found.requests_per_s.tolist(),
            pool_bytes.tolist(),
            strict=True,
        )
        if figures[2] > 0.0
    ]
