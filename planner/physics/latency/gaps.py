"""Tail of the single gaps between the tokens of running sequences."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from planner.physics.latency.gamma import gamma_tail
from planner.physics.latency.load import Basis, Load, longest_step_s
from planner.physics.latency.steps import Hinge, mixed_steps, positive
from planner.physics.latency.types import Array

# Five-point Gauss-Hermite rule for a standard normal variable, its lower half moved to 0.
_NODES = np.array([0.0, 1.3556261799742659, 2.8569700138728])
_WEIGHTS = np.array([0.766666666666667, 0.222075922005613, 0.011257411327721])
_TINY = 1e-12


class Pieces(NamedTuple):
    """Pieces of prompts in one gap: chunks (tokens) where steps are mixed, else whole prompts (seconds); arrays [P].

    `none` and `one` are the chances of no and of exactly one piece, `mean` and `variance` those of the number of
    pieces, `size` and `size2` the first two moments of one.
    """

    none: Array
    one: Array
    mean: Array
    variance: Array
    size: Array
    size2: Array
    per_prompt: Array


def gap_tail(base: Basis, state: Load, limit_s: Array) -> Array:
    r"""Return the share of the gaps between tokens that exceed `limit_s` [P]; every token counts once.

    A gap is one step, `F(B + 1 + z \sqrt v, 0)` with `z` normal (never faster than its mean, so that noise cannot
    help), plus the time of the prompts in it. Exactly one piece has its own distribution; several are gamma distributed
    with the mean and variance that their number has when it is at least two.
    """
    noise = _NODES[:, None] * np.sqrt(state.variance) * state.step_slope_s
    slack = limit_s - state.next_cost.base_s - noise
    mixed = mixed_steps(base.pairs, base.lengths)
    reached = np.where(mixed, _tokens_reaching(state.next_cost, slack), slack)
    tail = np.where(slack > 0, _sum_tail(base, state, mixed, reached), 1.0)
    share = (_WEIGHTS[:, None] * tail).sum(axis=0)
    counted = (base.lengths.decode_steps > 0) & (limit_s <= longest_step_s(base, state.next_cost))
    return np.asarray(np.where(counted, share, 0.0))


def _tokens_reaching(cost: Hinge, extra_s: Array) -> Array:
    """Return the prompt tokens in one step that add `extra_s` to it."""
    return cost.threshold_tokens + positive(extra_s - cost.jump_s) / np.maximum(cost.slope_s, _TINY)


def _pieces(base: Basis, state: Load, mixed: npt.NDArray[np.bool_]) -> Pieces:
    r"""Return the law of the number of pieces in a gap.

    Mixed steps: Poisson with the mean `\nu` times chunks per prompt; long steps gather more arrivals, which divides
    the variance by `1 - r^2`. Prompts that run alone gather others while they run: Poisson clusters of rate
    `\nu (1 - r)` whose size has the Borel law of mean `1/(1 - r)`, so that the variance is `\nu/(1 - r)^2`.
    """
    work, prompts, share = state.next_work, state.flow.prompts_per_step, state.stall_share
    per_prompt = np.where(mixed, work.chunks, 1.0)
    mean = prompts * per_prompt
    clusters = np.where(mixed, mean, mean * (1.0 - share))
    none = np.exp(-clusters)
    return Pieces(
        none=none,
        one=clusters * none * np.where(mixed, 1.0, np.exp(-share)),
        mean=mean,
        variance=mean / np.where(mixed, 1.0 - share**2, (1.0 - share) ** 2),
        size=np.where(mixed, base.lengths.prefill, work.stall_s) / per_prompt,
        size2=np.where(mixed, work.chunk_tokens2, work.stall_s2) / per_prompt,
        per_prompt=per_prompt,
    )


def _sum_tail(base: Basis, state: Load, mixed: npt.NDArray[np.bool_], reached: Array) -> Array:
    """Return the chance that the prompts of one gap exceed `reached` [N, P]: tokens where mixed, else seconds."""
    pieces = _pieces(base, state, mixed)
    several = positive(1.0 - pieces.none - pieces.one)
    safe = np.maximum(several, _TINY)
    number = np.maximum((pieces.mean - pieces.one) / safe, 2.0)
    number2 = (pieces.variance + pieces.mean**2 - pieces.one) / safe
    uneven = positive(number2 - number**2) * pieces.size**2
    size_variance = number * positive(pieces.size2 - pieces.size**2)
    above = gamma_tail(
        number * pieces.size, size_variance + uneven, size_variance + uneven * state.clumped_cv2, reached
    )
    return np.asarray(
        pieces.one * _one_above(base, state.next_cost, mixed, pieces.per_prompt, reached) + several * above
    )


def _one_above(base: Basis, cost: Hinge, mixed: npt.NDArray[np.bool_], per_prompt: Array, reached: Array) -> Array:
    """Return the chance that one piece exceeds `reached` [N, P]."""
    tokens, weights = base.pairs.prefill_tokens, base.pairs.prefill_weights
    room = cost.room_tokens[:, None]
    full_chunks = np.floor(tokens / room)
    rest = tokens - full_chunks * room
    level = reached[..., None]
    chunks = full_chunks * (room > level) + (rest > level)
    whole = Hinge(*(part[:, None] for part in cost)).extra_s(tokens) > level
    return np.asarray((weights * np.where(mixed[:, None], chunks, whole)).sum(axis=-1) / per_prompt)
