"""Model records as the catalog's `models/<org>/<name>.yaml` holds them, and the architecture the physics sees."""

from __future__ import annotations

from planner.catalog.base import Count, Positive, Record, Text
from planner.physics.types import Architecture


class Attention(Record):
    """Attention of all layers; elements and heads as in `Architecture`."""

    kind: Text
    heads: int
    kv_heads: int
    head_dim: int
    layers: Count
    kv_elements_per_token: Count
    bias: bool = False
    qk_norm: bool = False
    local_layers: Count = 0
    sliding_window: Count = 0
    pattern: str = ""
    state_layers: Count = 0
    kv_lora_rank: Count = 0
    q_lora_rank: Count = 0
    qk_rope_head_dim: Count = 0
    qk_nope_head_dim: Count = 0
    v_head_dim: Count = 0


class Experts(Record):
    """The routed and shared experts of a mixture-of-experts model."""

    count: int
    per_token: int
    d_ff: int
    shared: Count = 0
    shared_d_ff: Count = 0
    first_k_dense: Count = 0
    layers: int


class ParameterCount(Record):
    """Parameters: the count used, the published figure and what kind of figure that is.

    `shape_exception` is the reason why the count cannot be recomputed from the shape fields within 1 %; without one
    `catalog check` requires that it can.
    """

    total: int
    active: int
    published_billions: Positive
    published_kind: Text
    second_source: str = ""
    shape_exception: str = ""


class ModelEntry(Record):
    """One LLM: its shape, parameter count, native format, longest sequence and sources."""

    name: Text
    family: Text
    evidence_family: str = ""
    layers: int
    d_model: int
    d_ff: Count
    vocab: int
    tied_embeddings: bool
    gated_mlp: bool
    attention: Attention
    experts: Experts | None = None
    parameters: ParameterCount
    native_format: Text
    max_position: int
    sources: tuple[Text, ...]
    read: Text
    notes: tuple[Text, ...] = ()
    doubts: tuple[Text, ...] = ()

    def architecture(self) -> Architecture:
        """Return the shape for the physics."""
        a, e = self.attention, self.experts
        return Architecture(
            name=self.name,
            family=self.family,
            n_layers=self.layers,
            d_model=self.d_model,
            n_heads=a.heads,
            n_kv_heads=a.kv_heads,
            head_dim=a.head_dim,
            d_ff=self.d_ff,
            vocab=self.vocab,
            tie_embeddings=self.tied_embeddings,
            gated_mlp=self.gated_mlp,
            attention=a.kind,
            n_attention_layers=a.layers,
            kv_elements_per_token=a.kv_elements_per_token,
            n_params_total=self.parameters.total,
            n_params_active=self.parameters.active,
            native_format=self.native_format,
            max_position=self.max_position,
            n_local_layers=a.local_layers,
            sliding_window=a.sliding_window,
            n_state_layers=a.state_layers,
            kv_lora_rank=a.kv_lora_rank,
            q_lora_rank=a.q_lora_rank,
            qk_rope_head_dim=a.qk_rope_head_dim,
            qk_nope_head_dim=a.qk_nope_head_dim,
            v_head_dim=a.v_head_dim,
            n_experts=e.count if e else 0,
            experts_per_token=e.per_token if e else 0,
            moe_d_ff=e.d_ff if e else 0,
            shared_d_ff=e.shared_d_ff if e else 0,
            first_k_dense=e.first_k_dense if e else 0,
            n_moe_layers=e.layers if e else 0,
        )
