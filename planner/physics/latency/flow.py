"""Mean flow of one replica as a function of its mean decode batch, and its inverse."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from planner.physics.latency.gamma import upper_gamma
from planner.physics.latency.steps import Hinge, Lengthwise, hinge, lengthwise, mixed_steps, positive
from planner.physics.latency.types import Array, Flow, Pairs, Saturation

_TINY = 1e-12
_MOST_SLOTS = 1e7
# Mean batches tried for the largest flow, as shares of the largest allowed one; the flow is smooth and nearly concave.
_SATURATION_GRID = np.geomspace(1 / 64, 1.0, 13)
_INVERSE_STEPS = 10
_LEAST_SHARE = 1e-6


class PromptWork(NamedTuple):
    """What one prompt does to the steps it runs in: means over prompts, arrays [..., P].

    A prompt is cut into chunks of at most the room of a step. `stall` is the time it adds to steps that would
    otherwise only decode, `work_s` the time it needs of a server that only fills budgets.
    """

    chunks: Array
    chunk_tokens2: Array
    overflow_tokens: Array
    stall_s: Array
    stall_s2: Array
    work_s: Array
    work_cv2: Array


def prompt_work(pairs: Pairs, lengths: Lengthwise, cost: Hinge) -> PromptWork:
    """Return the chunk and stall moments of the pairs' prompts at the step cost `cost` [..., P]."""
    tokens, weights = pairs.prefill_tokens, pairs.prefill_weights
    room = cost.room_tokens[..., None]
    wide = Hinge(*(part[..., None] for part in cost))
    full_chunks = np.floor(tokens / room)
    rest = tokens - full_chunks * room
    hidden = wide.threshold_tokens
    stall = full_chunks * wide.extra_s(room) + wide.extra_s(rest)
    work_s, work_cv2 = _work(pairs, lengths, cost, stall)
    return PromptWork(
        chunks=_mean(weights, full_chunks + (rest > 0)),
        chunk_tokens2=_mean(weights, full_chunks * room**2 + rest**2),
        overflow_tokens=_mean(weights, full_chunks * positive(room - hidden) + positive(rest - hidden)),
        stall_s=_mean(weights, stall),
        stall_s2=_mean(weights, stall**2),
        work_s=work_s,
        work_cv2=work_cv2,
    )


def extra_s(pairs: Pairs, lengths: Lengthwise, cost: Hinge, work: PromptWork, prompts_per_step: Array) -> Array:
    r"""Return the mean time that prompts add to a step, seconds.

    `\nu` prompts per step make a compound Poisson number of tokens `q`; with a gamma law of the same mean and variance
    (shape `s`, scale `\theta`) the hinge gives `E[(q - q^*)^+] = E[q] Q(s + 1, q^*/\theta) - q^* Q(s, q^*/\theta)`, `Q`
    the regularised upper incomplete gamma function. It is never below `\nu E[(c - q^*)^+]` over chunks `c` nor
    `(E[q] - q^*)^+`, both lower bounds of the true value, and never above that of a full budget.
    """
    mean = prompts_per_step * lengths.prefill
    scale = np.maximum(work.chunk_tokens2 / lengths.prefill, _TINY)
    shape = np.maximum(mean / scale, _TINY)
    hidden = cost.threshold_tokens
    gamma = mean * upper_gamma(shape + 1.0, hidden / scale) - hidden * upper_gamma(shape, hidden / scale)
    overflow = np.maximum(np.maximum(gamma, prompts_per_step * work.overflow_tokens), positive(mean - hidden))
    mixed = cost.jump_s * -np.expm1(-prompts_per_step * work.chunks) + cost.slope_s * overflow
    mixed = np.minimum(mixed, cost.extra_s(cost.room_tokens))
    return np.where(mixed_steps(pairs, lengths), mixed, prompts_per_step * work.stall_s)


def prompts_per_step(lengths: Lengthwise, batch: Array) -> Array:
    r"""Return `\nu = B / E[o - 1]`, which holds whatever the step takes; 0 where nothing is decoded."""
    decodes = lengths.decode_steps > 0
    return np.where(decodes, batch / np.where(decodes, lengths.decode_steps, 1.0), 0.0)


def effective_slots(pairs: Pairs) -> Array:
    """Return the sequences that one replica can run at once: the engine's limit or the KV pool's, at least 0."""
    return np.clip(np.minimum(pairs.slots, pairs.kv_slots), 0.0, _MOST_SLOTS)


def streams(pairs: Pairs) -> Array:
    """Return the pipeline microbatches that each replica runs side by side, [P]."""
    return np.broadcast_to(np.asarray(pairs.step.streams, dtype=np.float64), (pairs.size,))


def one_stream(pairs: Pairs) -> Pairs:
    """Return the pairs with each pipeline microbatch as a replica of its own, with its share of the slots."""
    count = streams(pairs)
    if np.all(count == 1.0):
        return pairs
    return replace(
        pairs,
        step=replace(pairs.step, streams=1.0),
        slots=np.maximum(pairs.slots / count, np.minimum(pairs.slots, 1.0)),
        kv_slots=pairs.kv_slots / count,
        replicas=pairs.replicas * count,
    )


