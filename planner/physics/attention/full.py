"""Full attention with separate keys and values: multi-head, grouped-query, multi-query."""

from __future__ import annotations

from planner.physics.footprint import AttentionParameters, KvFootprint, KvRules, head_share, stage_share
from planner.physics.formats import KvFormat
from planner.physics.types import Architecture, Layout

RANK = 90


def matches(arch: Architecture) -> bool:
    """Accept every model that caches keys and values in all its attention layers and keeps no recurrent state."""
    return arch.n_attention_layers > 0 and arch.n_kv_heads > 0 and arch.n_state_layers == 0


def parameters(arch: Architecture) -> AttentionParameters:
    """Count query, output, key and value projections: 2 d h hd + 2 d h_kv hd per layer (arXiv 2305.13245)."""
    query_output = 2 * arch.d_model * arch.n_heads * arch.head_dim
    key_value = 2 * arch.d_model * arch.n_kv_heads * arch.head_dim
    return AttentionParameters(query_output * arch.n_attention_layers, key_value * arch.n_attention_layers)


def footprint(arch: Architecture, layout: Layout, kv: KvFormat, rules: KvRules) -> KvFootprint:
    """Give elements x bytes, split over KV heads and stages (KV heads are copied when tp > h_kv)."""
    return KvFootprint(bytes_per_token(arch, layout, kv, rules))


def bytes_per_token(arch: Architecture, layout: Layout, kv: KvFormat, rules: KvRules) -> float:
    """Give the bytes of one token over all attention layers on the fullest GPU.

    Ranks that would hold copies of the same heads share the tokens under decode context parallelism.
    """
    layers = arch.n_attention_layers
    heads = head_share(arch.n_kv_heads, layout.tensor) / layout.decode_context
    images = (layers + arch.n_cross_layers) / layers if rules.cross_layers else 1.0
    return arch.kv_elements_per_token * images * kv.bytes_per_element * heads * stage_share(layers, layout.pipeline)
