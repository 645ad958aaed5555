"""Bridge from the step-time model to the closed form: one hinge per pair and batch.

The closed form needs the time that `q` prompt tokens add to a decode step of `B` sequences,

    extra(q) = pf (f(B + q, B, ctx, q) - f(B, B, ctx, 0)),

`f` being the step-time model and `pf` its prefill multiplier. It is replaced by its chord between a typical chunk and
a full one, `jump 1{q > 0} + slope (q - threshold)+`: tokens below the threshold hide under the memory read of the step;
a jump appears where the first prompt token is dear (experts that decode alone would not have touched). Reading back
the KV cache of the prompt itself is below 1 % of its compute and left out.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from planner.physics.latency.types import Array, Pairs
from planner.physics.step import step_s

# Widest and narrowest typical chunk, as shares of the room in a step, between which the chord starts.
_TYPICAL_CHUNK_SHARE = (1 / 32, 1 / 2)
_LEAST_TOKENS = 1e-6
_LEAST_STEP_S = 1e-12


class Hinge(NamedTuple):
    """Cost of one step at some batch: arrays [..., P]. `room_tokens` is what a step can take of prompts."""

    base_s: Array
    jump_s: Array
    slope_s: Array
    threshold_tokens: Array
    room_tokens: Array

    def extra_s(self, prompt_tokens: Array) -> Array:
        """Return the time that `prompt_tokens` [..., P] in one step add to it, seconds."""
        return np.where(prompt_tokens > 0, self.jump_s, 0.0) + self.slope_s * positive(
            prompt_tokens - self.threshold_tokens
        )

    def full_s(self) -> Array:
        """Return the time of a step whose whole budget is used, seconds."""
        return self.base_s + self.extra_s(self.room_tokens)

    def at(self, row: int) -> Hinge:
        """Return one row of a stack of batches."""
        return Hinge(*(part[row] for part in self))


class Lengthwise(NamedTuple):
    """Moments of the lengths of each pair: arrays [P], tokens."""

    decode_steps: Array
    decode_steps_cv2: Array
    context: Array
    prefill: Array
    prefill_size_biased: Array
    prefill_attended: Array
    prefill_largest: Array


def positive(values: Array) -> Array:
    """Return the positive part of `values`."""
    return np.maximum(values, 0.0)


def lengthwise(pairs: Pairs) -> Lengthwise:
    r"""Return the length moments that the closed form needs.

    The context of a running sequence, weighted by the steps it is seen in, is
    `\mathrm{ctx} = E[(o-1)(i + o/2)] / E[o-1]`; it is the mean prompt where nothing is decoded.
    """
    steps = positive(pairs.output_tokens - 1.0)
    mean_steps = steps.mean(axis=-1)
    safe = np.where(mean_steps > 0, mean_steps, 1.0)
    prompt = pairs.input_tokens.mean(axis=-1)
    prefill = (pairs.prefill_weights * pairs.prefill_tokens).sum(axis=-1)
    second = (pairs.prefill_weights * pairs.prefill_tokens**2).sum(axis=-1)
    size_biased = second / np.maximum(prefill, _LEAST_TOKENS)
    return Lengthwise(
        decode_steps=mean_steps,
        decode_steps_cv2=steps.var(axis=-1) / safe**2,
        context=prompt + (steps * pairs.output_tokens).mean(axis=-1) / (2.0 * safe),
        prefill=np.maximum(prefill, _LEAST_TOKENS),
        prefill_size_biased=np.maximum(size_biased, _LEAST_TOKENS),
        prefill_attended=size_biased + 2.0 * positive(prompt - prefill),
        prefill_largest=pairs.prefill_tokens.max(axis=-1),
    )


def hinge(pairs: Pairs, lengths: Lengthwise, batch: Array) -> Hinge:
    """Return the step cost at the mean batches `batch` [..., P], all times multiplied by the pair's `step_factor`.

    Without chunked prefill, and where nothing is decoded, prompts run in steps of their own: `extra` is then the whole
    time of such a step.
    """
    mixed = mixed_steps(pairs, lengths)
    decoding = np.where(lengths.decode_steps > 0, batch, 0.0)
    room = _room(pairs, lengths, mixed, decoding)
    typical = np.clip(lengths.prefill_size_biased, _TYPICAL_CHUNK_SHARE[0] * room, _TYPICAL_CHUNK_SHARE[1] * room)
    base = _step_s(pairs, lengths, decoding, np.zeros_like(decoding))
    beside = np.where(mixed, decoding, 0.0)
    under = np.where(mixed, base, 0.0)
    multiplier = pairs.step.prefill_factor
    low = multiplier * (_step_s(pairs, lengths, beside, typical) - under)
    high = multiplier * (_step_s(pairs, lengths, beside, room) - under)
    slope = positive(high - low) / (room - typical)
    intercept = low - slope * typical
    threshold = positive(-intercept) / np.maximum(slope, _LEAST_STEP_S)
    return Hinge(
        base_s=np.where(lengths.decode_steps > 0, base, 0.0),
        jump_s=positive(intercept),
        slope_s=slope,
        threshold_tokens=np.where(mixed, threshold, 0.0),
        room_tokens=room,
    )


def mixed_steps(pairs: Pairs, lengths: Lengthwise) -> npt.NDArray[np.bool_]:
    """Tell where prompts share their steps with decoding sequences."""
    return np.asarray(pairs.chunked & (lengths.decode_steps > 0), dtype=np.bool_)


def _room(pairs: Pairs, lengths: Lengthwise, mixed: npt.NDArray[np.bool_], decoding: Array) -> Array:
    whole = np.where(
        lengths.decode_steps > 0,
        np.maximum(pairs.token_budget, lengths.prefill_largest),
        np.minimum(pairs.token_budget, pairs.slots * lengths.prefill),
    )
    return np.maximum(np.where(mixed, pairs.token_budget - decoding, whole), 1.0)


def _step_s(pairs: Pairs, lengths: Lengthwise, decoding: Array, prompt: Array) -> Array:
    tokens = np.maximum(decoding + prompt, _LEAST_TOKENS)
    seconds = step_s(pairs.step, tokens, decoding, lengths.context, prompt, lengths.prefill_attended)
    return np.asarray(seconds * pairs.step_factor)