def throughput(pairs: Pairs, batch: Array) -> Flow:
    r"""Return the flow of one replica whose mean decode batch is `batch` [..., P].

    LPS closed form, see planner/manual/physics.md: `\lambda(B) = B / (E[o-1] T(B))` with
    `T(B) = f(B) + E[extra(q)]`. Where every output is one token, `batch` over the slots is the share of time that the
    prompt server is busy, and `\lambda = (B / b) / E[w]`, `w` the work of a prompt in full steps.
    """
    return _flow_of(pairs)(batch)


def _flow_of(pairs: Pairs) -> Callable[[Array], Flow]:
    """Return `throughput` as a function of the batch, for asking it often about the same pairs."""
    view, count = one_stream(pairs), streams(pairs)
    lengths = lengthwise(view)

    def at(batch: Array) -> Flow:
        with np.errstate(all="ignore"):
            cost = hinge(view, lengths, batch / count)
            one = flow(view, lengths, cost, prompt_work(view, lengths, cost), batch / count)
        return one._replace(requests_per_s=one.requests_per_s * count)

    return at


def flow(pairs: Pairs, lengths: Lengthwise, cost: Hinge, work: PromptWork, batch: Array) -> Flow:
    """Return the flow at `batch` from its step cost; see `throughput`."""
    prompts = prompts_per_step(lengths, batch)
    decodes = lengths.decode_steps > 0
    step = np.where(decodes, cost.base_s + extra_s(pairs, lengths, cost, work, prompts), cost.full_s())
    busy = batch / np.maximum(effective_slots(pairs), _TINY)
    rate = np.where(decodes, prompts / np.maximum(step, _TINY), busy / np.maximum(work.work_s, _TINY))
    return Flow(step, rate, prompts, rate * work.work_s)


def saturation(pairs: Pairs) -> Saturation:
    r"""Return the largest flow of one replica over all mean batches that its slots and token budget allow.

    A step cannot hold more than the token budget: `B + \nu E[i] \le` budget when prompts share steps.
    """
    view = one_stream(pairs)
    grid = batch_limit(view, lengthwise(view)) * streams(pairs) * _SATURATION_GRID[:, None]
    rates = throughput(pairs, grid).requests_per_s
    best = rates.argmax(axis=0)[None, :]
    return Saturation(np.take_along_axis(grid, best, 0)[0], np.take_along_axis(rates, best, 0)[0])


def batch_limit(pairs: Pairs, lengths: Lengthwise) -> Array:
    """Return the largest mean batch that slots, KV pool and token budget allow."""
    per_sequence = np.where(
        mixed_steps(pairs, lengths), 1.0 + prompts_per_step(lengths, np.ones(pairs.size)) * lengths.prefill, _TINY
    )
    return np.minimum(effective_slots(pairs), pairs.token_budget / per_sequence)


def batch_at(pairs: Pairs, requests_per_s: Array) -> Array:
    """Return the mean batch at which one replica carries `requests_per_s`, the inverse of `throughput`.

    Rates above saturation return the batch at saturation: compare with `saturation` first.
    """
    with np.errstate(all="ignore"):
        return batch_below(pairs, requests_per_s, saturation(pairs).batch)


def batch_below(pairs: Pairs, requests_per_s: Array, high: Array) -> Array:
    """Return the batch up to `high` at which one replica carries `requests_per_s`, or `high` where none does."""
    flow_at = _flow_of(pairs)

    def carried(batch: Array) -> Array:
        return np.asarray(np.maximum(flow_at(batch).requests_per_s, _TINY))

    def excess_batch(batch: Array) -> Array:
        """Return `B - rate E[o - 1] T(B)`, nearly linear in the batch and 0 at the inverse."""
        return batch * (1.0 - requests_per_s / carried(batch))

    low = high * _LEAST_SHARE
    # On a replica that is all but idle nobody waits for anybody: below `low` the batch is in proportion to the rate.
    used = requests_per_s / carried(low)
    below, above = low * (1.0 - used), excess_batch(high)
    idle, is_idle = low * used, below > 0.0
    rose = np.zeros(high.shape, dtype=bool)
    fell = np.zeros(high.shape, dtype=bool)
    for _ in range(_INVERSE_STEPS):
        # Illinois variant of the false position: an end that stays twice counts half.
        middle = np.clip(high - above * (high - low) / np.maximum(above - below, _TINY), low, high)
        excess = excess_batch(middle)
        enough = excess >= 0
        below = np.where(enough, np.where(fell, 0.5 * below, below), excess)
        above = np.where(enough, excess, np.where(rose, 0.5 * above, above))
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
        rose, fell = ~enough, enough
    return np.where(is_idle, idle, high)


def _mean(weights: Array, values: Array) -> Array:
    return np.asarray((weights * values).sum(axis=-1))


def _work(pairs: Pairs, lengths: Lengthwise, cost: Hinge, stall: Array) -> tuple[Array, Array]:
    """Return mean and squared coefficient of variation of a prompt's work: in full steps, or alone in its own steps."""
    alone = ~mixed_steps(pairs, lengths) & (lengths.decode_steps > 0)
    per_token = cost.full_s() / cost.room_tokens
    work = np.where(alone[..., None], stall, per_token[..., None] * pairs.prefill_tokens)
    mean = _mean(pairs.prefill_weights, work)
    variance = positive(_mean(pairs.prefill_weights, work**2) - mean**2)
    return mean, variance / np.maximum(mean, _TINY) ** 2
