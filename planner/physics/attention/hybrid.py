"""Attention layers beside layers with a recurrent state of fixed size (linear attention, state-space models)."""

from __future__ import annotations

from planner.physics.attention import full
from planner.physics.footprint import (
    AttentionParameters,
    KvFootprint,
    KvRules,
    UnknownArchitecture,
    stage_share,
)
from planner.physics.formats import KvFormat
from planner.physics.types import Architecture, Layout

RANK = 10
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
    return full.parameters(arch)


def footprint(arch: Architecture, layout: Layout, kv: KvFormat, rules: KvRules) -> KvFootprint:
    """Give the growing layers and the fixed state. Raises `UnknownArchitecture` when the state has no known size."""
    state = state_elements(arch) * rules.state_bytes_per_element / layout.tensor
    growing = full.bytes_per_token(arch, layout, kv)
    return KvFootprint(growing, fixed_bytes=state * stage_share(arch.n_state_layers, layout.pipeline))


def state_elements(arch: Architecture) -> float:
    """Give the state of one sequence over all state layers, in elements.

    Lightning attention keeps heads x head_dim x head_dim per layer (arXiv 2501.08313 section 2.2). Other states need
    dimensions that the shape does not hold: raises `UnknownArchitecture`.
    """
    if "lightning" in arch.attention:
        return float(arch.n_state_layers * arch.n_heads * arch.head_dim**2)
    needs = next((text for kind, text in _MISSING.items() if kind in arch.attention), "dimensions of the state")
    raise UnknownArchitecture(arch.name, f"recurrent state of {arch.attention!r} cannot be sized: missing {needs}")
