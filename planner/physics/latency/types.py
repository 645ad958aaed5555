"""Inputs and results of the latency closed form: arrays over pairs, one pair is one shape serving one workload."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from planner.physics.step import StepCoefficients

Array = npt.NDArray[np.float64]
Limits = Mapping[str, Array]

METRICS = ("ttft", "tpot", "itl", "e2e")


@dataclass(frozen=True)
class Pairs:
    """P pairs to rate together; every field but `step` is an array whose first axis is the pair.

    Lengths are in tokens. `input_tokens` are equally likely full prompt lengths, `prefill_tokens` the prompt tokens
    that are really computed (after prefix-cache hits) with their probabilities `prefill_weights` (each row sums to 1),
    `output_tokens` equally likely output lengths, independent of the input. `slots` is the engine's limit of sequences
    of one replica, `kv_slots` the sequences that fit its KV pool (infinite where it never binds). `token_budget` bounds
    the tokens of one step when `chunked`; otherwise whole prompts run in steps of their own, before any decode step.
    `step_factor` multiplies every step time, `ttft_factor` further multiplies the whole time to first token, of which
    `fixed_ttft_s` is the request path outside the engine. `arrival_cv2` is the squared coefficient of variation of the
    gaps between arrivals; values below 1 get no credit.
    """

    step: StepCoefficients
    input_tokens: Array
    prefill_tokens: Array
    prefill_weights: Array
    output_tokens: Array
    arrival_cv2: Array
    slots: Array
    kv_slots: Array
    token_budget: Array
    chunked: npt.NDArray[np.bool_]
    replicas: Array
    step_factor: Array
    ttft_factor: Array
    fixed_ttft_s: Array

    @property
    def size(self) -> int:
        """Number of pairs."""
        return int(self.slots.shape[0])

    def take(self, index: npt.NDArray[np.intp]) -> Pairs:
        """Return the pairs at `index`, in that order."""
        arrays = {name: value[index] for name, value in vars(self).items() if isinstance(value, np.ndarray)}
        return replace(self, step=self.step.take(index), **arrays)


@dataclass(frozen=True)
class Lengths:
    """Requests whose latency is asked for, when they are only part of a pool's traffic (one workload of a mixture).

    Same meaning and shapes as the fields of `Pairs`; the load of the pool stays the one of the pairs.
    """

    prefill_tokens: Array
    prefill_weights: Array
    output_tokens: Array

    def take(self, index: npt.NDArray[np.intp]) -> Lengths:
        """Return the rows at `index`, in that order."""
        return Lengths(self.prefill_tokens[index], self.prefill_weights[index], self.output_tokens[index])


class Flow(NamedTuple):
    """Steady flow of one replica at a mean batch: [P] arrays."""

    mean_step_s: Array
    requests_per_s: Array
    prompts_per_step: Array
    prompt_utilization: Array


class Saturation(NamedTuple):
    """Largest flow that one replica can carry, ignoring latency: [P] arrays."""

    batch: Array
    requests_per_s: Array


class Largest(NamedTuple):
    """Largest mean batch of one replica within all limits, and what binds there: [P] arrays.

    `binding` is the key of the limit that fails next, or `saturation`, `slots` or `kv`. Where no batch is feasible,
    `batch` and `requests_per_s` are 0, `binding` is the worst failing limit and `best_s` the lowest value that its
    metric can take (seconds); elsewhere `best_s` is 0.
    """

    batch: Array
    requests_per_s: Array
    binding: npt.NDArray[np.object_]
    best_s: Array
