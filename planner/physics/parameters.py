"""Parameter count of a decoder-only LLM from its shape. Biases, position tables and multi-token heads are left out."""

from __future__ import annotations

from planner.physics.types import Architecture

GATED_MATRICES = 3
PLAIN_MATRICES = 2


def count_parameters(arch: Architecture) -> int:
    """Count the parameters that the shape fields imply: embeddings, attention, feed-forward, experts, norms.

    Layers with recurrent state, and models whose layers differ in shape, are not described by the fields: their count
    comes out too low or too high, and the catalog records them as exceptions.
    """
    embeddings = arch.vocab * arch.d_model * (1 if arch.tie_embeddings else 2)
    norms = (2 * arch.n_layers + 1) * arch.d_model
    attention = arch.n_attention_layers * attention_parameters(arch)
    return embeddings + norms + attention + feed_forward_parameters(arch)


def attention_parameters(arch: Architecture) -> int:
    """Count the projections of one attention layer (MLA: DeepSeek-V2 report, arXiv 2405.04434, section 2.1)."""
    if not arch.is_mla:
        return arch.d_model * arch.head_dim * (2 * arch.n_heads + 2 * arch.n_kv_heads)
    query_width = arch.n_heads * (arch.qk_nope_head_dim + arch.qk_rope_head_dim)
    if arch.q_lora_rank:
        query = arch.q_lora_rank * (arch.d_model + query_width)
    else:
        query = arch.d_model * query_width
    latent = arch.d_model * (arch.kv_lora_rank + arch.qk_rope_head_dim)
    expanded = arch.kv_lora_rank * arch.n_heads * (arch.qk_nope_head_dim + arch.v_head_dim)
    return query + latent + expanded + arch.n_heads * arch.v_head_dim * arch.d_model


def feed_forward_parameters(arch: Architecture) -> int:
    """Count the dense feed-forward layers, routed and shared experts and routers of all layers."""
    matrices = GATED_MATRICES if arch.gated_mlp else PLAIN_MATRICES
    per_width = matrices * arch.d_model
    dense = (arch.n_layers - arch.n_moe_layers) * per_width * arch.d_ff
    per_moe_layer = per_width * (arch.n_experts * arch.moe_d_ff + arch.shared_d_ff) + arch.d_model * arch.n_experts
    return dense + arch.n_moe_layers * per_moe_layer
