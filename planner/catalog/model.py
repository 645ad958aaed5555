"""Model records as the catalog's `models/<org>/<name>.yaml` holds them, and the architecture the physics sees."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from planner.catalog.base import Count, Positive, Record, Text, Texts, Whole
from planner.physics.types import Architecture

BILLION = 1e9


class Attention(Record):
    """Attention of all layers; each field as in `Architecture`."""

    kind: Text
    heads: Whole
    kv_heads: Whole
    head_dim: Whole
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
    """Routed and shared experts of a mixture-of-experts model; `shared_d_ff` is the width of all shared ones."""

    count: Whole
    per_token: Whole
    d_ff: Whole
    layers: Whole
    shared: Count = 0
    shared_d_ff: Count = 0
    first_k_dense: Count = 0


class ParameterCount(Record):
    """The parameter counts used, the published figure, and what kind of figure that is.

    `shape_exception` says why the total cannot be recomputed from the shape within 1 %, `published_exception` why the
    total is further than 1 % from the published figure.
    """

    total: Whole
    active: Whole
    published_billions: Positive
    published_kind: Literal["checkpoint", "checkpoint-recalled", "rounded"]
    second_source: str = ""
    shape_exception: str = ""
    published_exception: str = ""


class ModelEntry(Record):
    """One LLM: its shape, parameter count, native format, longest sequence in tokens, and sources."""

    name: Text
    family: Text
    layers: Whole
    d_model: Whole
    d_ff: Count
    vocab: Whole
    tied_embeddings: bool
    gated_mlp: bool
    attention: Attention
    experts: Experts | None = None
    parameters: ParameterCount
    native_format: Text
    max_position: Whole
    sources: Annotated[Texts, Field(min_length=1)]
    read: Text
    notes: Texts = ()
    doubts: Texts = ()

    def architecture(self) -> Architecture:
        """Return the shape for the physics."""
        a, e, p = self.attention, self.experts, self.parameters
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
            n_params_total=p.total,
            n_params_active=p.active,
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
