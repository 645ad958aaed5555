"""The largest mean batch of a replica within all limits on latency."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from planner.physics.latency.flow import batch_below, one_stream, streams, throughput
from planner.physics.latency.load import Basis, basis, load
from planner.physics.latency.rating import (
    LONGEST_S,
    SHORTEST_S,
    all_requests,
    allowed_share,
    loaded,
    seconds,
    smallest_limit,
    tail_of,
)
from planner.physics.latency.types import METRICS, Array, Largest, Lengths, Limits, Pairs

LONE_REPLICA_FACTOR = 0.88
"""Factor on the rate of a single replica, which has nobody to lean on: simulated ones carry up to 13 % less than rated."""

UTILIZATION_GUARD = 0.95
"""Largest share of the saturation of the mean flow, above which queues of variable lengths grow without bound."""

_SCANNED_SHARES = (1.0, 0.7, 0.4, 0.2, 0.08, 0.02, 2e-3, 1e-5)
_FINENESS = 12  # halvings of the logarithm of the batch between two scanned shares
_QUICK_STEPS = 8  # interpolated ones; halving ends what they leave open
_MOST_LOG_MISS = 4.0
_FLOOR_STEPS = 20
_BLOCK_PAIRS = 128  # evaluated together: their arrays over lengths stay in the cache of a core
_FLOOR_RANGE = 1e4

Indices = npt.NDArray[np.intp]


@dataclass(frozen=True)
class Ceiling:
    """What pairs carry without limits on latency, for any number of replicas; `base` is that of one pipeline stream.

    `batch` of one stream carries `UTILIZATION_GUARD` of the saturation.
    """

    base: Basis
    streams: Array
    batch: Array

    @property
    def requests_per_s(self) -> Array:
        """Largest rate of one replica, [P]."""
        return UTILIZATION_GUARD * self.base.saturation_requests_per_s * self.streams

    def pools(self, index: Indices, replicas: Array) -> Ceiling:
        """Return the pairs at `index`, in that order, in pools of `replicas` replicas."""
        base, count = self.base.take(index), self.streams[index]
        pooled = base._replace(pairs=replace(base.pairs, replicas=replicas * count))
        return Ceiling(pooled, count, self.batch[index])


@dataclass(frozen=True)
class _Limit:
    key: str
    metric: str
    allowed: float
    limit_s: Array


@dataclass(frozen=True)
class _Asked:
    """Limits on requests of the lengths `observed`, [M] each, and the pair `of` each row, which is in rising order."""

    limits: list[_Limit]
    observed: Lengths
    of: Indices

    def take(self, index: Indices, size: int) -> _Asked:
        """Return the rows of the pairs at `index` out of `size`, which is in rising order."""
        place = np.full(size, -1, dtype=np.intp)
        place[index] = np.arange(index.size)
        rows = np.flatnonzero(place[self.of] >= 0)
        limits = [replace(limit, limit_s=limit.limit_s[rows]) for limit in self.limits]
        return _Asked(limits, self.observed.take(rows), place[self.of[rows]])


def ceiling(pairs: Pairs) -> Ceiling:
    """Return what the pairs carry without limits on latency."""
    view = one_stream(pairs)
    with np.errstate(all="ignore"):
        base = basis(view)
        top = batch_below(view, UTILIZATION_GUARD * base.saturation_requests_per_s, base.saturation_batch)
    return Ceiling(base, streams(pairs), top)


def largest_batch(pairs: Pairs, limits: Limits, halved: bool = True, observed: Lengths | None = None) -> Largest:
    """Return the largest mean batch of one replica at which every limit holds, and the rate it carries there.

    `limits` maps keys such as `ttft_p95` to seconds [P], infinite where a pair has no such limit. A limit holds when
    the tail beyond it is at most `(1 - p)/2` (with `halved`, to constrain safely) or `1 - p` (unbiased, and always for
    `e2e`, whose tail is made of output lengths more than of queues). The rate never exceeds `UTILIZATION_GUARD` of
    saturation, that of a lone replica is multiplied by `LONE_REPLICA_FACTOR`, and `batch` is the one that carries the
    rate returned. Raises `ValueError` for an unknown key.
    """
    return largest_within(ceiling(pairs), limits, halved, observed)


def largest_within(
    top: Ceiling, limits: Limits, halved: bool = True, observed: Lengths | None = None, of: Indices | None = None
) -> Largest:
    """Return `largest_batch` of pairs whose ceiling is known.

    With `of` the rows of `limits` and `observed` are those of the pairs `of`, in rising order: any number of kinds of
    requests that share a pool.
    """
    with np.errstate(all="ignore"):
        view = top.base.pairs
        rows = np.arange(view.size) if of is None else of
        parsed = [_limit(key, value, rows.size, halved) for key, value in sorted(limits.items())]
        asked = _Asked(parsed, observed or all_requests(view), rows)
        batch, binding, feasible = _search(top.base, asked, top.batch)
        rate = throughput(view, batch).requests_per_s
        alone = np.flatnonzero(view.replicas <= top.streams)
        if alone.size:
            rate[alone] *= LONE_REPLICA_FACTOR
            batch[alone] = batch_below(view.take(alone), rate[alone], batch[alone])
        return Largest(
            batch=np.where(feasible, batch, 0.0) * top.streams,
            requests_per_s=np.where(feasible, rate, 0.0) * top.streams,
            binding=binding,
            best_s=_best_values(view, asked, binding, ~feasible),
        )


def _search(base: Basis, asked: _Asked, top: Array) -> tuple[Array, npt.NDArray[np.object_], npt.NDArray[np.bool_]]:
    """Return the largest batch up to `top` that holds all limits, what binds, and whether there is any.

    A coarse scan from the top, then a finer one between its neighbours: a replica whose experts are not yet all awake
    can have a smoother step at a larger batch, so that feasibility need not end where it first fails.
    """
    keys = np.array([limit.key for limit in asked.limits] + [""], dtype=object)
    low, high, binding = np.zeros_like(top), top.copy(), _resource(base)
    low_miss, high_miss = np.ones_like(top), np.ones_like(top)
    feasible = np.zeros(top.shape, dtype=bool)
    for share in _SCANNED_SHARES if asked.limits else (1.0,):
        open_ = np.flatnonzero(~feasible)
        if not open_.size:
            break
        miss, failing = _worst_miss(base, asked, share * top, open_)
        holds = miss <= 1.0
        found, failed = open_[holds], open_[~holds]
        low[found], low_miss[found], feasible[found] = share * top[found], miss[holds], True
        high[failed], high_miss[failed], binding[failed] = share * top[failed], miss[~holds], keys[failing[~holds]]
    open_ = np.flatnonzero(feasible & (low < high))
    if open_.size:
        some = base.take(open_), asked.take(open_, top.size)
        grid = _Grid(low[open_], high[open_], low_miss[open_], high_miss[open_])
        low[open_], failing = grid.search(*some)
        changed = failing >= 0
        binding[open_[changed]] = keys[failing[changed]]
    room = base.slots >= 1.0
    return low, np.where(room, binding, _resource(base)), feasible & room


class _Grid:
    """Batches between one that holds all limits and one that does not, in even steps of their logarithm."""

    def __init__(self, low: Array, high: Array, low_miss: Array, high_miss: Array) -> None:
        self.low, self.high = low, high
        self.miss = np.stack([_log_miss(low_miss), _log_miss(high_miss)])

    def search(self, base: Basis, asked: _Asked) -> tuple[Array, Indices]:
        """Return the last batch before the limits fail, and the index of the limit that fails next (-1: that at the end)."""
        size = self.low.size
        below, above = np.zeros(size, dtype=np.intp), np.full(size, 2**_FINENESS, dtype=np.intp)
        failing = np.full(size, -1, dtype=np.intp)
        side = np.zeros(size, dtype=np.intp)
        miss = self.miss.copy()
        steps = 0
        open_ = np.arange(size)
        while open_.size:
            gap = above[open_] - below[open_]
            share = miss[0, open_] / (miss[0, open_] - miss[1, open_]) if steps < _QUICK_STEPS else 0.5
            probe = below[open_] + np.clip(np.rint(share * gap).astype(np.intp), 1, gap - 1)
            batch = self.at(open_, probe)
            found, worst = _worst_miss(base, asked, _scattered(batch, open_, size), open_)
            holds = found <= 1.0
            up, down = open_[holds], open_[~holds]
            below[up], above[down], failing[down] = probe[holds], probe[~holds], worst[~holds]
            # Illinois variant of the false position: an end that stays twice counts half.
            miss[1, up] *= np.where(side[up] == 1, 0.5, 1.0)
            miss[0, down] *= np.where(side[down] == -1, 0.5, 1.0)
            miss[0, up], miss[1, down] = _log_miss(found[holds]), _log_miss(found[~holds])
            side[up], side[down] = 1, -1
            steps += 1
            open_ = open_[above[open_] - below[open_] > 1]
        return self.at(np.arange(size), below), failing

    def at(self, index: Indices, step: Indices) -> Array:
        """Return the batches of the pairs at `index` at their steps, by halving."""
        low, high = self.low[index], self.high[index]
        for bit in reversed(range(_FINENESS)):
            middle, up = np.sqrt(low * high), (step >> bit) & 1 == 1
            low, high = np.where(up, middle, low), np.where(up, high, middle)
        return low


def _scattered(values: Array, index: Indices, size: int) -> Array:
    spread = np.zeros(size)
    spread[index] = values
    return spread


def _log_miss(miss: Array) -> Array:
    return np.clip(np.log(miss), -_MOST_LOG_MISS, _MOST_LOG_MISS)


def _worst_miss(base: Basis, asked: _Asked, batch: Array, index: Indices) -> tuple[Array, Indices]:
    """Return, for the pairs at `index`, the largest tail at `batch` over what its limit allows, and which limit that is."""
    worst, which = np.zeros(index.size), np.zeros(index.size, dtype=np.intp)
    if asked.limits:
        for start in range(0, index.size, _BLOCK_PAIRS):
            block, part = slice(start, start + _BLOCK_PAIRS), index[start : start + _BLOCK_PAIRS]
            worst[block], which[block] = _misses(base.take(part), asked.take(part, batch.size), batch[part])
    return worst, which


def _misses(base: Basis, asked: _Asked, batch: Array) -> tuple[Array, Indices]:
    """Do the work of `_worst_miss` for all pairs of `base`."""
    worst, which = np.zeros_like(batch), np.zeros(batch.size, dtype=np.intp)
    state = load(base, batch)
    for metric in METRICS:
        limits = [(n, each) for n, each in enumerate(asked.limits) if each.metric == metric]
        if not limits:
            continue
        rows = np.flatnonzero(np.any([each.limit_s < LONGEST_S for _, each in limits], axis=0))
        of = asked.of[rows]
        single = of.size == batch.size == asked.of.size
        tail = tail_of(
            base if single else base.take(of), state if single else state.take(of), metric, asked.observed.take(rows)
        )
        for n, each in limits:
            miss = np.zeros_like(batch)
            np.maximum.at(miss, of, tail(each.limit_s[rows]) / each.allowed)
            which = np.where(miss <= worst, which, n)
            worst = np.maximum(worst, miss)
    return worst, which


def _resource(base: Basis) -> npt.NDArray[np.object_]:
    """Name what stops the flow at saturation: the slots, the KV pool, or the work itself."""
    inside = base.saturation_batch < base.slots * (1.0 - 1e-9)
    limiting = np.where(base.pairs.kv_slots < base.pairs.slots, "kv", "slots")
    return np.where(inside & (base.slots >= 1.0), "saturation", limiting).astype(object)


def _best_values(
    view: Pairs, asked: _Asked, binding: npt.NDArray[np.object_], wanted: npt.NDArray[np.bool_]
) -> Array:
    """Return the lowest value of the failing metric of each infeasible pair, at a nearly empty replica, else 0."""
    best = np.zeros(view.size)
    for each in asked.limits:
        rows = np.flatnonzero((wanted & (binding == each.key))[asked.of] & (each.limit_s < LONGEST_S))
        if rows.size:
            of = asked.of[rows]
            base, state = loaded(view.take(of), np.zeros(rows.size))
            exceeds = tail_of(base, state, each.metric, asked.observed.take(rows))
            limit = np.maximum(each.limit_s[rows], SHORTEST_S)
            np.maximum.at(best, of, smallest_limit(exceeds, each.allowed, limit, limit * _FLOOR_RANGE, _FLOOR_STEPS))
    return best


def _limit(key: str, limit_s: npt.ArrayLike, size: int, halved: bool) -> _Limit:
    metric, _, percent = key.partition("_p")
    if metric not in METRICS or not percent.isdigit() or not 0 < int(percent) < 100:
        raise ValueError(f"unknown latency limit {key!r}: expected a metric and a percentile such as ttft_p95")
    return _Limit(key, metric, allowed_share(metric, int(percent) / 100.0, halved), seconds(limit_s, size))
