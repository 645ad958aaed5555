"""Weights: how the parameters divide into parts, and what the fullest GPU of a replica holds of them."""

from __future__ import annotations

from dataclasses import dataclass

from planner.physics.attention import family_of
from planner.physics.footprint import AttentionParameters, head_share, stage_share
from planner.physics.formats import component_bytes, component_formats
from planner.physics.parameters import GATED_MATRICES, PLAIN_MATRICES
from planner.physics.types import Architecture, Layout

WIDE_BYTES = 2.0
VOCAB_MULTIPLE = 64
"""Engines pad the vocabulary to this multiple before they shard it (vLLM vocab_parallel_embedding)."""
MXFP4_HIDDEN_MULTIPLE = 256
MXFP4_INTERMEDIATE_MULTIPLE = 128
"""Padding of MXFP4 expert matrices, inferred from start-up logs of gpt-oss-20b and -120b (width 2880)."""
NO_ROTARY_FAMILIES = frozenset({"opt", "mpt", "bloom", "jamba", "nemotron-h", "nemotron3"})
"""Learned positions, ALiBi, or none: no cosine and sine table."""


@dataclass(frozen=True, slots=True)
class ParameterSplit:
    """Parameters of one model by part; attention, dense, experts, head and embedding sum to `total`.

    `dense` is all that is none of the others: dense FFN, shared experts, biases, state layers, norms and routers.
    `head` is vocab x d, also when it is tied to the embedding; `embedding` is 0 then. `small` is the part of `dense`
    that is norms and routers: 16-bit in every format and copied on every rank.
    """

    attention: float
    dense: float
    experts: float
    head: float
    embedding: float
    total: float
    small: float


@dataclass(frozen=True, slots=True)
class WeightParts:
    """Bytes of weights on the fullest GPU by part.

    `rotary` are the tables of cosines and sines, copied on every rank; `vision` are image encoders, never quantised.
    """

    attention: float
    dense: float
    experts: float
    vocabulary: float
    small: float
    rotary: float
    vision: float = 0.0

    @property
    def total(self) -> float:
        """Bytes of all parts."""
        layers = self.attention + self.dense + self.experts + self.small
        return layers + self.vocabulary + self.rotary + self.vision


def split_parameters(arch: Architecture) -> ParameterSplit:
    """Divide the parameters of `arch` into parts that differ in format, sharding or traffic.

    P_h = vocab x d; P_x = L_m E (3 or 2) d moe_d_ff; P_a from the head shapes; the rest of the total is dense.
    Raises `UnknownArchitecture`.
    """
    matrices = GATED_MATRICES if arch.gated_mlp else PLAIN_MATRICES
    head = float(arch.vocab * arch.d_model)
    embedding = 0.0 if arch.tie_embeddings else head
    experts = float(arch.n_moe_layers * arch.n_experts * matrices * arch.d_model * arch.moe_d_ff)
    total = float(arch.n_params_total)
    rest = total - experts - head - embedding
    # Models whose layers differ in head shape (MiMo-V2) come out a little too large: the stated total wins.
    attention = min(float(family_of(arch).parameters(arch).total), rest)
    dense = rest - attention
    small = min(float(_norm_and_router_parameters(arch)), dense)
    return ParameterSplit(attention, dense, experts, head, embedding, total, small)


def weights_bytes(arch: Architecture, layout: Layout, fmt: str, absorbs: bool = False) -> float:
    """Give the bytes of weights on the fullest GPU of a replica, with copies, scales, padding and the rotary table.

    `absorbs` as in `weight_parts`. Raises `UnknownArchitecture` or `UnknownFormat`.
    """
    return weight_parts(arch, layout, fmt, absorbs).total


