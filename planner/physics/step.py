"""Time of one engine iteration as an elementwise function of the load: the part that runs a million times a second.

A load is `tokens` in the step, `sequences` among them that decode at a mean `context`, and `prefill_tokens` of prompts
whose whole length is `prompt_tokens`; all counts are those of one replica, or of one of its pipeline microbatches.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Values = float | Array

SHARED_FIELDS = ("exponent", "expert_half_tokens", "expert_tile_tokens")
TINY = 1e-300


@dataclass(frozen=True)
class StepCoefficients:
    """Everything about a shape on a device and engine that does not depend on the load: plain floats, or arrays [P].

    Times are seconds after the engine's multipliers. `*_read_s` streams the bytes of a component once per step;
    `*_token_s` is the matrix time of one token, which a step of few tokens pays as (tokens + half) / tokens.
    `half_tokens` is that half, over all of the `data_ranks` attention-data ranks, which share tokens evenly. Terms
    `kv_*` and `mla_token_s` are per sequence and context token, `state_s` per sequence, `prefill_*` per prefill token
    and attended token. `collective_step_s` is paid once a step, `allreduce_token_s`, `alltoall_token_s` and
    `hop_token_s` (pipeline, between nodes) per token. Rates `*_bytes_per_s` (never above the datasheet) and
    `*_flops_per_s` are those that one GPU reaches in that component, 0 where it is absent. `prefill_factor` and `request_s` are the engine's factor on the cost of
    prompts and its request path outside the GPU. `streams` is the number of pipeline microbatches in flight: loads are
    those of one of them, and the replica does `streams` times as much. Floats that all pairs share stay floats.
    """

    attention_read_s: Values
    attention_token_s: Values
    ffn_read_s: Values
    ffn_token_s: Values
    head_read_s: Values
    head_token_s: Values
    half_tokens: Values
    data_ranks: Values
    expert_read_s: Values
    expert_token_s: Values
    expert_share: Values
    expert_miss_log: Values
    kv_global_s: Values
    kv_local_s: Values
    window_tokens: Values
    state_s: Values
    mla_token_s: Values
    prefill_global_s: Values
    prefill_local_s: Values
    collective_step_s: Values
    allreduce_token_s: Values
    alltoall_token_s: Values
    hop_token_s: Values
    layers_s: Values
    host_step_s: Values
    host_sequence_s: Values
    prefill_factor: Values
    request_s: Values
    streams: Values
    weight_bytes_per_s: Values
    expert_bytes_per_s: Values
    kv_bytes_per_s: Values
    attention_flops_per_s: Values
    ffn_flops_per_s: Values
    head_flops_per_s: Values
    expert_flops_per_s: Values
    mla_flops_per_s: Values
    prefill_flops_per_s: Values
    exponent: float
    expert_half_tokens: float
    expert_tile_tokens: float

    def expand(self, ndim: int = 1) -> StepCoefficients:
        """Append `ndim` axes of length one to every array field, so that pairs [P] meet loads [P, N]."""
        return self._map(lambda array: array.reshape(array.shape + (1,) * ndim))

    def take(self, index: npt.NDArray[np.intp] | npt.NDArray[np.bool_] | slice) -> StepCoefficients:
        """Return the pairs at `index`, in that order; floats stay as they are."""
        return self._map(lambda array: array[index])

    def lone_rank(self) -> StepCoefficients:
        """Return the coefficients of a step whose tokens all lie on one attention-data rank: a prompt met alone."""
        ranks = self.data_ranks
        per_rank = (
            "attention_token_s",
            "ffn_token_s",
            "head_token_s",
            "prefill_global_s",
            "prefill_local_s",
            "allreduce_token_s",
            "hop_token_s",
        )
        alone = {name: getattr(self, name) * ranks for name in per_rank}
        return replace(self, **alone, half_tokens=self.half_tokens / ranks, data_ranks=ranks / ranks)

    @property
    def achievable_bytes_per_s(self) -> Values:
        """Fastest rate, bytes/s, at which one GPU streams any component: streamed bytes over it never exceed a step."""
        return _largest(self.weight_bytes_per_s, self.expert_bytes_per_s, self.kv_bytes_per_s)

    @property
    def achievable_flops_per_s(self) -> Values:
        """Fastest rate, FLOP/s, that one GPU reaches in any component: FLOPs over it never exceed a step."""
        dense = _largest(self.attention_flops_per_s, self.ffn_flops_per_s, self.head_flops_per_s)
        return _largest(dense, self.expert_flops_per_s, self.mla_flops_per_s, self.prefill_flops_per_s)

    def _map(self, change: Callable[[Array], Array]) -> StepCoefficients:
        fields = vars(self).items()
        arrays: dict[str, Any] = {name: change(value) for name, value in fields if isinstance(value, np.ndarray)}
        return replace(self, **arrays)


def stack(coefficients: Sequence[StepCoefficients]) -> StepCoefficients:
    """Join the coefficients of P pairs into arrays [P]; the `SHARED_FIELDS` stay floats.

    Raises `ValueError` for an empty list, or when pairs with different constants are mixed.
    """
    if not coefficients:
        raise ValueError("no coefficients to stack")
    names = [name for name in vars(coefficients[0]) if name not in SHARED_FIELDS]
    for name in SHARED_FIELDS:
        if len({getattr(each, name) for each in coefficients}) > 1:
            raise ValueError(f"pairs with different {name} cannot be rated together")
    table = np.array(list(map(attrgetter(*names), coefficients)), dtype=np.float64)
    columns = dict(zip(names, np.ascontiguousarray(table.T), strict=True))
    return replace(coefficients[0], **columns)


@dataclass(frozen=True)
class StepParts:
    """Seconds of one step by part, after engine multipliers; shapes broadcast against each other."""

    attention_weights_s: Values
    ffn_s: Values
    head_s: Values
    experts_s: Values
    kv_s: Values
    prefill_attention_s: Values
    collectives_s: Values
    layers_s: Values
    host_s: Values

    @property
    def total_s(self) -> Values:
        """Duration of the step in seconds: the parts follow each other."""
        gpu = self.attention_weights_s + self.ffn_s + self.head_s + self.experts_s + self.kv_s
        return gpu + self.prefill_attention_s + self.collectives_s + (self.layers_s + self.host_s)


@dataclass(frozen=True)
class RooflineSides:
    """Bytes side and FLOPs side, in seconds, of each component that has both."""

    attention: tuple[Values, Values]
    ffn: tuple[Values, Values]
    head: tuple[Values, Values]
    experts: tuple[Values, Values]
    kv: tuple[Values, Values]


def step_parts(
    c: StepCoefficients,
    tokens: Values,
    sequences: Values,
    context: Values,
    prefill_tokens: Values = 0.0,
    prompt_tokens: Values = 0.0,
) -> StepParts:
    """Return the parts of one step, elementwise: fields [P] or [P, 1] against loads [P] or [P, N], or plain floats.

    `tokens` includes `sequences` and `prefill_tokens`. Source: catalog/calibration (iteration
    time: rooflines per component, combined as a p-norm of bytes and FLOPs, plus collectives and fixed overheads).
    """
    sides = roofline_sides(c, tokens, sequences, context)
    return StepParts(
        attention_weights_s=_combine(*sides.attention, c.exponent),
        ffn_s=_combine(*sides.ffn, c.exponent),
        head_s=_combine(*sides.head, c.exponent),
        experts_s=_combine(*sides.experts, c.exponent) if np.any(c.expert_read_s) else 0.0,
        kv_s=_combine(*sides.kv, c.exponent) if np.any(c.mla_token_s) else sides.kv[0],
        prefill_attention_s=prefill_attention_s(c, prefill_tokens, prompt_tokens),
        collectives_s=c.collective_step_s + (c.allreduce_token_s + c.alltoall_token_s + c.hop_token_s) * tokens,
        layers_s=c.layers_s,
        host_s=c.host_step_s + c.host_sequence_s * sequences,
    )


def step_s(
    c: StepCoefficients,
    tokens: Values,
    sequences: Values,
    context: Values,
    prefill_tokens: Values = 0.0,
    prompt_tokens: Values = 0.0,
) -> Values:
    """Return the duration of one step in seconds, elementwise as `step_parts`."""
    return step_parts(c, tokens, sequences, context, prefill_tokens, prompt_tokens).total_s


def roofline_sides(c: StepCoefficients, tokens: Values, sequences: Values, context: Values) -> RooflineSides:
    filled = tokens + c.half_tokens
    head_tokens = np.maximum(sequences, c.data_ranks) + c.half_tokens
    return RooflineSides(
        attention=(c.attention_read_s, c.attention_token_s * filled),
        ffn=(c.ffn_read_s, c.ffn_token_s * filled),
        head=(c.head_read_s, c.head_token_s * head_tokens),
        experts=_expert_sides(c, tokens) if np.any(c.expert_read_s) else (0.0, 0.0),
        kv=(sequences * kv_sequence_s(c, context), sequences * context * c.mla_token_s),
    )


def _expert_sides(c: StepCoefficients, tokens: Values) -> tuple[Values, Values]:
    hit = expert_hit_share(c, tokens)
    per_expert = tokens * c.expert_share / np.maximum(hit, TINY)
    padded = 1.0 + 0.5 * c.expert_tile_tokens / np.maximum(per_expert, 1.0)
    return hit * c.expert_read_s, hit * c.expert_token_s * (per_expert + c.expert_half_tokens) * padded


def expert_hit_share(c: StepCoefficients, tokens: Values) -> Values:
    """Return the share of the routed experts that `tokens` reach when each picks its experts evenly and independently."""
    share: Values = 1.0 - np.exp(tokens * c.expert_miss_log)
    return share


def kv_sequence_s(c: StepCoefficients, context: Values) -> Values:
    """Return the seconds to stream the cache of one sequence at `context`: local layers up to their window, states."""
    growing = c.kv_global_s * context + c.state_s
    if np.any(c.kv_local_s):
        return growing + c.kv_local_s * np.minimum(context, c.window_tokens)
    return growing


def prefill_attention_s(c: StepCoefficients, prefill_tokens: Values, prompt_tokens: Values) -> Values:
    """A prompt token attends to half of its prompt on average (local layers: up to the window)."""
    attended = 0.5 * prompt_tokens
    if np.any(c.prefill_local_s):
        local = c.prefill_local_s * np.minimum(attended, c.window_tokens)
        return prefill_tokens * (c.prefill_global_s * attended + local)
    return prefill_tokens * (c.prefill_global_s * attended)


def _combine(read_s: Values, compute_s: Values, exponent: float) -> Values:
    """Return (a^p + b^p)^(1/p) without overflow, and 0 where both are 0."""
    high = np.maximum(read_s, compute_s)
    ratio = np.minimum(read_s, compute_s) / np.maximum(high, TINY)
    combined: Values = high * (1.0 + ratio**exponent) ** (1.0 / exponent)
    return combined


def _largest(first: Values, *others: Values) -> Values:
    largest = first
    for other in others:
        largest = np.maximum(largest, other)
    return largest
