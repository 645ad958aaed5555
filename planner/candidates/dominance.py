"""Drop what fewer GPUs of the same type can replace: k copies of one for one of the other, for every workload."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from planner.candidates.types import Array, Candidate, Rejection, Service, Shape

DOMINATED_RULE = "dominated"
FIRST_PASS_MARGIN = 1.1  # mean flows must differ by more than this before they decide for the latency pass
SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)

RowNeed = Callable[[Candidate, Service], float]


def kept_shapes(shapes: Sequence[Shape], rates: Array) -> tuple[NDArray[np.intp], list[Rejection]]:
    """Return the shapes to rate further, and a rejection for each that is dominated or carries nothing.

    `rates` are mean requests/s of one replica, [shape, workload]. A shape goes when k replicas of another of the same
    GPU type and formats carry at least as much of every workload with `FIRST_PASS_MARGIN` to spare, on no more GPUs.
    """
    groups: dict[tuple[str, str, str], list[int]] = defaultdict(list)
    for i, shape in enumerate(shapes):
        groups[shape.gpu, shape.weights, shape.kv_cache].append(i)
    killer: dict[int, tuple[int, int]] = {}
    for members in groups.values():
        for j in members:
            for i in members:
                copies = _copies(rates[i], rates[j]) if i not in killer and i != j else 0
                if copies and copies * shapes[i].gpus <= shapes[j].gpus:
                    killer[j] = (i, copies)
                    break
    rejections = [
        Rejection(
            DOMINATED_RULE,
            shapes[j].model,
            shapes[j].name,
            shapes[j].gpu,
            f"{copies} x {shapes[i].name} carries at least as much of every workload on {copies * shapes[i].gpus} GPUs instead of {shapes[j].gpus}",
        )
        for j, (i, copies) in sorted(killer.items())
    ]
    return np.array([i for i in range(len(shapes)) if i not in killer], dtype=np.intp), rejections


def _copies(rates_i: Array, rates_j: Array) -> int:
    """Return how many replicas of i carry what one of j carries, or 0 when no number of them does."""
    needed = rates_j > 0.0
    if (rates_i[needed] <= 0.0).any():
        return 0
    return int(np.ceil(FIRST_PASS_MARGIN * (rates_j[needed] / rates_i[needed]).max(initial=0.0))) or 1


def kept_candidates(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Return the candidates that no other of the same model, GPU type, formats and cells replaces k-fold.

    Exact: the replacement uses no more GPUs of the same type at no higher node size, and covers every capacity row.
    """
    groups: dict[tuple[str, ...], list[Candidate]] = defaultdict(list)
    for candidate in candidates:
        shape = candidate.shape
        groups[shape.model, shape.gpu, shape.weights, shape.kv_cache, *candidate.cells].append(candidate)
    kept: list[Candidate] = []
    for key in sorted(groups):
        members = sorted(groups[key], key=lambda c: (c.shape.gpus, c.min_replicas, c.name))
        alive: list[Candidate] = []
        for other in members:
            if not any(_replaces(one, other) for one in alive):
                alive = [one for one in alive if not _replaces(other, one)] + [other]
        kept += alive
    return sorted(kept, key=lambda c: c.name)


def _replaces(one: Candidate, other: Candidate) -> bool:
    """Tell whether k replicas of `one` do all that one of `other` does, on no more GPUs, wherever `other` may be used."""
    copies = _copies_needed(one, other)
    if copies == 0 or copies * one.shape.gpus > other.shape.gpus:
        return False
    if one.shape.node_gpus > other.shape.node_gpus or one.shape.nodes_spanned > other.shape.nodes_spanned:
        return False
    return one.min_replicas <= copies * other.min_replicas


def _copies_needed(one: Candidate, other: Candidate) -> int:
    if any(w not in one.services for w in other.services):
        return 0
    worst = max(_excess(one, other, row) for row in (_hbm, _time))
    return max(1, int(np.ceil(worst - 1e-9)))


def _excess(one: Candidate, other: Candidate, row: RowNeed) -> float:
    """Bound one row's need of `one` by a mean of the rows of `other`, at the best of a few mixing shares."""
    return min(
        max(
            row(one, s) / (a * _hbm(other, other.services[w]) + (1.0 - a) * _time(other, other.services[w]))
            for w, s in one.services.items()
            if w in other.services
        )
        for a in SHARES
    )


def _hbm(candidate: Candidate, service: Service) -> float:
    return service.residence_s * service.kv_bytes / candidate.kv_pool_bytes


def _time(candidate: Candidate, service: Service) -> float:
    return max(service.busy_s, service.residence_s / candidate.max_num_seqs)
