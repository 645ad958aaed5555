"""Which candidates of a model are not worth having at given prices, because copies of another do the same for less."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from planner.program.data import Column, ModelRules
from planner.program.index import CEIL_SLACK, row_needs

Floats = NDArray[np.float64]
MIXING_SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)
HBM, STEP_TIME = 0, 4  # places of the rows of `row_needs` that bind most
MOST_TABLE_ENTRIES = 4_000_000  # candidates x candidates; above that nothing is compared, which is always allowed


def copies_to_replace(columns: Sequence[Column]) -> Floats:
    """Return, for [i, j], how many replicas of i do all that one of j does: infinite where i cannot do it.

    Each capacity row of i is compared with a mean of two rows of j, or any other one: whatever keeps the rows of j keeps it
    then, so that so many copies of i carry any traffic that one replica of j carries.
    """
    count = len(columns)
    if count * count > MOST_TABLE_ENTRIES:
        return np.where(np.eye(count, dtype=bool), 1.0, np.inf)
    workloads = sorted({w for c in columns for w in c.services})
    needs = np.zeros((5, count, len(workloads)))
    serves = np.zeros((count, len(workloads)), dtype=bool)
    for i, column in enumerate(columns):
        for w, workload in enumerate(workloads):
            if workload in column.services:
                needs[:, i, w] = row_needs(column, column.services[workload])
                serves[i, w] = True
    others = [row for k, row in enumerate(needs) if k not in (HBM, STEP_TIME) and (row > needs[STEP_TIME]).any()]
    rows = [needs[HBM], needs[STEP_TIME], *others]
    bounds = [share * rows[0] + (1.0 - share) * rows[1] for share in MIXING_SHARES] + others
    worst = np.zeros((count, count))
    for row in rows:
        best = np.full((count, count), np.inf)
        for bound in bounds:
            np.minimum(best, _ratio(row, bound, serves), out=best)
        np.maximum(worst, best, out=worst)
    for w in range(len(workloads)):
        worst[np.ix_(~serves[:, w], serves[:, w])] = np.inf
    worst[~_takes_the_mix(columns)] = np.inf
    return np.maximum(1.0, np.ceil(worst * (1.0 - CEIL_SLACK)))


def _takes_the_mix(columns: Sequence[Column]) -> NDArray[np.bool_]:
    """Tell, for [i, j], whether i may get what j gets: it is rated for any mix, or for the same."""
    mixes = [tuple(flow.items()) for c in columns for flow in [c.flows[-1] if c.flows else {}]]
    number = {mix: k for k, mix in enumerate(dict.fromkeys(mixes))}
    mix = np.array([number[each] for each in mixes])
    is_free = np.array([all(len(flow) == 1 for flow in c.flows) for c in columns])
    return np.asarray(is_free[:, None] | (mix[:, None] == mix[None, :]))


def _ratio(row: Floats, bound: Floats, serves: NDArray[np.bool_]) -> Floats:
    """Return, for [i, j], the largest ratio over the workloads of j of what i needs to `bound` of j."""
    most = np.zeros((len(row), len(row)))
    for w in range(row.shape[1]):
        served = np.flatnonzero(serves[:, w])
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = row[:, w][:, None] / bound[served, w][None, :]
        ratio = np.where(np.isnan(ratio), 0.0, ratio)
        most[:, served] = np.maximum(most[:, served], ratio)
    return most


def worth_keeping(
    columns: Sequence[Column], copies: Floats, price: Floats, rules: ModelRules, margin: float = 1.0
) -> NDArray[np.bool_]:
    """Tell which candidates a cheapest plan may need at prices per replica, given the table of `copies_to_replace`.

    A shape goes when another one does, for each of its candidates, the same at no higher price: the model then runs in that
    shape instead, which keeps the number of shapes and, compared within formats, one format for all. What
    replaces another must be cheaper by the factor `margin`. With several spares none goes: a merged pool may lose at once
    what two pools would not. Only candidates whose nodes fail alike replace each other.
    """
    if rules.spare_replicas > 1:
        return np.ones(len(columns), dtype=bool)
    least = np.array([c.min_replicas for c in columns])
    better = (margin * copies * price[:, None] <= price[None, :]) & (least[:, None] <= copies * least[None, :])
    if rules.uniform_format:
        formats = np.unique([f"{c.weights} {c.kv_cache}" for c in columns], return_inverse=True)[1]
        better &= formats[:, None] == formats[None, :]
    better &= _fail_alike(columns)
    names, shape = np.unique([c.shape for c in columns], return_inverse=True)
    has = np.stack([better[shape == s].any(axis=0) for s in range(len(names))])
    replaces = np.stack([has[:, shape == s].all(axis=1) for s in range(len(names))], axis=1)
    alive = np.ones(len(names), dtype=bool)
    for s in range(len(names)):
        alive[s] = not (replaces[:, s] & alive & (np.arange(len(names)) != s)).any()
    return np.asarray(alive[shape])


def _fail_alike(columns: Sequence[Column]) -> NDArray[np.bool_]:
    """Tell, for [i, j], whether two candidates lie on nodes that are lost together, and as many replicas with one node."""
    kinds = [(c.spot, c.zone, *((c.node_replicas, c.node_gpus, c.cells) if c.node_replicas else ())) for c in columns]
    number = {kind: i for i, kind in enumerate(dict.fromkeys(kinds))}
    kind = np.array([number[each] for each in kinds])
    return np.asarray(kind[:, None] == kind[None, :])
