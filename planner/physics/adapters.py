"""What an engine keeps in memory beside the model: LoRA adapters in slots, and the draft model of speculative decoding."""

from __future__ import annotations

from dataclasses import dataclass

from planner.physics.budget import Extras
from planner.physics.footprint import UnknownArchitecture
from planner.physics.kv import kv_footprint
from planner.physics.parameters import GATED_MATRICES, PLAIN_MATRICES
from planner.physics.types import Architecture, Layout
from planner.physics.weights import weights_bytes

ADAPTER_BYTES = 2.0
"""Adapters are held in 16 bits whatever the model is stored in."""
TARGETS = ("q", "k", "v", "o", "gate", "up", "down")
"""Projections that can carry an adapter."""


@dataclass(frozen=True, slots=True)
class Lora:
    """Resident adapters: `max_loras` slots of `rank`, on the projections `targets`."""

    max_loras: int
    rank: int
    targets: tuple[str, ...] = TARGETS


def lora_bytes(arch: Architecture, layout: Layout, lora: Lora) -> float:
    """Give the bytes of all adapter slots on one GPU.

    A projection from d_in to d_out adds rank x (d_in + d_out) (LoRA, arXiv 2106.09685 section 4.1). Of its two factors
    the one that follows the sharded side of the projection is divided by tensor parallelism, the other copied on every
    rank (vLLM without fully sharded LoRA). Slots are allocated at start-up, used or not. Experts carry one adapter each.
    Raises `UnknownArchitecture` for latent attention and recurrent layers, whose projections have no such adapters here.
    """
    if arch.is_mla or arch.n_state_layers:
        raise UnknownArchitecture(arch.name, "adapters on latent attention or recurrent layers are not modelled")
    total = sum(_parameters(arch, layout, target) for target in lora.targets)
    stages = -(-arch.n_layers // layout.pipeline) / arch.n_layers
    return lora.max_loras * lora.rank * total * stages * ADAPTER_BYTES


def _parameters(arch: Architecture, layout: Layout, target: str) -> float:
    """Give d_in + d_out per rank over all layers that have the projection."""
    inner, key = arch.n_heads * arch.head_dim, arch.n_kv_heads * arch.head_dim
    if target in ("q", "k", "v", "o"):
        other = {"q": inner, "o": inner}.get(target, key)
        return arch.n_attention_layers * _sides(arch.d_model, other, layout.tensor)
    matrices = GATED_MATRICES if arch.gated_mlp else PLAIN_MATRICES
    if target == "gate" and matrices == PLAIN_MATRICES:
        return 0.0
    dense = (arch.n_layers - arch.n_moe_layers) * _sides(arch.d_model, arch.d_ff, layout.tensor)
    experts = arch.n_moe_layers * arch.n_experts * _sides(arch.d_model, arch.moe_d_ff, layout.tensor)
    return dense + experts


def _sides(width: int, inner: int, tensor: int) -> float:
    """The inner side of a projection is sharded whichever way it points; the model's width is copied."""
    return width + inner / tensor


def draft_extras(draft: Architecture, layout: Layout, weights: str, kv: str) -> Extras:
    """Give what a draft model holds on one GPU, sharded as the model that it drafts for: weights and cache per token.

    Raises `UnknownArchitecture` or `UnknownFormat`.
    """
    cache = kv_footprint(draft, layout, kv)
    return Extras(weights_bytes(draft, layout, weights), cache.global_bytes_per_token + cache.local_bytes_per_token)
