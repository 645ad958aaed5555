"""Drop what something else replaces: narrower formats everywhere, or k replicas on no more GPUs of the same type."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from planner.candidates.pairs import Indices, ShapeArrays
from planner.candidates.types import Array, Candidate, Rejection
from planner.physics.step import SHARED_FIELDS

DOMINATED_RULE = "dominated"
MIXING_SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)
RATE_FIELDS = ("_per_s",)  # achievable rates describe the seconds, they cost none
NEUTRAL_FIELDS = frozenset({"window_tokens", "half_tokens", "data_ranks", "expert_share", "expert_miss_log"})
FASTER_WHEN_LARGER = frozenset({"streams"})
CEIL_SLACK = 1e-9
MOST_COPIES = 64  # no replica takes more GPUs than this

Formats = tuple[str, str]
_PREFERENCE = ("fp8", "int8", "int4")  # among equals the more common format wins; native ones come first


def kept_formats(arrays: ShapeArrays) -> tuple[Indices, list[Rejection]]:
    """Return the shapes whose formats are worth rating, and a rejection for each of the others.

    Exact: a pair of formats goes when another pair is at least as fast in every term of the step and holds at least as
    many sequences, on every GPU type and in every layout where the first one fits. The model then runs in the other
    pair wherever it would have run in this one, which also respects one format for the whole model.
    """
    by_formats: dict[Formats, dict[tuple[str, object], int]] = defaultdict(dict)
    for i, shape in enumerate(arrays.shapes):
        by_formats[shape.weights, shape.kv_cache][shape.gpu, shape.layout] = i
    costs = _costs(arrays)
    replaced: dict[Formats, Formats] = {}
    order = sorted(by_formats, key=lambda f: (_PREFERENCE.index(f[0]) if f[0] in _PREFERENCE else -1, f))
    for formats in reversed(order):
        for other in order:
            if other != formats and other not in replaced and _covers(by_formats[other], by_formats[formats], costs):
                replaced[formats] = other
                break
    rejections = [
        Rejection(DOMINATED_RULE, s.model, s.name, s.gpu, _format_reason(replaced[s.weights, s.kv_cache]))
        for s in arrays.shapes
        if (s.weights, s.kv_cache) in replaced
    ]
    keep = [i for i, s in enumerate(arrays.shapes) if (s.weights, s.kv_cache) not in replaced]
    return np.array(keep, dtype=np.intp), rejections


def _format_reason(other: Formats) -> str:
    return f"{other[0]} weights with {other[1]} KV are at least as fast and as small wherever these formats fit"


def _costs(arrays: ShapeArrays) -> Array:
    """Return, by shape, everything that makes a step slower or the cache smaller: less is never worse."""
    step = arrays.step
    columns = []
    for name, value in vars(step).items():
        if name in SHARED_FIELDS or name in NEUTRAL_FIELDS or name.endswith(RATE_FIELDS):
            continue
        column = np.broadcast_to(np.asarray(value, dtype=np.float64), (len(arrays.shapes),))
        columns.append(-column if name in FASTER_WHEN_LARGER else column)
    budgets = [s.budget for s in arrays.shapes]
    columns.append(np.array([-b.kv_pool_bytes for b in budgets]))
    columns.append(np.array([b.kv.global_bytes_per_token for b in budgets]))
    columns.append(np.array([b.kv.local_bytes_per_token for b in budgets]))
    columns.append(np.array([b.kv.fixed_bytes for b in budgets]))
    return np.stack(columns, axis=1)


def _covers(other: dict[tuple[str, object], int], formats: dict[tuple[str, object], int], costs: Array) -> bool:
    if not formats.keys() <= other.keys():
        return False
    rows = [other[key] for key in formats]
    return bool((costs[rows] <= costs[list(formats.values())]).all())


def kept_candidates(candidates: Sequence[Candidate], spare_replicas: int = 0) -> list[Candidate]:
    """Return the candidates that no other of the same model, GPU type, formats and cells replaces k-fold.

    Exact: the replacement serves the same workloads, uses no more GPUs of the same type at no higher node size, and covers
    every capacity row. With several spares one pool of two loses what two pools of one keep, so copies do not replace one
    then. A candidate of more workloads never replaces one of fewer: its rating may have to be lowered for the mix it gets.
    """
    groups: dict[tuple[str, ...], list[Candidate]] = defaultdict(list)
    for candidate in candidates:
        shape = candidate.shape
        served = "+".join(sorted(candidate.services))
        groups[shape.model, shape.gpu, shape.weights, shape.kv_cache, served, *candidate.cells].append(candidate)
    most_copies = 1 if spare_replicas > 1 else MOST_COPIES
    each = [
        sorted(groups[key], key=lambda c: (c.shape.gpus, c.min_replicas, -c.mean_batch, c.name))
        for key in sorted(groups)
    ]
    kept = [
        c for group, replaces in zip(each, _replaces(each, most_copies), strict=True) for c in _alive(group, replaces)
    ]
    return sorted(kept, key=lambda c: c.name)


def _alive(members: list[Candidate], replaces: NDArray[np.bool_]) -> list[Candidate]:
    alive: list[int] = []
    for j in range(len(members)):
        if not replaces[alive, j].any():
            alive = [i for i in alive if not replaces[j, i]] + [j]
    return [members[i] for i in alive]


def _replaces(groups: list[list[Candidate]], most_copies: int) -> list[NDArray[np.bool_]]:
    """Tell, for [i, j] of each group, whether k replicas of i do all that one of j does, wherever j may be used.

    All pairs of all groups are compared at once: groups are many and small.
    """
    if not groups:
        return []
    sizes = [len(group) for group in groups]
    starts = np.cumsum([0, *sizes[:-1]])
    i, j = (
        np.concatenate(
            [
                start + index[k].ravel()
                for start, size in zip(starts, sizes, strict=True)
                for index in [np.indices((size, size))]
            ]
        )
        for k in (0, 1)
    )
    members = [c for group in groups for c in group]
    workloads = sorted({w for c in members for w in c.services})
    rows = _needs(members, workloads)
    serves = np.array([[w in c.services for w in workloads] for c in members])
    able = ~(serves[j] & ~serves[i]).any(axis=1)
    worst = np.max([_excess(row[i], [each[j] for each in rows], serves[j]) for row in rows], axis=0)
    copies = np.maximum(1.0, np.ceil(np.where(able, worst, np.inf) * (1.0 - CEIL_SLACK)))
    gpus = np.array([c.shape.gpus for c in members])
    node = np.array([c.shape.node_gpus for c in members])
    spanned = np.array([c.shape.nodes_spanned for c in members])
    least = np.array([c.min_replicas for c in members])
    replaces = (
        (copies <= most_copies)
        & (copies * gpus[i] <= gpus[j])
        & (node[i] <= node[j])
        & (spanned[i] <= spanned[j])
        & (least[i] <= copies * least[j])
        & (i != j)
    )
    ends = np.cumsum([size * size for size in sizes])
    return [part.reshape(size, size) for part, size in zip(np.split(replaces, ends[:-1]), sizes, strict=True)]


def _excess(asked: Array, rows: list[Array], serves: NDArray[np.bool_]) -> Array:
    """Bound, by pair, what a row of the first `asked` by what the `rows` of the second ask: any one, or a mean of two.

    A row is within k replicas when it asks, for every workload that the second `serves`, no more than k times such a
    bound does. All arrays are [pair, workload].
    """
    first, second = rows[:2]
    bounds = [share * first + (1.0 - share) * second for share in MIXING_SHARES] + rows[2:]
    nothing = np.where(asked > 0.0, np.inf, 0.0)
    ratios = [np.divide(asked, bound, out=nothing.copy(), where=bound > 0.0) for bound in bounds]
    return np.asarray(np.min([np.where(serves, ratio, 0.0).max(axis=1) for ratio in ratios], axis=0))


def _needs(members: list[Candidate], workloads: list[str]) -> list[Array]:
    """Return replicas needed per request/s by capacity row, [candidate, workload] each, HBM and step time first.

    Rows that another one implies in every candidate are left out.
    """
    table = np.zeros((5, len(members), len(workloads)))
    for i, candidate in enumerate(members):
        for j, workload in enumerate(workloads):
            service = candidate.services.get(workload)
            if service is not None:
                table[:, i, j] = (
                    service.residence_s * service.kv_bytes / candidate.kv_pool_bytes,
                    service.busy_s,
                    service.residence_s / candidate.max_num_seqs,
                    service.streamed_bytes / candidate.bandwidth_bytes_per_s,
                    service.flops / candidate.flops_per_s,
                )
    hbm, busy, *others = table
    return [hbm, busy, *(row for row in others if (row > busy).any())]
