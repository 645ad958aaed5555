"""Inputs of the physics: a model's shape, a device, a layout. Base units only: bytes, seconds, FLOP/s."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Architecture:
    """Shape of one LLM, as its Hugging Face `config.json` states it. Counts are per model unless a name says otherwise.

    `kv_elements_per_token` sums over all attention layers that cache keys and values (MLA: latent + rope part).
    `n_local_layers` of the `n_attention_layers` attend only `sliding_window` tokens back and cache `local_kv_elements`
    of the elements (0: as many per layer as the others); `n_state_layers` keep a
    recurrent state of fixed size instead of keys and values: `state_elements` in the matrix that the recurrence updates,
    `convolution_elements` in the window of its convolution, both per layer and sequence, the matrix stored in
    `state_element_bytes` (0: as wide as the weights compute). `n_cross_layers` attend to an image and are given cache
    blocks like the others. `rotary_positions` counts the rows of all cosine and sine tables (0: one of `max_position`),
    `vision_parameters` those of image encoders and their projector, not part of the totals; `vision_width` is theirs and
    `vision_patches` what the largest image has (0: images are small). `stored` lists
    (checkpoint format, component, format, share of its parameters) where checkpoints are not uniform, and
    `original_format` is that of the model that such a checkpoint was made from. MoE fields are 0 for dense models.
    """

    name: str
    family: str
    n_layers: int
    d_model: int
    n_heads: int
    n_kv_heads: int
    head_dim: int
    d_ff: int
    vocab: int
    tie_embeddings: bool
    gated_mlp: bool
    attention: str
    n_attention_layers: int
    kv_elements_per_token: int
    n_params_total: int
    n_params_active: int
    native_format: str
    max_position: int
    n_local_layers: int = 0
    sliding_window: int = 0
    n_state_layers: int = 0
    kv_lora_rank: int = 0
    q_lora_rank: int = 0
    qk_rope_head_dim: int = 0
    qk_nope_head_dim: int = 0
    v_head_dim: int = 0
    n_experts: int = 0
    experts_per_token: int = 0
    moe_d_ff: int = 0
    shared_d_ff: int = 0
    first_k_dense: int = 0
    n_moe_layers: int = 0
    state_elements: int = 0
    convolution_elements: int = 0
    state_element_bytes: int = 0
    n_cross_layers: int = 0
    local_kv_elements: int = 0
    rotary_positions: int = 0
    vision_parameters: int = 0
    vision_width: int = 0
    vision_patches: int = 0
    stored: tuple[tuple[str, str, str, float], ...] = ()
    original_format: str = ""

    @property
    def is_mla(self) -> bool:
        """Tell whether keys and values are cached as one compressed latent per token."""
        return self.kv_lora_rank > 0

    @property
    def kv_elements_of_local_layers(self) -> float:
        """Elements per token that all local layers together cache."""
        even = self.kv_elements_per_token * self.n_local_layers / max(self.n_attention_layers, 1)
        return float(self.local_kv_elements) or even

    @property
    def is_moe(self) -> bool:
        """Tell whether some layers route tokens to experts."""
        return self.n_experts > 0


@dataclass(frozen=True, slots=True)
class Device:
    """One accelerator. Rates are dense datasheet peaks in FLOP/s by format (`bf16` always; `fp8`, `fp4`, `int8` when native).

    `usable_bytes` is what software sees, not the label. `link_class` is nvlink, xgmi or pcie; `link_bytes_per_s` is one way.
    `architecture_class` names the group that shares efficiency constants (Hopper, Ada, ...), empty when unknown.
    """

    name: str
    vendor: str
    architecture_class: str
    usable_bytes: float
    bandwidth_bytes_per_s: float
    flops: dict[str, float]
    link_class: str
    link_bytes_per_s: float
    scale_up_gpus: int
    pcie_bytes_per_s: float
    tdp_w: float = 0.0


@dataclass(frozen=True, slots=True)
class Layout:
    """How one replica is spread over GPUs. `expert` parallelism covers the same GPUs, so it never multiplies them.

    `decode_context` spreads the tokens of a cache that tensor ranks would copy over that many of them (it divides
    `tensor`). `node_gpus` is the number of GPUs of the replica inside one node; a smaller value than `gpus` means that the
    replica crosses nodes.
    """

    tensor: int = 1
    pipeline: int = 1
    expert: int = 1
    attention_data: int = 1
    node_gpus: int = field(default=0)
    decode_context: int = 1

    @property
    def gpus(self) -> int:
        """GPUs of one replica."""
        return self.tensor * self.pipeline * self.attention_data

    @property
    def crosses_nodes(self) -> bool:
        """Tell whether the replica needs more than one node."""
        return 0 < self.node_gpus < self.gpus
