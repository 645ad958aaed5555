"""Mean-value answers for whole loads: cost of prompts in a busy engine, closed loop, largest throughput.

Batches are sequences in decode over the whole replica; lengths are means in tokens. Everything is elementwise, for
plain floats as for arrays that broadcast. Source of the forms: catalog/calibration and the comments there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from planner.physics.constants import SpeedConstants
from planner.physics.memory import component_bytes, kv_footprint, split_parameters
from planner.physics.speed import STREAMED
from planner.physics.step import StepCoefficients, Values, step_s
from planner.physics.types import Architecture, Device, Layout

EMBEDDING_AND_HEAD = 1.5
"""Head bytes that input embedding and head are counted as together, as in the fit."""

SMALLEST_ROOM_SHARE = 0.01
"""Share of the memory left for keys and values at the very least, as in the fit."""

LARGEST_PROMPT_LOAD = 0.97
"""Bound on the share of time spent on prompts, as in the fit."""

ROUNDS = 2
"""Rounds of the closed-loop fixed point; more change nothing."""

OFFLINE_REQUESTS = 3000.0
"""Requests of an offline run where its size is not known (published offline tables used about as many)."""

ARRIVAL_BASE_WEIGHT = 0.1
ARRIVAL_BURST_WEIGHT = 0.2
ARRIVAL_MEDIAN_WEIGHT = 0.1

_LEAST_SHARE, _MOST_SHARE = 1e-6, 1.0 - 1e-9
"""Ends of the share of arrivals that is served, where the logarithm still has digits."""


@dataclass(frozen=True)
class ClosedLoop:
    """A fixed number of users who send the next request when the last is answered; steady state of one replica."""

    batch: Values
    step_s: Values
    prompt_s: Values
    tpot_s: Values
    ttft_mean_s: Values
    ttft_median_s: Values
    requests_per_s: Values
    output_tokens_per_s: Values


@dataclass(frozen=True)
class Throughput:
    """All requests queued at once; means over the run of one replica."""

    batch: Values
    step_s: Values
    prompt_s: Values
    duration_s: Values
    output_tokens_per_s: Values


def decode_step_s(c: StepCoefficients, batch: Values, context: Values) -> Values:
    """Return the seconds of a step without prompts while `batch` sequences decode."""
    stream = batch / c.streams
    return step_s(c, stream, stream, context)


def marginal_prefill_s(
    c: StepCoefficients, batch: Values, context: Values, chunk_tokens: Values, prompt_tokens: Values
) -> Values:
    """Return the seconds that a chunk of a prompt adds to a step of `batch` sequences: weights are read once for both."""
    stream = batch / c.streams
    mixed = step_s(c, stream + chunk_tokens, stream, context, chunk_tokens, prompt_tokens)
    return c.prefill_factor * (mixed - step_s(c, stream, stream, context))


def prompt_s(
    c: StepCoefficients, batch: Values, prompt_tokens: Values, output_tokens: Values, budget_tokens: Values
) -> Values:
    """Return the seconds that one whole prompt adds to a replica in steady state with `batch` sequences in decode.

    A step takes as many prompt tokens as arrive per step, at least one prompt, at most `budget_tokens`.
    """
    arriving = batch / c.streams * prompt_tokens / output_tokens
    chunk = np.minimum(budget_tokens, np.maximum(prompt_tokens, arriving))
    context = mean_context(prompt_tokens, output_tokens)
    return marginal_prefill_s(c, batch, context, chunk, prompt_tokens) * prompt_tokens / chunk


def lone_prompt_s(c: StepCoefficients, prompt_tokens: Values) -> Values:
    """Return the seconds of a prompt that an idle replica computes alone, on one attention-data rank."""
    return c.prefill_factor * step_s(c.lone_rank(), prompt_tokens, 0.0, 0.0, prompt_tokens, prompt_tokens)


def mean_context(prompt_tokens: Values, output_tokens: Values) -> Values:
    """Return the mean context of a sequence in decode: the prompt and half of the output."""
    return prompt_tokens + 0.5 * output_tokens


def batch_cap(
    arch: Architecture,
    device: Device,
    layout: Layout,
    weights: str,
    kv: str,
    constants: SpeedConstants,
    prompt_tokens: float,
    output_tokens: float,
    *,
    reserving: bool,
    max_sequences: float,
) -> float:
    """Return how many sequences the memory of one replica holds, at least 1, by the capacity rule of the speed fit.

    `reserving` engines set the whole output aside, others hold part of it on average; `max_sequences` is the engine's
    limit per attention-data rank. The HBM budget of `planner.physics.memory` is the exact rule for a known engine.
    """
    room = _room_bytes(arch, device, layout, weights, constants, reserving)
    held = constants.reserved_output_share if reserving else constants.held_output_share
    cache = kv_footprint(arch, layout, kv, STREAMED)
    sequences = room / cache.bytes_at(prompt_tokens + held * output_tokens)
    return max(min(sequences, max_sequences) * layout.attention_data, 1.0)


def resident_bytes(arch: Architecture, layout: Layout, weights: str) -> float:
    """Return the bytes of weights on one GPU by the counting rule of the speed fit; `weights_bytes` is the exact one."""
    split, sizes = split_parameters(arch), component_bytes(arch, weights)
    dense = split.attention * sizes["attention"] + split.dense * sizes["dense"]
    copied = dense + EMBEDDING_AND_HEAD * split.head * sizes["head"]
    experts = split.experts * sizes["experts"] / layout.attention_data
    return (copied + experts) / layout.tensor / layout.pipeline


def _room_bytes(
    arch: Architecture, device: Device, layout: Layout, weights: str, constants: SpeedConstants, reserving: bool
) -> float:
    taken = resident_bytes(arch, layout, weights) + constants.runtime_bytes
    usable = device.usable_bytes
    if reserving:
        room = constants.memory_share_reserve * (usable - taken)
    else:
        room = constants.memory_share_preempt * usable - taken
    return max(room, SMALLEST_ROOM_SHARE * usable)


def closed_loop(
    c: StepCoefficients,
    concurrency: Values,
    prompt_tokens: Values,
    output_tokens: Values,
    cap: Values,
    budget_tokens: Values,
    burst_weight: float,
    *,
    equal_lengths: bool | npt.NDArray[np.bool_] = False,
    cached_tokens: Values = 0.0,
) -> ClosedLoop:
    """Return the steady state of one replica at a fixed `concurrency`, and its time to first token.

    `cap` bounds the batch, `burst_weight` is that of the calibration: users start together, and with equal lengths they
    stay in step. Time per output token excludes the first one. Requests beyond `cap` wait for memory. `cached_tokens`
    lie in the cache before each prompt: they are read, not computed.
    """
    context = mean_context(prompt_tokens + cached_tokens, output_tokens)
    lone = lone_prompt_s(c, prompt_tokens)
    batch: Values = np.minimum(concurrency, cap)
    for _ in range(ROUNDS):
        step, prompt, tpot = _steady(c, batch, prompt_tokens, output_tokens, budget_tokens, context)
        decoding = output_tokens * tpot
        batch = np.minimum(
            concurrency * decoding / (decoding + _first_token_s(lone, step, prompt, batch, decoding, c)), cap
        )
    step, prompt, tpot = _steady(c, batch, prompt_tokens, output_tokens, budget_tokens, context)
    rate = batch / (output_tokens * tpot)
    first = _first_token_s(lone, step, prompt, batch, output_tokens * tpot, c)
    common = c.request_s + first + np.maximum(concurrency - cap, 0.0) / rate
    together = 0.5 * (concurrency - 1.0) * prompt
    mean_weight = np.where(equal_lengths, 1.0, ARRIVAL_BASE_WEIGHT + ARRIVAL_BURST_WEIGHT * burst_weight)
    median_weight = np.where(equal_lengths, 1.0, ARRIVAL_MEDIAN_WEIGHT * burst_weight)
    return ClosedLoop(
        batch=batch,
        step_s=step,
        prompt_s=prompt,
        tpot_s=tpot,
        ttft_mean_s=common + mean_weight * together,
        ttft_median_s=common + median_weight * together,
        requests_per_s=rate,
        output_tokens_per_s=rate * output_tokens,
    )


def _steady(
    c: StepCoefficients,
    batch: Values,
    prompt_tokens: Values,
    output_tokens: Values,
    budget_tokens: Values,
    context: Values,
) -> tuple[Values, Values, Values]:
    """Seconds per step, per prompt and per output token while `batch` sequences decode and prompts replace them."""
    step = decode_step_s(c, batch, context)
    prompt = prompt_s(c, batch, prompt_tokens, output_tokens, budget_tokens)
    return step, prompt, step + prompt * batch / c.streams / output_tokens


def _first_token_s(
    lone: Values, step: Values, prompt: Values, batch: Values, decoding: Values, c: StepCoefficients
) -> Values:
    """A prompt's own time, half a step, and the wait behind other prompts (single server, constant service)."""
    load = np.minimum(batch / c.streams * prompt / decoding, LARGEST_PROMPT_LOAD)
    return lone + 0.5 * step + load / (1.0 - load) * 0.5 * prompt


