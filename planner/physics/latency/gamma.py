"""Tails of gamma variables."""

from __future__ import annotations

import numpy as np
from scipy.special import gammaincc, rgamma

from planner.physics.latency.types import Array

_TINY = 1e-12
# Where scipy sums a slow series, 2 to 8 us a value; the power series of the lower function has converged after 18 terms.
_SLOW_SHAPE = 1.25
_SLOW_ABOVE = 1.1
_TERMS = 18


def upper_gamma(shape: Array, above: Array) -> Array:
    r"""Return the regularised upper incomplete gamma function `Q(shape, above)`, to about 1e-15.

    For small arguments `1 - x^s e^{-x} \sum_n x^n / \Gamma(s + n + 1)` (DLMF 8.7.1), elsewhere scipy's `gammaincc`.
    """
    shape, above = np.broadcast_arrays(shape, above)
    small = (shape < _SLOW_SHAPE) & (above <= _SLOW_ABOVE)
    found = np.empty(shape.shape)
    found[~small] = gammaincc(shape[~small], above[~small])
    if not small.any():
        return found
    s, x = shape[small], above[small]
    term, total, divisor = np.ones_like(x), np.ones_like(x), s.copy()
    for _ in range(_TERMS):
        divisor += 1.0
        term *= x / divisor
        total += term
    found[small] = 1.0 - total * np.exp(s * np.log(x) - x) * rgamma(s + 1.0)
    return found


def gamma_tail(mean: Array, least_variance: Array, variance: Array, above: Array) -> Array:
    r"""Return the largest `P(X > above)` of gamma variables with this mean and a variance between the two given.

    Far above its mean the tail of a gamma variable grows with the variance up to
    `(r - 1)(2.3 + 0.7/(1 + 2.1 (r - 1)))` times the squared mean, `r` being `above` over the mean, and falls beyond,
    when the variable is nearly always 0 (fitted to 1 % for `r` from 1 to 10^4). Burstier arrivals must not look
    better for that, so the variance stops there.
    """
    safe = np.maximum(mean, _TINY)
    excess = np.maximum(above / safe - 1.0, 0.0)
    peak = safe**2 * excess * (2.3 + 0.7 / (1.0 + 2.1 * excess))
    spread = np.clip(peak, least_variance, np.maximum(variance, least_variance))
    scale = np.maximum(spread / safe, _TINY)
    return upper_gamma(np.maximum(safe / scale, _TINY), np.maximum(above, 0.0) / scale)
