"""Distributions of tokens per request: constant, lognormal, or quantiles joined in the logarithm.

All three are one curve: the logarithm of the length is piecewise linear in the standard normal quantile z, so a
lognormal is one straight line and quantiles are joined by lines. No numpy.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from statistics import NormalDist
from typing import Literal, Self

_NORMAL = NormalDist()
Z95 = _NORMAL.inv_cdf(0.95)

LOGNORMAL_P95_TO_MEAN_LIMIT = math.exp(Z95**2 / 2)
"""Largest p95 / mean that a lognormal reaches, 3.868: p95 / mean = exp(z s - s^2 / 2) peaks at s = z."""

_QUANTILE_Z = tuple(_NORMAL.inv_cdf(u) for u in (0.50, 0.90, 0.95, 0.99))
_QUANTILE_NAMES = ("p50", "p90", "p95", "p99")
TAIL_SLOPE_LIMIT = Z95
"""Beyond p99 no tail is heavier than the heaviest lognormal that a mean and a p95 can state."""

_STEEPEST = 8.0
_PIECE_POINTS = 100
_BISECTIONS = 60
_GRID_STEP = 0.1
_GRID_HALF = 60


@dataclass(frozen=True, slots=True)
class Lengths:
    """A distribution of tokens per request.

    `knots` are pairs (z, logarithm of the length); `first_slope` holds below the first knot and `last_slope` above the
    last. `mean` is in tokens.
    """

    kind: Literal["constant", "lognormal", "quantiles"]
    mean: float
    knots: tuple[tuple[float, float], ...]
    first_slope: float
    last_slope: float

    @classmethod
    def constant(cls, tokens: float) -> Self:
        """Return the distribution of requests that all have `tokens` tokens."""
        return cls("constant", tokens, ((0.0, math.log(tokens)),), 0.0, 0.0)

    @classmethod
    def lognormal(cls, mean: float, p95: float) -> Self:
        """Return the lognormal with this mean and 95th percentile, both in tokens.

        Its sigma s solves z s - s^2 / 2 = ln(p95 / mean) with z = 1.645, the smaller root. Raises ValueError when
        p95 is below the mean or above 3.868 times the mean.
        """
        log_ratio = math.log(p95 / mean)
        root = Z95**2 - 2 * log_ratio
        if log_ratio < 0 or root < -1e-12:
            raise ValueError(f"no lognormal has a p95 of {p95 / mean:.3f} times its mean")
        sigma = Z95 - math.sqrt(max(root, 0.0))
        return cls("lognormal", mean, ((0.0, math.log(mean) - sigma**2 / 2),), sigma, sigma)

    @classmethod
    def quantiles(cls, tokens: Mapping[str, float], mean: float | None = None) -> Self:
        """Return the curve through p50, p90, p95 and p99 (tokens), extended by the slopes of its end pieces.

        With a `mean`, the slope below the median is chosen so that the curve has it where one can.
        """
        logs = tuple(math.log(tokens[name]) for name in _QUANTILE_NAMES)
        knots = tuple(zip(_QUANTILE_Z, logs, strict=True))
        slopes = tuple((b - a) / (zb - za) for (za, a), (zb, b) in pairwise(knots))
        last = min(slopes[-1], TAIL_SLOPE_LIMIT)
        above_median = sum(_inner_mean(*pair) for pair in pairwise(knots)) + _tail_mean(*knots[-1], last)
        first = slopes[0] if mean is None else _first_slope(logs[0], mean - above_median)
        return cls("quantiles", mean or above_median + _lower_mean(logs[0], first), knots, first, last)

    @staticmethod
    def least_mean(tokens: Sequence[float]) -> float:
        """Return a bound below which no distribution with these p50, p90, p95, p99 can have its mean."""
        p50, p90, p95, p99 = tokens
        return 0.40 * p50 + 0.05 * p90 + 0.04 * p95 + 0.01 * p99

    def quantile(self, u: float) -> float:
        """Return the length in tokens that a share `u` of requests stays within; `u` strictly between 0 and 1."""
        return self.at_normal(_NORMAL.inv_cdf(u))

    def at_normal(self, z: float) -> float:
        """Return the length in tokens at the standard normal quantile `z`; never below one token."""
        if self.kind == "constant":
            return self.mean
        index = bisect_right(self.knots, z, key=lambda knot: knot[0])
        anchor_z, anchor = self.knots[max(index - 1, 0)]
        return max(1.0, math.exp(anchor + self._slope(index) * (z - anchor_z)))

    def share_above(self, tokens: float) -> float:
        """Return the share of requests longer than `tokens`."""
        if tokens <= 0:
            return 1.0
        target = math.log(tokens)
        index = bisect_right(self.knots, target, key=lambda knot: knot[1])
        anchor_z, anchor = self.knots[max(index - 1, 0)]
        slope = self._slope(index)
        if slope == 0:
            return 1.0 if index == 0 else 0.0
        return _NORMAL.cdf(-anchor_z - (target - anchor) / slope)

    def _slope(self, index: int) -> float:
        """Slope of the piece before knot `index`, the open ends included."""
        if index == 0:
            return self.first_slope
        if index == len(self.knots):
            return self.last_slope
        (low_z, low), (high_z, high) = self.knots[index - 1], self.knots[index]
        return (high - low) / (high_z - low_z)


@dataclass(frozen=True, slots=True)
class JointTruncation:
    """What the longest sequence does to a workload: the share of requests that exceed it, and the means after the cut.

    The prompt is cut to the limit less one token, then the output to what is left.
    """

    share: float
    mean_input_tokens: float
    mean_output_tokens: float


def truncated_share(lengths: Lengths, limit_tokens: float) -> float:
    """Return the share of requests whose length exceeds the limit, from 0 to 1."""
    return lengths.share_above(limit_tokens)


def joint_share_above(input: Lengths, output: Lengths, max_tokens: float) -> float:
    """Return the share of requests whose independent input and output sum to more than `max_tokens`.

    Integrates over the input on a grid that is uniform in the standard normal quantile.
    """
    return sum(weight * output.share_above(max_tokens - prompt) for weight, prompt in _grid(input))


def joint_truncation(input: Lengths, output: Lengths, max_tokens: float) -> JointTruncation:
    """Cut independent inputs and outputs so that their sum stays within `max_tokens`.

    Integrates over a grid of both, unless hardly any request can exceed the limit: then nothing is cut.
    """
    if is_surely_within(input, output, max_tokens):
        return JointTruncation(0.0, input.mean, output.mean)
    longest = max(max_tokens - 1.0, 1.0)
    excess = _Excess(output)
    prompts = _grid(input)
    lost_input = sum(weight * max(prompt - longest, 0.0) for weight, prompt in prompts)
    lost_output = sum(weight * excess.above(max_tokens - min(prompt, longest)) for weight, prompt in prompts)
    share = joint_share_above(input, output, max_tokens)
    return JointTruncation(share, max(1.0, input.mean - lost_input), max(1.0, output.mean - lost_output))


def is_surely_within(input: Lengths, output: Lengths, max_tokens: float, tolerance: float = 1e-4) -> bool:
    """Tell, at the cost of two quantiles, that at most `tolerance` of the requests can exceed the limit."""
    u = 1.0 - tolerance / 2
    return input.quantile(u) + output.quantile(u) <= max_tokens


class _Excess:
    """Expected tokens beyond a limit, by sums over a grid that are formed once."""

    def __init__(self, lengths: Lengths) -> None:
        grid = _grid(lengths)
        self._tokens = [tokens for _, tokens in grid]
        self._weights = [*accumulate((w for w, _ in reversed(grid)), initial=0.0)][::-1]
        self._sums = [*accumulate((w * tokens for w, tokens in reversed(grid)), initial=0.0)][::-1]

    def above(self, limit: float) -> float:
        """Return the mean of what exceeds `limit`, counted as zero where nothing does."""
        index = bisect_right(self._tokens, limit)
        return self._sums[index] - limit * self._weights[index]


def _grid(lengths: Lengths) -> list[tuple[float, float]]:
    """Return (probability, length) pairs at equally spaced normal quantiles."""
    steps = (i * _GRID_STEP for i in range(-_GRID_HALF, _GRID_HALF + 1))
    return [(_GRID_STEP * _NORMAL.pdf(z), lengths.at_normal(z)) for z in steps]


def _inner_mean(low: tuple[float, float], high: tuple[float, float]) -> float:
    """Integrate the length between two knots over equal slices of probability."""
    first, last = _NORMAL.cdf(low[0]), _NORMAL.cdf(high[0])
    slope = (high[1] - low[1]) / (high[0] - low[0])
    width = (last - first) / _PIECE_POINTS
    middles = (_NORMAL.inv_cdf(first + (i + 0.5) * width) for i in range(_PIECE_POINTS))
    return width * sum(math.exp(low[1] + slope * (z - low[0])) for z in middles)


def _tail_mean(z: float, log_length: float, slope: float) -> float:
    """Integrate exp(log_length + slope (t - z)) over the standard normal from `z` up."""
    return math.exp(log_length - slope * z + slope**2 / 2) * _NORMAL.cdf(slope - z)


def _lower_mean(log_median: float, slope: float) -> float:
    """Integrate exp(log_median + slope t) over the standard normal up to 0."""
    return math.exp(log_median + slope**2 / 2) * _NORMAL.cdf(-slope)


def _first_slope(log_median: float, wanted: float) -> float:
    """Return the slope below the median at which that half contributes `wanted` to the mean; clipped to its range."""
    low, high = 0.0, _STEEPEST
    if _lower_mean(log_median, low) <= wanted:
        return low
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if _lower_mean(log_median, middle) > wanted else (low, middle)
    return low
