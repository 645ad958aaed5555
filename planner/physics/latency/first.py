"""Tail of the time to first token, and of the whole request."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import log_ndtr

from planner.physics.latency.decode import DecodeLaw
from planner.physics.latency.flow import prompt_work
from planner.physics.latency.gamma import upper_gamma
from planner.physics.latency.load import Basis, Load
from planner.physics.latency.steps import Hinge, hinge, mixed_steps, positive
from planner.physics.latency.types import Array, Lengths

# Three-point rule for a normal variable, its lower point moved to the mean: noise cannot help. Also for decode times.
_NODES = np.array([0.0, np.sqrt(3.0)])
_WEIGHTS = np.array([5 / 6, 1 / 6])
_BUSY_CAP = 0.999
# The chance of a wait is below 1e-250 from here on, and the square would overflow.
_MOST_BETA = 35.0
# Of the prompts that arrive in the same step as a request, the share that comes later and still joins its last chunk.
_LATER = 0.5
_TINY = 1e-12
_LEAST_BATCH = 1e-3
_WHOLE_GRID = 16


class FirstTokenLaw(NamedTuple):
    """Parts of the time to first token inside the engine.

    `residual_s` [2, P] is the longest rest of the running step, `own_s` [2, P, H] the steps of the request's own
    prompt, at two batches; waits for earlier prompts [2, P] and for a slot [P] are zero with some chance and
    exponential otherwise. `weights` [P, H] are the chances of the prompts, `ttft_factor` and `fixed_s` [P] as in `Pairs`.
    """

    residual_s: Array
    own_s: Array
    weights: Array
    queue_chance: Array
    queue_s: Array
    slot_chance: Array
    slot_s: Array
    factor: Array
    fixed_s: Array


def first_token_law(base: Basis, state: Load, observed: Lengths) -> FirstTokenLaw:
    r"""Return the parts of the time to first token; they are averaged over `B` and `B + \sqrt{3 v}`.

    LPS closed form, see planner/manual/physics.md. Prompts queue as `M^X/G/1` on the work `w = i \tau / room` of full
    steps of duration `\tau`: with `\rho_p = \lambda E[w]`,
    `E[W] = E[w]/(1 - \rho_p) (\rho_p (1 + c_w^2)/2 + (c_R^2 - 1)/2)` and
    `P(W > 0) = 1 - 2 (1 - \rho_p)/(1 + c_R^2)`, exponential above 0.
    """
    pairs, lengths = base.pairs, base.lengths
    batches = np.maximum(state.batch + _NODES[:, None] * np.sqrt(state.variance), _LEAST_BATCH)
    cost = hinge(pairs, lengths, np.minimum(batches, np.maximum(base.slots, state.batch)))
    work = prompt_work(pairs, lengths, cost)
    busy = np.minimum(state.flow.requests_per_s * work.work_s, _BUSY_CAP)
    chance = np.maximum(1.0 - 2.0 * (1.0 - busy) / (1.0 + state.clumped_cv2), _TINY)
    single = busy * 0.5 * (1.0 + work.work_cv2)
    # Clumps never shorten the wait of those who wait, which the two-moment form would say of very uneven prompts.
    conditional = np.maximum((single + state.clump) / chance, single / np.maximum(busy, _TINY))
    slot_chance, slot_s = _slot_wait(base, state)
    return FirstTokenLaw(
        residual_s=_residual_s(base, state, cost),
        own_s=_own_s(base, state, cost, observed.prefill_tokens),
        weights=observed.prefill_weights,
        queue_chance=chance,
        queue_s=np.maximum(work.work_s / (1.0 - busy) * conditional, _TINY),
        slot_chance=slot_chance,
        slot_s=slot_s,
        factor=pairs.ttft_factor,
        fixed_s=pairs.fixed_ttft_s,
    )


def first_token_tail(law: FirstTokenLaw, limit_s: Array) -> Array:
    """Return the share of requests whose time to first token exceeds `limit_s` [..., P].

    The rest of the running step is uniform; the two waits add their chances (never above 1).
    """
    inside = limit_s / law.factor - law.fixed_s
    slack = inside[..., None, :, None] - law.own_s
    longest = np.maximum(law.residual_s, _TINY)[..., None]
    covered = np.clip(slack, 0.0, longest)
    waits = _averaged_exponential(slack, covered, law.queue_chance, law.queue_s)
    waits = waits + _averaged_exponential(slack, covered, law.slot_chance, law.slot_s)
    late = 1.0 - covered / longest * (1.0 - np.minimum(waits / np.maximum(covered, _TINY), 1.0))
    by_batch = (late * law.weights).sum(axis=-1)
    return np.asarray((by_batch * _WEIGHTS[:, None]).sum(axis=-2))


def whole_tail(law: FirstTokenLaw, decode: DecodeLaw, limit_s: Array) -> Array:
    """Return the share of requests whose time from arrival to last token exceeds `limit_s` [P].

    Time to first token plus decode steps times the mean step of the request, as if independent; the decode time is
    taken at its mean and at sqrt(3) standard deviations above, for each output length. The first tail is
    tabulated over the limit and interpolated linearly, which overrates it where it is convex.
    """
    grid = np.linspace(0.0, 1.0, _WHOLE_GRID + 1)
    table = first_token_tail(law, grid[:, None] * limit_s)
    step = decode.base_s + decode.mean_s
    spread = np.sqrt(decode.variance_s2 + decode.noise_s**2)
    share = np.zeros_like(limit_s)
    for node, weight in zip(_NODES, _WEIGHTS, strict=True):
        decode_s = decode.decode_steps * np.minimum(positive(step + node * spread), decode.ceiling_s[:, None])
        left = 1.0 - decode_s / np.maximum(limit_s, _TINY)[:, None]
        share = share + weight * _interpolated(table, left).mean(axis=-1)
    return share


def _averaged_exponential(slack: Array, covered: Array, chance: Array, mean_s: Array) -> Array:
    """Return the integral of `chance exp(-(slack - u)/mean)` over `u` from 0 to `covered`, seconds."""
    mean = mean_s[..., None]
    nearest = np.exp(-positive(slack - covered) / mean)
    return np.asarray(chance[..., None] * mean * nearest * -np.expm1(-covered / mean))


def _residual_s(base: Basis, state: Load, cost: Hinge) -> Array:
    """Return the length-biased duration of a running step; prompts that run alone already count in the queue."""
    step = cost.base_s + state.flow.mean_step_s - state.cost.base_s
    variance = cost.slope_s**2 * state.flow.prompts_per_step * state.work.chunk_tokens2 / (1.0 - state.stall_share**2)
    biased = np.minimum(step + variance / np.maximum(step, _TINY), np.maximum(cost.full_s(), step))
    return np.where(mixed_steps(base.pairs, base.lengths), biased, cost.base_s)


def _own_s(base: Basis, state: Load, cost: Hinge, prompt_tokens: Array) -> Array:
    """Return the time of the steps that compute a prompt of `prompt_tokens` [P, H], which it shares with later ones."""
    wide = Hinge(*(part[..., None] for part in cost))
    full_steps = np.maximum(np.ceil(prompt_tokens / wide.room_tokens) - 1.0, 0.0)
    rest = prompt_tokens - full_steps * wide.room_tokens
    mixed = mixed_steps(base.pairs, base.lengths)
    company = np.where(mixed, _LATER * state.flow.prompts_per_step * base.lengths.prefill, 0.0)
    last = wide.extra_s(np.minimum(rest + company[:, None], wide.room_tokens))
    decoding = np.where(mixed, cost.base_s, 0.0)[..., None]
    return np.asarray(full_steps * (decoding + wide.extra_s(wide.room_tokens)) + decoding + last)


def _slot_wait(base: Basis, state: Load) -> tuple[Array, Array]:
    r"""Return chance and conditional mean of the wait for a free slot.

    The chance is the larger of Halfin-Whitt's `1/(1 + \beta \Phi(\beta)/\phi(\beta))`,
    `\beta = (b - B) \sqrt R/\sqrt{v_1}`, and a gamma tail of the number in the pool above `R b`; the mean is
    `(c^2 + c_o^2)/2 E[o - 1] T/(R b (1 - \rho))`.
    """
    pairs, lengths = base.pairs, base.lengths
    cv2 = np.maximum(pairs.arrival_cv2, 1.0)
    slots = np.maximum(base.slots, _TINY)
    beta = positive(slots - state.batch) * np.sqrt(pairs.replicas / np.maximum(state.variance_alone, _TINY))
    beta = np.minimum(beta, _MOST_BETA)
    ratio = np.exp(log_ndtr(beta) + 0.5 * beta**2 + 0.5 * np.log(2.0 * np.pi))
    halfin_whitt = 1.0 / (1.0 + beta * ratio)
    mean = pairs.replicas * state.batch + 0.5 * (cv2 - 1.0)
    scale = pairs.replicas * state.variance_alone / mean
    chance = np.maximum(halfin_whitt, upper_gamma(mean / scale, pairs.replicas * slots / scale))
    free = 1.0 - np.minimum(state.saturation_share, _BUSY_CAP)
    residence = lengths.decode_steps * state.flow.mean_step_s
    wait = 0.5 * (cv2 + lengths.decode_steps_cv2) * residence / (pairs.replicas * slots * free)
    return np.where(lengths.decode_steps > 0, chance, 0.0), np.maximum(wait, _TINY)


def _interpolated(table: Array, position: Array) -> Array:
    """Return `table` [G + 1, P] at the shares `position` [P, Q] of its range; 1 below it."""
    at = np.clip(position, 0.0, 1.0) * (table.shape[0] - 1)
    lower = np.minimum(at.astype(np.intp), table.shape[0] - 2)
    left = np.take_along_axis(table.T, lower, axis=1)
    right = np.take_along_axis(table.T, lower + 1, axis=1)
    return np.where(position < 0, 1.0, left + (at - lower) * (right - left))