def max_throughput(
    c: StepCoefficients,
    cap: Values,
    prompt_tokens: Values,
    output_tokens: Values,
    budget_tokens: Values,
    requests: Values = OFFLINE_REQUESTS,
) -> Throughput:
    """Return the throughput of one replica that is given `requests` of equal length at once.

    Full waves of `cap` sequences and a last one of what remains; prompts are computed while others decode.
    """
    context = mean_context(prompt_tokens, output_tokens)
    batch = np.minimum(cap, requests)
    waves = np.floor(requests / batch)
    rest = requests - waves * batch
    step = decode_step_s(c, batch, context)
    last = np.where(rest > 0.0, decode_step_s(c, np.maximum(rest, 1.0), context), 0.0)
    prompt = prompt_s(c, batch, prompt_tokens, output_tokens, budget_tokens)
    duration = requests * prompt / c.streams + output_tokens * (waves * step + last)
    return Throughput(batch, step, prompt, duration, requests * output_tokens / duration)


def slot_waits(requests: Values, slots: Values, served: Values, arriving: Values) -> tuple[Values, Values]:
    """Return the mean and the median wait, seconds, for a slot in a run that starts empty and brings more than is served.

    `requests` come at a rate `arriving` (infinite: all at once) to `slots`, which once full finish `served` per second.
    Until then a fluid of answers with memoryless lengths fills them, so `slots ln(1 / (1 - x)) / x` requests wait for
    none, x = served / arriving. Each later one waits longer than the one before by the difference of the gaps.
    """
    share = np.clip(served / arriving, _LEAST_SHARE, _MOST_SHARE)
    first = np.minimum(-np.log1p(-share) / share * slots, requests)
    longer = np.maximum(1.0 / served - 1.0 / arriving, 0.0)
    mean: Values = (requests - first) ** 2 / (2.0 * requests) * longer
    median: Values = np.maximum(0.5 * requests - first, 0.0) * longer
    return mean, median
