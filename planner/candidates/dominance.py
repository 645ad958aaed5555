"""Drop what something else replaces: narrower formats everywhere, or k replicas on no more GPUs of the same type."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from planner.candidates.pairs import Indices, ShapeArrays
from planner.candidates.types import Array, Candidate, Rejection, Shape
from planner.physics.step import SHARED_FIELDS
from planner.spec import ReliabilitySpec

DOMINATED_RULE = "dominated"
MIXING_SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)
RATE_FIELDS = ("_per_s",)  # achievable rates describe the seconds, they cost none
NEUTRAL_FIELDS = frozenset({"window_tokens", "half_tokens", "data_ranks", "expert_share", "expert_miss_log"})
FASTER_WHEN_LARGER = frozenset({"streams"})
CEIL_SLACK = 1e-9
GIB = 2.0**30
MOST_COPIES = 64  # no replica takes more GPUs than this

Formats = tuple[str, str]
_PREFERENCE = ("fp8", "int8", "int4")  # among equals the more common format wins; native ones come first


def kept_formats(arrays: ShapeArrays, running: frozenset[str] = frozenset()) -> tuple[Indices, list[Rejection]]:
    """Return the shapes whose formats are worth rating, and a rejection for each of the others.

    Exact: a pair of formats goes when another pair is at least as fast in every term of the step and holds at least as
    many sequences, on every GPU type and in every layout where the first one fits. The model then runs in the other
    pair wherever it would have run in this one, which also respects one format for the whole model. Shapes that are
    `running` are worth rating in any case.
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
    rejections: list[Rejection] = []
    for shape in arrays.shapes:
        if (shape.weights, shape.kv_cache) in replaced and shape.name not in running:
            formats = replaced[shape.weights, shape.kv_cache]
            twin = arrays.shapes[by_formats[formats][shape.gpu, shape.layout]]
            reason = _format_reason(shape, twin)
            rejections.append(Rejection(DOMINATED_RULE, shape.model, shape.name, shape.gpu, reason))
    keep = [i for i, s in enumerate(arrays.shapes) if (s.weights, s.kv_cache) not in replaced or s.name in running]
    return np.array(keep, dtype=np.intp), rejections


def _format_reason(shape: Shape, twin: Shape) -> str:
    pairs = [
        (f"{s.budget.weights_bytes / GIB:.1f} GiB of weights per GPU", f"room for {s.budget.kv_tokens:,.0f} tokens")
        for s in (twin, shape)
    ]
    better = [f"{other} instead of {own}" for other, own in zip(*pairs, strict=True) if other != own]
    here = " and ".join(better) or f"as here, with {' and '.join(pairs[0])} in both"
    return (
        f"{twin.weights} weights with {twin.kv_cache} KV are at least as fast and as small wherever these formats fit: "
        f"{here}"
    )


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


def kept_candidates(
    candidates: Sequence[Candidate],
    reliability: ReliabilitySpec = ReliabilitySpec(),
    running: frozenset[str] = frozenset(),
) -> tuple[list[Candidate], dict[str, str]]:
    """Return the candidates that no other of the same model, GPU type, formats and cells replaces k-fold.

    And, by the name of a shape that lost a candidate so, what replaces it.

    Exact: the replacement serves the same workloads, uses no more GPUs of the same type at no higher node size, and covers
    every capacity row. With several spares one pool of two loses what two pools of one keep, so copies do not replace one
    then; where a node is to be survived, only replicas of the same size do, since a node holds more of smaller ones. Only
    candidates of the same workloads at the same mix are compared.
    Shapes that are `running` stay.
    """
    groups: dict[tuple[str, ...], list[Candidate]] = defaultdict(list)
    for candidate in candidates:
        shape = candidate.shape
        served = "+".join(f"{w}@{s.mix_share}" for w, s in sorted(candidate.services.items()))
        groups[shape.model, shape.gpu, shape.weights, shape.kv_cache, served, *candidate.cells].append(candidate)
    if reliability.survive == "node":
        groups = _by_size(groups)
    most_copies = 1 if reliability.spare_replicas > 1 else MOST_COPIES
    each = [
        sorted(groups[key], key=lambda c: (c.shape.gpus, c.min_replicas, -c.mean_batch, c.name))
        for key in sorted(groups)
    ]
    kept: list[Candidate] = []
    reasons: dict[str, str] = {}
    for group, copies in zip(each, _copies(each, most_copies), strict=True):
        kept += _alive(group, copies, reasons)
    names = {c.name for c in kept}
    kept += [c for c in candidates if c.shape.name in running and c.name not in names]
    return sorted(kept, key=lambda c: c.name), reasons


def _by_size(groups: Mapping[tuple[str, ...], list[Candidate]]) -> dict[tuple[str, ...], list[Candidate]]:
    found: dict[tuple[str, ...], list[Candidate]] = defaultdict(list)
    for key, members in groups.items():
        for candidate in members:
            found[*key, str(candidate.shape.node_gpus)].append(candidate)
    return found


def _alive(members: list[Candidate], copies: NDArray[np.intp], reasons: dict[str, str]) -> list[Candidate]:
    alive: list[int] = []
    for j in range(len(members)):
        better = next((i for i in alive if copies[i, j]), None)
        if better is not None:
            reasons.setdefault(members[j].shape.name, _reason(members[better], members[j], int(copies[better, j])))
            continue
        for i in alive:
            if copies[j, i]:
                reasons.setdefault(members[i].shape.name, _reason(members[j], members[i], int(copies[j, i])))
        alive = [i for i in alive if not copies[j, i]] + [j]
    return [members[i] for i in alive]


def _reason(better: Candidate, worse: Candidate, copies: int) -> str:
    served = " and ".join(sorted(worse.services))
    return (
        f"{copies} x {better.shape.name} on {copies * better.shape.gpus} GPUs carry as much of {served} "
        f"as one replica of it on {worse.shape.gpus}"
    )


def _copies(groups: list[list[Candidate]], most_copies: int) -> list[NDArray[np.intp]]:
    """Return, for [i, j] of each group, how many replicas of i do all that one of j does.

    That is wherever j may be used; 0 where no number does.

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
    counts = np.where(replaces, np.minimum(copies, most_copies), 0.0).astype(np.intp)
    ends = np.cumsum([size * size for size in sizes])
    return [part.reshape(size, size) for part, size in zip(np.split(counts, ends[:-1]), sizes, strict=True)]


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
