"""Model records as the catalog's `models/<org>/<name>.yaml` holds them, and the architecture the physics sees."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from planner.catalog.base import Count, NotNegative, Positive, Record, Text, Texts, Whole
from planner.physics.types import Architecture

BILLION = 1e9
Component = Literal["attention", "dense", "experts", "head", "embedding", "small"]


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
    local_kv_elements: Count = 0
    sliding_window: Count = 0
    cross_layers: Count = 0
    pattern: str = ""
    state_layers: Count = 0
    kv_lora_rank: Count = 0
    q_lora_rank: Count = 0
    qk_rope_head_dim: Count = 0
    qk_nope_head_dim: Count = 0
    v_head_dim: Count = 0


class RecurrentState(Record):
    """State of one sequence in one recurrent layer: elements of the matrix (`element_bytes` wide) and of the convolution."""

    elements: Whole
    convolution_elements: Count = 0
    element_bytes: Literal[0, 2, 4] = 0


class Vision(Record):
    """Image encoder with its projector: parameters, width, and the patches of the largest image (0: images are small)."""

    parameters: Whole
    width: Whole
    patches: Count = 0


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
    """The parameter counts used, the published figure, and what kind of figure that is (`counted`: from a config).

    `shape_exception` says why the total cannot be recomputed from the shape within 1 %, `published_exception` why the
    total is further than 1 % from the published figure.
    """

    total: Whole
    active: Whole
    published_billions: Positive
    published_kind: Literal["checkpoint", "checkpoint-recalled", "rounded", "counted"]
    second_source: str = ""
    shape_exception: str = ""
    published_exception: str = ""


class ModelEntry(Record):
    """One LLM: its shape, parameter count, native format, longest sequence in tokens, and sources.

    `parameters` are those of the text model; those of `vision` come on top and are never quantised. `stored` gives,
    by component, the share of parameters in each format where a checkpoint is not uniform. A quantised checkpoint
    names the model that it was made from as `base`, whose format is `original_format`; the base names those of its
    `builds` whose stored formats hold for it too, by weight format.
    """

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
    state: RecurrentState | None = None
    parameters: ParameterCount
    native_format: Text
    original_format: str = ""
    base: str = ""
    builds: dict[Text, Text] = Field(default_factory=dict)
    stored: dict[Component, dict[Text, NotNegative]] = Field(default_factory=dict)
    max_position: Whole
    rotary_positions: Count = 0
    vision: Vision | None = None
    sources: Annotated[Texts, Field(min_length=1)]
    read: Text
    notes: Texts = ()
    doubts: Texts = ()

    def architecture(self) -> Architecture:
        """Return the shape for the physics."""
        a, e, p = self.attention, self.experts, self.parameters
        state, vision = self.state, self.vision
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
            state_elements=state.elements if state else 0,
            convolution_elements=state.convolution_elements if state else 0,
            state_element_bytes=state.element_bytes if state else 0,
            n_cross_layers=a.cross_layers,
            local_kv_elements=a.local_kv_elements,
            rotary_positions=self.rotary_positions,
            vision_parameters=vision.parameters if vision else 0,
            vision_width=vision.width if vision else 0,
            vision_patches=vision.patches if vision else 0,
            stored=tuple(
                (self.native_format, component, fmt, share)
                for component in sorted(self.stored)
                for fmt, share in sorted(self.stored[component].items())
            ),
            original_format=self.original_format,
        )
