"""The largest mean batch of a replica within all limits on latency."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

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
_SMALL_BLOCK = 32  # evaluating fewer pairs takes hardly less time
_MOST_PROBES = 15
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

    def take(self, index: Indices) -> Ceiling:
        """Return the pairs at `index`, in that order."""
        return Ceiling(self.base.take(index), self.streams[index], self.batch[index])

    def pools(self, index: Indices, replicas: Array) -> Ceiling:
        """Return the pairs at `index`, in that order, in pools of `replicas` replicas."""
        some = self.take(index)
        pairs = replace(some.base.pairs, replicas=replicas * some.streams)
        return replace(some, base=some.base._replace(pairs=pairs))


class Within(NamedTuple):
    """Largest mean batch of one replica within all limits, and what binds there: [P] arrays.

    `limit_batch` is the one that the limits allow, before the factor of a lone replica; `binding` as in `Largest`.
    """

    batch: Array
    requests_per_s: Array
    limit_batch: Array
    binding: npt.NDArray[np.object_]
    feasible: npt.NDArray[np.bool_]


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
        """Return the rows of the pairs at `index` out of `size`, in that order; a pair may be there several times."""
        counts = np.bincount(self.of, minlength=size)
        wanted = counts[index]
        first = (np.cumsum(counts) - counts)[index] - (np.cumsum(wanted) - wanted)
        rows = np.repeat(first, wanted) + np.arange(wanted.sum())
        limits = [replace(limit, limit_s=limit.limit_s[rows]) for limit in self.limits]
        return _Asked(limits, self.observed.take(rows), np.repeat(np.arange(index.size), wanted))


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
    top = ceiling(pairs)
    found = largest_within(top, limits, halved, observed)
    binding, best = found.binding.copy(), np.zeros(pairs.size)
    missed = np.flatnonzero(~found.feasible)
    if missed.size and limits:
        some = {key: np.broadcast_to(limit, (pairs.size,))[missed] for key, limit in limits.items()}
        lengths = None if observed is None else observed.take(missed)
        binding[missed], best[missed] = idle_miss(top.take(missed), some, halved, lengths)
    return Largest(found.batch, found.requests_per_s, binding, best)


def largest_within(
    top: Ceiling,
    limits: Limits,
    halved: bool = True,
    observed: Lengths | None = None,
    of: Indices | None = None,
    guess: Array | None = None,
) -> Within:
    """Return the largest mean batch within limits as `largest_batch`, for pairs whose ceiling is known.

    With `of` the rows of `limits` and `observed` are those of the pairs `of`, in rising order: any number of kinds of
    requests that share a pool. The search starts at the mean batch `guess` [P] where steps have no experts to wake.
    """
    with np.errstate(all="ignore"):
        view, count = top.base.pairs, top.streams
        asked = _asked(top, limits, halved, observed, of)
        expected = top.batch if guess is None else np.where(_smooth(view), guess / count, top.batch)
        limit_batch, binding, feasible = _search(top.base, asked, top.batch, expected)
        batch, rate = limit_batch.copy(), throughput(view, limit_batch).requests_per_s
        alone = np.flatnonzero(view.replicas <= count)
        if alone.size:
            rate[alone] *= LONE_REPLICA_FACTOR
            batch[alone] = batch_below(view.take(alone), rate[alone], batch[alone])
        batch, rate, limit_batch = (np.where(feasible, each, 0.0) * count for each in (batch, rate, limit_batch))
        return Within(batch, rate, limit_batch, binding, feasible)


def holds_at(top: Ceiling, limits: Limits, batch: Array) -> npt.NDArray[np.bool_]:
    """Tell where all limits hold at the mean batch `batch` [P], or at the least one that is searched where that is more."""
    with np.errstate(all="ignore"):
        each = np.maximum(batch / top.streams, _SCANNED_SHARES[-1] * top.batch)
        asked = _asked(top, limits, True, None, None)
        return _worst_miss(top.base, asked, each[:, None], np.arange(each.size))[0][:, 0] <= 1.0


def idle_miss(
    top: Ceiling, limits: Limits, halved: bool = True, observed: Lengths | None = None
) -> tuple[npt.NDArray[np.object_], Array]:
    """Return the limit that a nearly idle replica misses by most, and the lowest value of that metric in seconds, [P].

    The value is 0 where it is no limit that stops the pair, but room for a single sequence.
    """
    with np.errstate(all="ignore"):
        asked = _asked(top, limits, halved, observed, None)
        idle = (_SCANNED_SHARES[-1] * top.batch)[:, None]
        failing = _worst_miss(top.base, asked, idle, np.arange(top.batch.size))[1][:, 0]
        keys = np.array([limit.key for limit in asked.limits], dtype=object)
        binding = np.where(top.base.slots >= 1.0, keys[failing], _resource(top.base))
        return binding, _best_values(top.base.pairs, asked, binding)


def _asked(top: Ceiling, limits: Limits, halved: bool, observed: Lengths | None, of: Indices | None) -> _Asked:
    rows = np.arange(top.batch.size) if of is None else of
    parsed = [_limit(key, value, rows.size, halved) for key, value in sorted(limits.items())]
    return _Asked(parsed, observed or all_requests(top.base.pairs), rows)


def _smooth(pairs: Pairs) -> npt.NDArray[np.bool_]:
    """Tell where a larger batch never has a smoother step: there are no experts."""
    return np.broadcast_to(np.asarray(pairs.step.expert_read_s) == 0.0, (pairs.size,))


def _search(
    base: Basis, asked: _Asked, top: Array, expected: Array
) -> tuple[Array, npt.NDArray[np.object_], npt.NDArray[np.bool_]]:
    """Return the largest batch up to `top` that holds all limits, what binds, and whether there is any.

    A coarse scan down from the batch `expected`, or up from it where that holds, then a finer one between neighbours.
    Started at the top it allows for replicas whose experts are not yet all awake, which can have a smoother step at a
    larger batch, so that feasibility need not end where it first fails.
    """
    keys = np.array([limit.key for limit in asked.limits] + [""], dtype=object)
    shares = np.array(_SCANNED_SHARES if asked.limits else (1.0,))
    binding, misses, every = _resource(base), np.ones((2, top.size)), np.arange(top.size)
    fails, holds = np.full(top.size, -1), np.full(top.size, shares.size)  # places of neighbouring shares, once found
    start = np.minimum((shares * top[:, None] > expected[:, None]).sum(axis=1), shares.size - 1)
    open_ = every
    while open_.size:
        count = _probes(open_.size)
        after, before = fails[open_] + 1, holds[open_]
        first = np.where(before < shares.size, np.maximum(before - count, after), np.maximum(after, start[open_]))
        tried = np.minimum(first[:, None] + np.arange(count), before[:, None] - 1)
        miss, failing = _worst_miss(base, asked, shares[tried] * top[open_, None], open_)
        found, last = _last_before(miss <= 1.0)
        failed, held = (np.flatnonzero(last >= 0), last[last >= 0]), (np.flatnonzero(found), last[found] + 1)
        at = open_[failed[0]]
        fails[at], misses[1, at], binding[at] = tried[failed], miss[failed], keys[failing[failed]]
        at = open_[held[0]]
        holds[at], misses[0, at] = tried[held], miss[held]
        open_ = open_[holds[open_] - fails[open_] > 1]
    feasible = holds < shares.size
    low = np.where(feasible, shares[np.minimum(holds, shares.size - 1)] * top, 0.0)
    open_ = np.flatnonzero(feasible & (fails >= 0))
    if open_.size:
        high = shares[fails[open_]] * top[open_]
        some = base.take(open_), asked.take(open_, top.size)
        low[open_], failing = _refined(*some, low[open_], high, misses[:, open_])
        changed = failing >= 0
        binding[open_[changed]] = keys[failing[changed]]
    room = base.slots >= 1.0
    return low, np.where(room, binding, _resource(base)), feasible & room


def _probes(pairs: int) -> int:
    """Return how many batches of each pair to try at once: for a few pairs, several cost no more than one."""
    return max(1, min(_MOST_PROBES, _SMALL_BLOCK // pairs))


def _last_before(holds: npt.NDArray[np.bool_]) -> tuple[npt.NDArray[np.bool_], Indices]:
    """Return, by row, whether any column holds, and the column before the first that does: -1 to the last."""
    found = np.asarray(holds.any(axis=1))
    return found, np.where(found, holds.argmax(axis=1), holds.shape[1]) - 1


def _refined(base: Basis, asked: _Asked, low: Array, high: Array, misses: Array) -> tuple[Array, Indices]:
    """Return the last batch from `low`, which holds, before limits fail, and the index of the limit that fails next.

    Batches are those that halving the logarithm `_FINENESS` times would meet; the next one to try is interpolated.
    The index is -1 where `high` is next. `misses` are those at both ends.
    """
    size = low.size
    below, above = np.zeros(size, dtype=np.intp), np.full(size, 2**_FINENESS, dtype=np.intp)
    failing, side = np.full(size, -1, dtype=np.intp), np.zeros(size)
    miss = _log_miss(misses)
    steps = 0
    open_ = np.arange(size)
    while open_.size:
        start, gap = below[open_, None], (above - below)[open_, None]
        share = miss[0, open_] / (miss[0, open_] - miss[1, open_]) if steps < _QUICK_STEPS else np.full(open_.size, 0.5)
        best = np.rint(share[:, None] * gap)
        count = _probes(open_.size)
        even = gap * np.arange(1, count - 1) / max(count - 1, 1)
        tried = np.concatenate([best + np.arange(min(count, 2)), even], axis=1).astype(np.intp)
        probe = np.sort(start + np.clip(tried, 1, gap - 1), axis=1)
        found, worst = _worst_miss(base, asked, _between(low[open_], high[open_], probe), open_)
        fails, last = _last_before(found > 1.0)
        up, down = open_[last >= 0], open_[fails]
        # Illinois variant of the false position: an end that stays twice counts half.
        miss[1, open_[~fails]] *= np.where(side[open_[~fails]] == 1, 0.5, 1.0)
        miss[0, open_[last < 0]] *= np.where(side[open_[last < 0]] == -1, 0.5, 1.0)
        side[open_] = np.where(fails, np.where(last >= 0, 0, -1), 1)
        held, failed = (np.flatnonzero(last >= 0), last[last >= 0]), (np.flatnonzero(fails), last[fails] + 1)
        below[up], miss[0, up] = probe[held], _log_miss(found[held])
        above[down], miss[1, down], failing[down] = probe[failed], _log_miss(found[failed]), worst[failed]
        steps += 1
        open_ = open_[above[open_] - below[open_] > 1]
    return _between(low, high, below[:, None])[:, 0], failing


def _between(low: Array, high: Array, step: Indices) -> Array:
    """Return the batches of pairs at their steps [P, N] of the way from `low` to `high`, by halving the logarithm."""
    start, end = (np.broadcast_to(each[:, None], step.shape) for each in (low, high))
    for bit in reversed(range(_FINENESS)):
        middle, up = np.sqrt(start * end), (step >> bit) & 1 == 1
        start, end = np.where(up, middle, start), np.where(up, end, middle)
    return np.asarray(start)


def _log_miss(miss: Array) -> Array:
    return np.clip(np.log(miss), -_MOST_LOG_MISS, _MOST_LOG_MISS)


def _worst_miss(base: Basis, asked: _Asked, batch: Array, index: Indices) -> tuple[Array, Indices]:
    """Return the largest tail over what its limit allows, and which limit that is, of the pairs at `index`.

    Row k of `batch` [len(index), N] are those of the pair `index[k]`.
    """
    worst, which = np.zeros(batch.size), np.zeros(batch.size, dtype=np.intp)
    pairs, batches = np.repeat(index, batch.shape[1]), batch.ravel()
    if asked.limits:
        for start in range(0, batch.size, _BLOCK_PAIRS):
            block = slice(start, start + _BLOCK_PAIRS)
            part = pairs[block]
            worst[block], which[block] = _misses(base.take(part), asked.take(part, base.slots.size), batches[block])
    return worst.reshape(batch.shape), which.reshape(batch.shape)


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


def _best_values(view: Pairs, asked: _Asked, binding: npt.NDArray[np.object_]) -> Array:
    """Return the lowest value of the metric that binds each pair, at a nearly empty replica; 0 without any."""
    best = np.zeros(view.size)
    for each in asked.limits:
        rows = np.flatnonzero(binding == each.key)
        if rows.size:
            base, state = loaded(view.take(rows), np.zeros(rows.size))
            exceeds = tail_of(base, state, each.metric, asked.observed.take(rows))
            limit = np.maximum(each.limit_s[rows], SHORTEST_S)
            best[rows] = smallest_limit(exceeds, each.allowed, limit, limit * _FLOOR_RANGE, _FLOOR_STEPS)
    return best


def _limit(key: str, limit_s: npt.ArrayLike, size: int, halved: bool) -> _Limit:
    metric, _, percent = key.partition("_p")
    if metric not in METRICS or not percent.isdigit() or not 0 < int(percent) < 100:
        raise ValueError(f"unknown latency limit {key!r}: expected a metric and a percentile such as ttft_p95")
    return _Limit(key, metric, allowed_share(metric, int(percent) / 100.0, halved), seconds(limit_s, size))
