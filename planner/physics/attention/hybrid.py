"""Attention layers beside layers with a recurrent state of fixed size (linear attention, state-space models)."""

from __future__ import annotations

from math import ceil

from planner.physics.attention import full, mla
from planner.physics.footprint import (
    AttentionParameters,
    KvFootprint,
    KvRules,
    UnknownArchitecture,
    group_size,
    padded,
    stage_share,
)
from planner.physics.formats import KvFormat
from planner.physics.types import Architecture, Layout

RANK = 10
WIDE_BYTES = 2.0
BLOCK_MULTIPLE_TOKENS = 16
"""Attention kernels take blocks in multiples of this (vLLM, where a page must hold a whole state)."""
_MISSING = {
    "gated-delta": "linear key and value heads, their dimensions and the convolution width",
    "Mamba2": "number of SSM heads, head and state dimension, groups and the convolution width",
    "Mamba": "inner and state dimension of the SSM and the convolution width",
}


def matches(arch: Architecture) -> bool:
    """Accept models with state layers."""
    return arch.n_state_layers > 0


def parameters(arch: Architecture) -> AttentionParameters:
    """Count the softmax attention layers only; projections of state layers belong to the dense rest."""
    return mla.parameters(arch) if arch.is_mla else full.parameters(arch)


def footprint(arch: Architecture, layout: Layout, kv: KvFormat, rules: KvRules) -> KvFootprint:
    """Give the growing layers and the fixed state. Raises `UnknownArchitecture` when the state has no known size.

    An engine that keeps states in cache pages (`state_pages`) makes a block as many tokens as a state takes, pads both
    kinds of layers to equal groups, and gives each recurrent layer whole pages (vLLM kv_cache_utils and MambaSpec; the
    start-up log of a 48 + 16 layer model with blocks of 1568 tokens).
    """
    family = mla if arch.is_mla else full
    growing = family.bytes_per_token(arch, layout, kv, rules) if arch.n_attention_layers else 0.0
    state = state_bytes_per_layer(arch, rules) / layout.tensor
    stages = stage_share(arch.n_state_layers, layout.pipeline)
    if not rules.state_pages or not growing:
        return KvFootprint(growing, fixed_bytes=arch.n_state_layers * state * stages)
    attention, states = arch.n_attention_layers, arch.n_state_layers
    token = growing / stage_share(attention, layout.pipeline) / attention
    block = ceil(state / token / BLOCK_MULTIPLE_TOKENS) * BLOCK_MULTIPLE_TOKENS
    group = group_size(attention, states)
    pages = padded(states, group) * rules.state_pages
    return KvFootprint(
        growing * padded(attention, group) / attention,
        fixed_bytes=pages * block * token * stages,
        block_tokens=block,
    )


def state_bytes_per_layer(arch: Architecture, rules: KvRules) -> float:
    """Give the state of one sequence in one recurrent layer, in bytes before it is divided by tensor parallelism.

    The matrix of the recurrence (heads x key x value dimension, or inner x state dimension) in the width that the model
    or the engine asks for, and the window of the convolution in 16 bits: Mamba (arXiv 2312.00752 section 3.4), Mamba-2
    (arXiv 2405.21060), gated delta networks (arXiv 2412.06464). Lightning attention keeps heads x head_dim x head_dim
    (arXiv 2501.08313 section 2.2). Raises `UnknownArchitecture` when the shape does not tell.
    """
    width = arch.state_element_bytes or rules.state_bytes_per_element
    if arch.state_elements:
        return arch.state_elements * width + arch.convolution_elements * WIDE_BYTES
    if "lightning" in arch.attention:
        return arch.n_heads * arch.head_dim**2 * width
    needs = next((text for kind, text in _MISSING.items() if kind in arch.attention), "dimensions of the state")
    raise UnknownArchitecture(arch.name, f"recurrent state of {arch.attention!r} cannot be sized: missing {needs}")
