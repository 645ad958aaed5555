"""Tails and percentiles of the latency metrics at a mean batch."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from planner.physics.latency.decode import decode_law, tpot_tail
from planner.physics.latency.first import first_token_law, first_token_tail, whole_tail
from planner.physics.latency.flow import one_stream, streams
from planner.physics.latency.gaps import gap_tail
from planner.physics.latency.load import Basis, Load, basis, load
from planner.physics.latency.types import METRICS, Array, Lengths, Pairs

_EMPTY_BATCH = 1e-6
_PERCENTILE_STEPS = 48
SHORTEST_S = 1e-6
LONGEST_S = 1e6

Tail = Callable[[Array], Array]


def tail(pairs: Pairs, batch: Array, metric: str, limit_s: Array, observed: Lengths | None = None) -> Array:
    """Return the share of requests (`itl`: of gaps) whose `metric` exceeds `limit_s` at the mean batch `batch`, [P].

    `metric` is one of `METRICS`: `ttft` and `e2e` over all requests, `tpot` over those with two tokens or more. The
    requests are those of `observed`, by default all of the pair's. Raises `ValueError` for an unknown metric.
    """
    with np.errstate(all="ignore"):
        base, state = loaded(pairs, batch)
        return tail_of(base, state, metric, observed or all_requests(pairs))(seconds(limit_s, pairs.size))


def percentile(
    pairs: Pairs, batch: Array, metric: str, p: float, halved: bool = True, observed: Lengths | None = None
) -> Array:
    """Return the `p` quantile (0 to 1) of `metric` in seconds at the mean batch `batch`, [P].

    It is the smallest limit that `largest_batch` would accept there: with `halved`, the limit that only `(1 - p)/2` of
    the requests exceed (`e2e`: `1 - p`). Raises `ValueError` for an unknown metric.
    """
    with np.errstate(all="ignore"):
        base, state = loaded(pairs, batch)
        exceeds = tail_of(base, state, metric, observed or all_requests(pairs))
        ends = np.full((2, pairs.size), [[SHORTEST_S], [LONGEST_S]])
        return smallest_limit(exceeds, allowed_share(metric, p, halved), ends[0], ends[1], _PERCENTILE_STEPS)


def smallest_limit(exceeds: Tail, allowed: float, low: Array, high: Array, steps: int) -> Array:
    """Bisect the logarithm of the limit between `low` and `high` seconds for the smallest one that is allowed."""
    for _ in range(steps):
        middle = np.sqrt(low * high)
        holds = exceeds(middle) <= allowed
        low, high = np.where(holds, low, middle), np.where(holds, middle, high)
    return high


def tail_of(base: Basis, state: Load, metric: str, observed: Lengths) -> Tail:
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


def loaded(pairs: Pairs, batch: Array) -> tuple[Basis, Load]:
    base = basis(one_stream(pairs))
    return base, load(base, np.maximum(batch / streams(pairs), _EMPTY_BATCH))


def seconds(limit_s: npt.ArrayLike, size: int) -> Array:
    """Return limits as an array [P]; an infinite one counts as longer than anything that can happen."""
    return np.minimum(np.broadcast_to(np.asarray(limit_s, dtype=np.float64), (size,)), LONGEST_S)


def allowed_share(metric: str, p: float, halved: bool) -> float:
    """Return the tail that a percentile leaves; the lengths of outputs, which are known, make most of that of `e2e`."""
    return (1.0 - p) * (0.5 if halved and metric != "e2e" else 1.0)


def all_requests(pairs: Pairs) -> Lengths:
    return Lengths(pairs.prefill_tokens, pairs.prefill_weights, pairs.output_tokens)