def weight_parts(arch: Architecture, layout: Layout, fmt: str, absorbs: bool = False) -> WeightParts:
    """Give the bytes of `weights_bytes` part by part. Raises the same.

    An engine that `absorbs` the up-projections of latent attention holds the products beside them (vLLM 0.7).
    """
    width = component_bytes(arch, fmt)
    split = split_parameters(arch)
    stage = stage_share(arch.n_layers, layout.pipeline)
    attention = _attention_bytes(family_of(arch).parameters(arch), layout, width["attention"], arch.n_kv_heads)
    if absorbs:
        attention += _absorbed_parameters(arch) * width["attention"] / layout.tensor
    return WeightParts(
        attention=attention * stage,
        dense=(split.dense - split.small) * width["dense"] / layout.tensor * stage,
        experts=_expert_bytes(arch, layout, split.experts * width["experts"], component_formats(arch, fmt)["experts"]),
        vocabulary=_vocabulary_bytes(arch, layout, split.head * width["head"], split.head * width["embedding"]),
        small=split.small * width["small"] * stage,
        rotary=_rotary_bytes(arch),
        vision=arch.vision_parameters * width["small"] / layout.tensor,
    )


def _absorbed_parameters(arch: Architecture) -> int:
    query_input = arch.q_lora_rank or arch.d_model
    return arch.n_attention_layers * arch.n_heads * arch.kv_lora_rank * (query_input + arch.d_model)


def _norm_and_router_parameters(arch: Architecture) -> int:
    norms = (2 * arch.n_layers + 1) * arch.d_model
    return norms + arch.n_moe_layers * arch.n_experts * arch.d_model


def _attention_bytes(parameters: AttentionParameters, layout: Layout, width: float, kv_heads: int) -> float:
    key_value = parameters.kv_heads * head_share(kv_heads, layout.tensor)
    stored = (parameters.sharded / layout.tensor + key_value + parameters.copied) * width
    # Absorbed MLA multiplies with a 16-bit up-projection; from a 16-bit checkpoint that is a view, else a second copy.
    return stored + (parameters.widened / layout.tensor * WIDE_BYTES if width < WIDE_BYTES else 0.0)


def _expert_bytes(arch: Architecture, layout: Layout, stored: float, fmt: str) -> float:
    if not arch.is_moe:
        return 0.0
    padding = _mxfp4_padding(arch, layout) if fmt == "mxfp4" else 1.0
    return stored * padding * _expert_share(arch, layout)


def _expert_share(arch: Architecture, layout: Layout) -> float:
    ranks = layout.tensor * layout.attention_data
    share = head_share(arch.n_experts, ranks) if layout.expert > 1 else 1.0 / ranks
    if arch.first_k_dense + arch.n_moe_layers < arch.n_layers:
        return share * stage_share(arch.n_layers, layout.pipeline)
    layers = -(-arch.n_layers // layout.pipeline)
    return share * min(layers, arch.n_moe_layers) / arch.n_moe_layers


def _mxfp4_padding(arch: Architecture, layout: Layout) -> float:
    slices = layout.tensor * layout.attention_data if layout.expert == 1 else 1
    inner = _padded(arch.moe_d_ff / slices, MXFP4_INTERMEDIATE_MULTIPLE) * slices / arch.moe_d_ff
    hidden = _padded(arch.d_model, MXFP4_HIDDEN_MULTIPLE) / arch.d_model
    # The gate and up matrices are padded both ways, the down matrix in its output only.
    up_share = 2 / 3 if arch.gated_mlp else 1 / 2
    return hidden * (up_share * inner + 1 - up_share)


def _padded(size: float, multiple: int) -> float:
    return -(-size // multiple) * multiple


def _vocabulary_bytes(arch: Architecture, layout: Layout, head: float, embedding: float) -> float:
    shard = _padded(arch.vocab, VOCAB_MULTIPLE) / arch.vocab / layout.tensor
    if layout.pipeline > 1:
        return max(head, embedding) * shard
    return (head if arch.tie_embeddings else head + embedding) * shard


def _rotary_bytes(arch: Architecture) -> float:
    if arch.family in NO_ROTARY_FAMILIES:
        return 0.0
    rows = arch.rotary_positions or arch.max_position
    return rows * (arch.qk_rope_head_dim or arch.head_dim) * WIDE_BYTES
