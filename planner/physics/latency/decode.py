"""Tails of the decode metrics: time per output token over a request, and single gaps between tokens."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import gammaincc

from planner.physics.latency.load import Basis, Load
from planner.physics.latency.steps import Hinge, mixed_steps, positive
from planner.physics.latency.types import Array, Lengths

# Batch noise falls on both sides of the mean while a gamma law starts at its origin: the origin moves down by so many
# standard deviations of that noise.
_NOISE_ORIGIN = 3.0
# Five-point Gauss-Hermite rule for a standard normal variable.
_NODES = np.array([-2.8569700138728, -1.3556261799742659, 0.0, 1.3556261799742659, 2.8569700138728])
_WEIGHTS = np.array([0.011257411327721, 0.222075922005613, 0.533333333333333, 0.222075922005613, 0.011257411327721])
_TINY = 1e-12


class DecodeLaw(NamedTuple):
    """Shifted gamma law of the mean step of a request, by its output length: [P, Q], `ceiling_s` [P]."""

    decode_steps: Array
    origin_s: Array
    mean_s: Array
    variance_s2: Array
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
    stalls2 = (
        state.flow.requests_per_s * state.tagged_work.stall_s2 * state.tagged_cost.base_s * state.clumped_cv2
    ) / (1.0 - state.stall_share) ** 3
    clump2 = state.clump * (1.0 + state.clump) * state.tagged_work.stall_s2
    mean = _column(state.tagged_extra_s) + _column(state.clump * state.tagged_work.stall_s) / k
    return DecodeLaw(
        decode_steps=steps,
        origin_s=np.broadcast_to(_column(state.tagged_cost.base_s), k.shape),
        mean_s=mean,
        variance_s2=noise2 + _column(stalls2) / k + _column(clump2) / k**2,
        ceiling_s=np.where(mixed_steps(base.pairs, base.lengths), state.tagged_cost.full_s(), np.inf),
    )._lowered(np.sqrt(noise2))


def tpot_tail(law: DecodeLaw, limit_s: Array) -> Array:
    """Return the share of requests with at least two tokens whose time per output token exceeds `limit_s` [P]."""
    scale = law.variance_s2 / np.maximum(law.mean_s, _TINY)
    shape = law.mean_s / np.maximum(scale, _TINY)
    above = positive(_column(limit_s) - law.origin_s)
    tails = gammaincc(np.maximum(shape, _TINY), above / np.maximum(scale, _TINY))
    counted = law.decode_steps > 0
    share = (tails * counted).sum(axis=-1) / np.maximum(counted.sum(axis=-1), 1)
    return np.where(limit_s > law.ceiling_s, 0.0, share)
