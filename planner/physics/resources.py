"""What a step spends its time on, by resource, and the bytes and FLOPs behind it: rows and explanations of a plan."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planner.physics.step import (
    StepCoefficients,
    Values,
    expert_hit_share,
    kv_sequence_s,
    prefill_attention_s,
    roofline_sides,
    step_parts,
)


@dataclass(frozen=True)
class ResourceSeconds:
    """Seconds of one step by the resource that sets them; they sum to the step."""

    bandwidth_s: Values
    compute_s: Values
    interconnect_s: Values
    overhead_s: Values


def resource_seconds(
    c: StepCoefficients,
    tokens: Values,
    sequences: Values,
    context: Values,
    prefill_tokens: Values = 0.0,
    prompt_tokens: Values = 0.0,
) -> ResourceSeconds:
    """Split a step by resource: each roofline component goes to bandwidth or compute, whichever side takes longer."""
    parts = step_parts(c, tokens, sequences, context, prefill_tokens, prompt_tokens)
    sides = roofline_sides(c, tokens, sequences, context)
    durations = (parts.attention_weights_s, parts.ffn_s, parts.head_s, parts.experts_s, parts.kv_s)
    pairs = (sides.attention, sides.ffn, sides.head, sides.experts, sides.kv)
    bandwidth: Values = 0.0
    for duration, (read, compute) in zip(durations, pairs, strict=True):
        bandwidth = bandwidth + np.where(np.greater_equal(read, compute), duration, 0.0)
    overhead = parts.layers_s + parts.host_s
    compute = parts.total_s - bandwidth - parts.collectives_s - overhead
    return ResourceSeconds(bandwidth, compute, parts.collectives_s, overhead)


def step_bytes(c: StepCoefficients, tokens: Values, sequences: Values, context: Values) -> Values:
    """Return the bytes that one GPU streams during one step: weights, the experts that are hit, keys and values."""
    weights = (c.attention_read_s + c.ffn_read_s + c.head_read_s) * c.weight_bytes_per_s
    experts = expert_hit_share(c, tokens) * c.expert_read_s * c.expert_bytes_per_s
    return weights + experts + sequences * kv_sequence_s(c, context) * c.kv_bytes_per_s


def step_flops(
    c: StepCoefficients,
    tokens: Values,
    sequences: Values,
    context: Values,
    prefill_tokens: Values = 0.0,
    prompt_tokens: Values = 0.0,
) -> Values:
    """Return the FLOPs of one GPU in one step, without padding of experts; the head counts the decoding tokens only."""
    dense = c.attention_token_s * c.attention_flops_per_s + c.ffn_token_s * c.ffn_flops_per_s
    experts = c.expert_token_s * c.expert_share * c.expert_flops_per_s
    attention = prefill_attention_s(c, prefill_tokens, prompt_tokens) * c.prefill_flops_per_s
    head = c.head_token_s * sequences * c.head_flops_per_s
    return tokens * (dense + experts) + head + sequences * context * c.mla_token_s * c.mla_flops_per_s + attention


def bandwidth_floor_s(c: StepCoefficients, tokens: Values, sequences: Values, context: Values) -> Values:
    """Return the seconds that streaming alone takes, each component at its own rate: never above the step."""
    weights = c.attention_read_s + c.ffn_read_s + c.head_read_s
    return weights + expert_hit_share(c, tokens) * c.expert_read_s + sequences * kv_sequence_s(c, context)


def compute_floor_s(
    c: StepCoefficients,
    tokens: Values,
    sequences: Values,
    context: Values,
    prefill_tokens: Values = 0.0,
    prompt_tokens: Values = 0.0,
) -> Values:
    """Return the seconds that arithmetic alone takes, each component at its own rate: never above the step."""
    dense = tokens * (c.attention_token_s + c.ffn_token_s + c.expert_token_s * c.expert_share)
    decoding = sequences * (c.head_token_s + context * c.mla_token_s)
    return dense + decoding + prefill_attention_s(c, prefill_tokens, prompt_tokens)
