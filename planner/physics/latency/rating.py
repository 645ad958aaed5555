"""What a replica tolerates: latency tails at a batch, percentiles, and the largest batch within all limits."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from planner.physics.latency.decode import decode_law, tpot_tail
from planner.physics.latency.first import first_token_law, first_token_tail, whole_tail
from planner.physics.latency.flow import batch_below, one_stream, streams, throughput
from planner.physics.latency.gaps import gap_tail
from planner.physics.latency.load import Basis, Load, basis, load
from planner.physics.latency.types import METRICS, Array, Largest, Lengths, Limits, Pairs

LONE_REPLICA_FACTOR = 0.88
"""Factor on the rate of a single replica, which has nobody to lean on: simulated ones carry up to 13 % less than rated."""

UTILIZATION_GUARD = 0.95
"""Largest share of the saturation of the mean flow, above which queues of variable lengths grow without bound."""

_SCANNED_SHARES = (1.0, 0.7, 0.4, 0.2, 0.08, 0.02, 2e-3, 1e-5)
_EMPTY_BATCH = 1e-6
_SEARCH_STEPS = 12
_PERCENTILE_STEPS = 48
_FLOOR_STEPS = 20
_SHORTEST_S = 1e-6
_LONGEST_S = 1e6
_FLOOR_RANGE = 1e4

_Tail = Callable[[Array], Array]


class _Limit(NamedTuple):
    key: str
    metric: str
    allowed: float
    limit_s: Array


def tail(pairs: Pairs, batch: Array, metric: str, limit_s: Array, observed: Lengths | None = None) -> Array:
    """Return the share of requests (`itl`: of gaps) whose `metric` exceeds `limit_s` at the mean batch `batch`, [P].

    `metric` is one of `METRICS`: `ttft` and `e2e` over all requests, `tpot` over those with two tokens or more. The
    requests are those of `observed`, by default all of the pair's. Raises `ValueError` for an unknown metric.
    """
    with np.errstate(all="ignore"):
        base, state = _loaded(pairs, batch)
        return _tail_of(base, state, metric, observed or _all_requests(pairs))(_seconds(limit_s, pairs.size))


def percentile(
    pairs: Pairs, batch: Array, metric: str, p: float, halved: bool = True, observed: Lengths | None = None
) -> Array:
    """Return the `p` quantile (0 to 1) of `metric` in seconds at the mean batch `batch`, [P].

    It is the smallest limit that `largest_batch` would accept there: with `halved`, the limit that only `(1 - p)/2` of
    the requests exceed (`e2e`: `1 - p`). Raises `ValueError` for an unknown metric.
    """
    with np.errstate(all="ignore"):
        base, state = _loaded(pairs, batch)
        exceeds = _tail_of(base, state, metric, observed or _all_requests(pairs))
        ends = np.full((2, pairs.size), [[_SHORTEST_S], [_LONGEST_S]])
        return _smallest_limit(exceeds, allowed_share(metric, p, halved), ends[0], ends[1], _PERCENTILE_STEPS)


def largest_batch(pairs: Pairs, limits: Limits, halved: bool = True, observed: Lengths | None = None) -> Largest:
    """Return the largest mean batch of one replica at which every limit holds, and the rate it carries there.

    `limits` maps keys such as `ttft_p95` to seconds [P], infinite where a pair has no such limit. A limit holds when
    the tail beyond it is at most `(1 - p)/2` (with `halved`, to constrain safely) or `1 - p` (unbiased, and always for
    `e2e`, whose tail is made of output lengths more than of queues). The rate never exceeds `UTILIZATION_GUARD` of
    saturation, that of a lone replica is multiplied by `LONE_REPLICA_FACTOR`, and `batch` is the one that carries the
    rate returned. Raises `ValueError` for an unknown key.
    """
    with np.errstate(all="ignore"):
        view, asked = one_stream(pairs), observed or _all_requests(pairs)
        base = basis(view)
        parsed = [_limit(key, value, pairs.size, halved) for key, value in sorted(limits.items())]
        top = batch_below(view, UTILIZATION_GUARD * base.saturation_requests_per_s, base.saturation_batch)
        batch, binding, feasible = _search(base, parsed, asked, top)
        derate = np.where(pairs.replicas <= 1, LONE_REPLICA_FACTOR, 1.0)
        rate = derate * throughput(view, batch).requests_per_s
        batch = np.where(derate < 1.0, batch_below(view, rate, batch), batch)
        best = _best_values(view, parsed, asked, binding, ~feasible)
        return Largest(
            batch=np.where(feasible, batch, 0.0) * streams(pairs),
            requests_per_s=np.where(feasible, rate, 0.0) * streams(pairs),
            binding=binding,
            best_s=best,
        )


def _search(
    base: Basis, limits: list[_Limit], observed: Lengths, top: Array
) -> tuple[Array, npt.NDArray[np.object_], npt.NDArray[np.bool_]]:
    """Return the largest batch up to `top` that holds all limits, what binds, and whether there is any.

    A coarse scan from the top, then bisection: a replica whose experts are not yet all awake can have a smoother
    step at a larger batch, so that feasibility need not end where it first fails.
    """
    keys = np.array([limit.key for limit in limits] + [""], dtype=object)
    low, high, binding = np.zeros_like(top), top.copy(), _resource(base)
    feasible = np.zeros(top.shape, dtype=bool)
    for share in _SCANNED_SHARES if limits else (1.0,):
        open_ = np.flatnonzero(~feasible)
        if not open_.size:
            break
        holds, failing = _holds_at(base, limits, observed, share * top, open_)
        low[open_[holds]] = share * top[open_[holds]]
        feasible[open_] = holds
        high[open_[~holds]] = share * top[open_[~holds]]
        binding[open_[~holds]] = keys[failing[~holds]]
    open_ = np.flatnonzero(feasible & (low < high))
    for _ in range(_SEARCH_STEPS if open_.size else 0):
        middle = np.sqrt(low * high)
        holds, failing = _holds_at(base, limits, observed, middle, open_)
        binding[open_[~holds]] = keys[failing[~holds]]
        low[open_[holds]] = middle[open_[holds]]
        high[open_[~holds]] = middle[open_[~holds]]
    room = base.slots >= 1.0
    return low, np.where(room, binding, _resource(base)), feasible & room


def _holds_at(
    base: Basis, limits: list[_Limit], observed: Lengths, batch: Array, index: npt.NDArray[np.intp]
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.intp]]:
    """Ask `_holds` about the pairs at `index` only."""
    if index.size == batch.size:
        return _holds(base, limits, observed, batch)
    some = [limit._replace(limit_s=limit.limit_s[index]) for limit in limits]
    return _holds(base.take(index), some, observed.take(index), batch[index])


def _holds(
    base: Basis, limits: list[_Limit], observed: Lengths, batch: Array
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.intp]]:
    """Tell where every limit holds at `batch`, and the index of the limit that is missed by most."""
    if not limits:
        return np.ones(batch.shape, dtype=bool), np.zeros(batch.shape, dtype=np.intp)
    state = load(base, batch)
    tails = {metric: _tail_of(base, state, metric, observed) for metric in sorted({each.metric for each in limits})}
    ratios = np.stack([tails[each.metric](each.limit_s) / each.allowed for each in limits])
    return ratios.max(axis=0) <= 1.0, ratios.argmax(axis=0)


def _resource(base: Basis) -> npt.NDArray[np.object_]:
    """Name what stops the flow at saturation: the slots, the KV pool, or the work itself."""
    inside = base.saturation_batch < base.slots * (1.0 - 1e-9)
    limiting = np.where(base.pairs.kv_slots < base.pairs.slots, "kv", "slots")
    return np.where(inside & (base.slots >= 1.0), "saturation", limiting).astype(object)


def _best_values(
    view: Pairs,
    limits: list[_Limit],
    observed: Lengths,
    binding: npt.NDArray[np.object_],
    wanted: npt.NDArray[np.bool_],
) -> Array:
    """Return the lowest value of the failing metric of each infeasible pair, at a nearly empty replica, else 0."""
    best = np.zeros(view.size)
    for each in limits:
        index = np.flatnonzero(wanted & (binding == each.key))
        if index.size:
            some = view.take(index)
            base, state = _loaded(some, np.zeros(index.size))
            exceeds = _tail_of(base, state, each.metric, observed.take(index))
            limit = np.maximum(each.limit_s[index], _SHORTEST_S)
            best[index] = _smallest_limit(exceeds, each.allowed, limit, limit * _FLOOR_RANGE, _FLOOR_STEPS)
    return best


def _smallest_limit(exceeds: _Tail, allowed: float, low: Array, high: Array, steps: int) -> Array:
    """Bisect the logarithm of the limit between `low` and `high` seconds for the smallest one that is allowed."""
    for _ in range(steps):
        middle = np.sqrt(low * high)
        holds = exceeds(middle) <= allowed
        low, high = np.where(holds, low, middle), np.where(holds, middle, high)
    return high


def _tail_of(base: Basis, state: Load, metric: str, observed: Lengths) -> _Tail:
    """Return the tail of one metric as a function of the limit in seconds."""
    if metric == "tpot":
        decode = decode_law(base, state, observed)
        return lambda limit_s: tpot_tail(decode, limit_s)
    if metric == "itl":
        return lambda limit_s: gap_tail(base, state, limit_s)
    first = first_token_law(base, state, observed)
    if metric == "ttft":
        return lambda limit_s: first_token_tail(first, limit_s)
    if metric == "e2e":
        steps = decode_law(base, state, observed)
        return lambda limit_s: whole_tail(first, steps, limit_s)
    raise ValueError(f"unknown latency metric {metric!r}: expected one of {', '.join(METRICS)}")


def _loaded(pairs: Pairs, batch: Array) -> tuple[Basis, Load]:
    base = basis(one_stream(pairs))
    return base, load(base, np.maximum(batch / streams(pairs), _EMPTY_BATCH))


def _limit(key: str, limit_s: npt.ArrayLike, size: int, halved: bool) -> _Limit:
    metric, _, percent = key.partition("_p")
    if metric not in METRICS or not percent.isdigit() or not 0 < int(percent) < 100:
        raise ValueError(f"unknown latency limit {key!r}: expected a metric and a percentile such as ttft_p95")
    return _Limit(key, metric, allowed_share(metric, int(percent) / 100.0, halved), _seconds(limit_s, size))


def _seconds(limit_s: npt.ArrayLike, size: int) -> Array:
    """Return limits as an array [P]; an infinite one counts as longer than anything that can happen."""
    return np.minimum(np.broadcast_to(np.asarray(limit_s, dtype=np.float64), (size,)), _LONGEST_S)


def allowed_share(metric: str, p: float, halved: bool) -> float:
    """Return the tail that a percentile leaves; the lengths of outputs, which are known, make most of that of `e2e`."""
    return (1.0 - p) * (0.5 if halved and metric != "e2e" else 1.0)


def _all_requests(pairs: Pairs) -> Lengths:
    return Lengths(pairs.prefill_tokens, pairs.prefill_weights, pairs.output_tokens)
