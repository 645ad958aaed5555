"""Tail of the time per output token of a request."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from planner.physics.latency.gamma import gamma_tail
from planner.physics.latency.load import Basis, Load, longest_step_s
from planner.physics.latency.steps import positive
from planner.physics.latency.types import Array, Lengths

# Batch noise falls on both sides of the mean while a gamma law starts at its origin: the origin moves down by so many
# standard deviations of that noise.
_NOISE_ORIGIN = 3.0
_TINY = 1e-12


class DecodeLaw(NamedTuple):
    """Law of the mean step of a request by its output length, [P, Q]: `base_s` [P, 1] plus an excess and a noise.

    `mean_s` and `variance_s2` are those of the excess that prompts cause, `least_variance_s2` its variance if arrivals
    were Poisson, `noise_s` the standard deviation of the slow noise of the batch; no step exceeds `ceiling_s` [P].
    """

    decode_steps: Array
    base_s: Array
    mean_s: Array
    variance_s2: Array
    least_variance_s2: Array
    noise_s: Array
    ceiling_s: Array


def decode_law(base: Basis, state: Load, observed: Lengths) -> DecodeLaw:
    r"""Return the law of the time per output token of requests with `k = o - 1` decode steps.

    LPS closed form, see planner/manual/physics.md. With `B' = B + 1 + \kappa`, `\kappa = (c_R^2 - 1)/2`, the request
    sees the base step `F(B', 0)`, plus an excess of mean `F(B', \nu) - F(B', 0) + \kappa m_1/k` and variance
    `F'^2 v g(x) + \lambda m_2 F(B', 0) c_R^2 / (k (1 - r)^3) + \kappa (1 + \kappa) m_2 / k^2`, where
    `x = k (1 - e)/E[o - 1]`, `g(x) = 2 (x - 1 + e^{-x})/x^2`, and `m_1, m_2` are the moments of the time that a prompt
    adds to steps that only decode. No mean exceeds a step with a full token budget.
    """
    steps = positive(observed.output_tokens - 1.0)
    k = np.maximum(steps, 1.0)
    slow = _column((1.0 - state.elasticity) / np.maximum(base.lengths.decode_steps, _TINY)) * k
    noise2 = _column(state.step_slope_s**2 * state.variance) * _averaging(slow)
    arriving = state.flow.requests_per_s * state.tagged_cost.base_s
    stalls2 = _column(arriving * state.tagged_work.stall_s2 / (1.0 - state.stall_share) ** 3) / k
    clump2 = state.clump * (1.0 + state.clump) * state.tagged_work.stall_s2
    mean = _column(state.tagged_extra_s) + _column(state.clump * state.tagged_work.stall_s) / k
    return DecodeLaw(
        decode_steps=steps,
        base_s=_column(state.tagged_cost.base_s),
        mean_s=mean,
        variance_s2=_column(state.clumped_cv2) * stalls2 + _column(clump2) / k**2,
        least_variance_s2=stalls2,
        noise_s=np.sqrt(noise2),
        ceiling_s=longest_step_s(base, state.tagged_cost),
    )


def tpot_tail(law: DecodeLaw, limit_s: Array) -> Array:
    """Return the share of requests with at least two tokens whose time per output token exceeds `limit_s` [P].

    The excess and the noise together are a gamma variable that starts below the base step, which makes it less skewed;
    the tail is never below that of the excess alone.
    """
    above = _column(limit_s) - law.base_s
    down = np.minimum(_NOISE_ORIGIN * law.noise_s, law.base_s)
    noisy = law.noise_s**2 + law.variance_s2
    still = gamma_tail(law.mean_s, law.least_variance_s2, law.variance_s2, above)
    moved = gamma_tail(law.mean_s + down, law.least_variance_s2, noisy, above + down)
    tails = np.maximum(still, moved)
    counted = law.decode_steps > 0
    share = (tails * counted).sum(axis=-1) / np.maximum(counted.sum(axis=-1), 1)
    return np.asarray(np.where(limit_s > law.ceiling_s, 0.0, share))


def _averaging(steps: Array) -> Array:
    """Return `2 (x - 1 + e^{-x}) / x^2`: how much of a slow noise is left in its mean over `x` relaxation times."""
    x = np.maximum(steps, 1e-4)
    return np.asarray(np.minimum(2.0 * (x + np.expm1(-x)) / x**2, 1.0))


def _column(values: Array) -> Array:
    return values[:, None]
