"""Multi-head latent attention: one compressed latent and one rotary key per token, whole on every tensor rank."""

from __future__ import annotations

from math import ceil

from planner.physics.footprint import AttentionParameters, KvFootprint, KvRules, stage_share
from planner.physics.formats import KvFormat
from planner.physics.types import Architecture, Layout

RANK = 20
INDEX_KEY_BYTES = 132.0
"""Sparse-index key per token and layer: 128 fp8 elements and one fp32 scale (DeepSeek-V3.2 technical report)."""


def matches(arch: Architecture) -> bool:
    """Accept models that cache a latent."""
    return arch.is_mla


def parameters(arch: Architecture) -> AttentionParameters:
    """Count the projections of arXiv 2405.04434 section 2.1; both down-projections are copied on every rank."""
    heads, rank = arch.n_heads, arch.kv_lora_rank
    query_width = heads * (arch.qk_nope_head_dim + arch.qk_rope_head_dim)
    up = rank * heads * (arch.qk_nope_head_dim + arch.v_head_dim)
    sharded = (arch.q_lora_rank or arch.d_model) * query_width + up + heads * arch.v_head_dim * arch.d_model
    copied = arch.d_model * (arch.q_lora_rank + rank + arch.qk_rope_head_dim)
    layers = arch.n_attention_layers
    return AttentionParameters(sharded * layers, copied=copied * layers, widened=up * layers)


def footprint(arch: Architecture, layout: Layout, kv: KvFormat, rules: KvRules) -> KvFootprint:
    """Give the latent of all layers of the fullest stage, undivided by tensor parallelism."""
    layers = arch.n_attention_layers
    latent = arch.kv_elements_per_token / layers * kv.bytes_per_element
    aligned = ceil(latent / rules.latent_alignment_bytes) * rules.latent_alignment_bytes
    per_layer = (aligned if rules.latent_alignment_bytes > 1 else latent) + _index_bytes(arch)
    return KvFootprint(per_layer * layers * stage_share(layers, layout.pipeline))


def _index_bytes(arch: Architecture) -> float:
    return INDEX_KEY_BYTES if "sparse index" in arch.attention else 0.0
