"""Multi-head latent attention: one compressed latent and one rotary key per token, whole on every tensor rank."""

from __future__ import annotations

from math import ceil

from planner.physics.footprint import AttentionParameters, KvFootprint, KvRules, head_share, stage_share
from planner.physics.formats import KvFormat
from planner.physics.types import Architecture, Layout

RANK = 20
INDEX_KEY_BYTES = 132.0
"""Sparse-index key per token and layer: 128 fp8 elements and one fp32 scale (DeepSeek-V3.2-Exp report)."""
SPARSE_SCALE_GROUP = 128
SPARSE_SCALE_BYTES = 4.0
UNCOMPRESSED_HEAD_DIM = 256
"""Engines without latent caches store keys and values of every head, padded to this width (vLLM before 0.7)."""
ROTARY_KEY_BYTES = 2.0
"""fp8 latent of sparse MLA: one fp32 scale per 128 elements, rotary key in 16 bits: 656 bytes (vLLM `fp8_ds_mla`)."""


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
    """Give the latent of all layers of the fullest stage, undivided by tensor parallelism.

    Decode context parallelism spreads the tokens over ranks that would else hold copies.
    """
    return KvFootprint(bytes_per_token(arch, layout, kv, rules))


def bytes_per_token(arch: Architecture, layout: Layout, kv: KvFormat, rules: KvRules) -> float:
    """Give the bytes of one token over all attention layers on the fullest GPU."""
    layers = arch.n_attention_layers
    if not rules.latents:
        heads = arch.n_heads * head_share(arch.n_heads, layout.tensor)
        return 2 * heads * UNCOMPRESSED_HEAD_DIM * kv.bytes_per_element * layers * stage_share(layers, layout.pipeline)
    unit = rules.latent_alignment_bytes
    latent = _latent_bytes(arch, kv)
    per_layer = ceil(latent / unit) * unit if unit > 1 else latent
    index = INDEX_KEY_BYTES if _is_sparse(arch) else 0.0
    return (per_layer + index) * layers * stage_share(layers, layout.pipeline) / layout.decode_context


def _latent_bytes(arch: Architecture, kv: KvFormat) -> float:
    if _is_sparse(arch) and kv.name == "fp8":
        scales = arch.kv_lora_rank / SPARSE_SCALE_GROUP * SPARSE_SCALE_BYTES
        return arch.kv_lora_rank + scales + arch.qk_rope_head_dim * ROTARY_KEY_BYTES
    return arch.kv_elements_per_token / arch.n_attention_layers * kv.bytes_per_element


def _is_sparse(arch: Architecture) -> bool:
    return "sparse index" in arch.attention
