"""Tails and percentiles of the latency metrics at a mean batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeVar

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
Share = TypeVar("Share", float, Array)


class AtBatch(NamedTuple):
    """Pairs at their mean batch, to be asked for the latency of their requests, or of those `observed` among them."""

    base: Basis
    state: Load

    @classmethod
    def of(cls, pairs: Pairs, batch: Array) -> AtBatch:
        """Return `pairs` at the mean batch `batch`, [P]."""
        with np.errstate(all="ignore"):
            return cls(*loaded(pairs, batch))

    def take(self, index: npt.NDArray[np.intp]) -> AtBatch:
        """Return the pairs at `index`, in that order."""
        return AtBatch(self.base.take(index), self.state.take(index))

    def tail(self, metric: str, limit_s: Array, observed: Lengths | None = None) -> Array:
        """Return the share of requests (`itl`: of gaps) whose `metric` exceeds `limit_s`, [P].

        `metric` is one of `METRICS`: `ttft` and `e2e` over all requests, `tpot` over those with two tokens or more.
        Raises `ValueError` for an unknown metric.
        """
        pairs = self.base.pairs
        with np.errstate(all="ignore"):
            exceeds = tail_of(self.base, self.state, metric, observed or all_requests(pairs))
            return exceeds(seconds(limit_s, pairs.size))

    def percentile(self, metric: str, p: npt.ArrayLike, halved: bool = True, observed: Lengths | None = None) -> Array:
        """Return the `p` quantile (0 to 1) of `metric` in seconds; `p` is one for all pairs, or [P].

        It is the smallest limit that `largest_batch` would accept there: with `halved`, the limit that only `(1 - p)/2` of
        the requests exceed (`e2e`: `1 - p`). Raises `ValueError` for an unknown metric.
        """
        pairs = self.base.pairs
        with np.errstate(all="ignore"):
            exceeds = tail_of(self.base, self.state, metric, observed or all_requests(pairs))
            ends = np.full((2, pairs.size), [[SHORTEST_S], [LONGEST_S]])
            allowed = allowed_share(metric, np.asarray(p), halved)
            return smallest_limit(exceeds, allowed, ends[0], ends[1], _PERCENTILE_STEPS)


def smallest_limit(exceeds: Tail, allowed: float | Array, low: Array, high: Array, steps: int) -> Array:
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


def allowed_share(metric: str, p: Share, halved: bool) -> Share:
    """Return the tail that a percentile leaves; the lengths of outputs, which are known, make most of that of `e2e`."""
    return (1.0 - p) * (0.5 if halved and metric != "e2e" else 1.0)


def all_requests(pairs: Pairs) -> Lengths:
    return Lengths(pairs.prefill_tokens, pairs.prefill_weights, pairs.output_tokens)
