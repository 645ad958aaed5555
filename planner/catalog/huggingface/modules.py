"""Every matrix of a language model by the name it has in the checkpoint, with its parameters: what quantisation names."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from planner.catalog.huggingface.families import Family
from planner.catalog.huggingface.fields import LARGEST_LENGTH, LARGEST_VOCABULARY, Fields
from planner.catalog.huggingface.layers import FeedForward, Layer, Mixer, has_experts, layers_of

LARGEST_HEAD_DIM = 8192
LARGEST_HEADS = 65_536


@dataclass(frozen=True, slots=True)
class Module:
    """One linear module, or all experts of a layer as one: its name below the layers, component and parameters."""

    name: str
    component: str
    parameters: int


@dataclass(frozen=True, slots=True)
class Heads:
    """Head shape of one kind of attention layer."""

    heads: int
    kv_heads: int
    head_dim: int


@dataclass(frozen=True, slots=True)
class Latent:
    """Dimensions of multi-head latent attention; `query_rank` is 0 without a compressed query."""

    rank: int
    query_rank: int
    rope_dim: int
    nope_dim: int
    value_dim: int


@dataclass(frozen=True, slots=True)
class State:
    """State and projections of one recurrent layer, in elements and parameters."""

    kind: str
    elements: int
    convolution_elements: int
    parameters: int
    element_bytes: int = 0


@dataclass(frozen=True, slots=True)
class ExpertShape:
    """Routed and shared experts; `shared_width` is that of all shared experts together."""

    count: int
    per_token: int
    width: int
    shared: int
    shared_width: int


@dataclass(frozen=True, slots=True)
class TextShape:
    """A language model as its config describes it."""

    layers: tuple[Layer, ...]
    width: int
    ffn_width: int
    vocabulary: int
    tied: bool
    family: Family
    attention: Heads
    global_attention: Heads
    window: int
    latent: Latent | None
    state: State | None
    experts: ExpertShape | None
    biased: str
    qk_norm: bool
    output_gate: bool
    shares_keys: bool
    index_parameters: int

    def layers_with(self, *mixers: Mixer) -> int:
        """Count the layers that mix in one of these ways."""
        return sum(layer.mixer in mixers for layer in self.layers)


def text_shape(fields: Fields, family: Family) -> TextShape:
    """Read the shape. What is missing or not known is added to the problems of `fields`."""
    layers = layers_of(fields, family)
    width = fields.count("hidden_size", "d_model", "n_embd", "dim")
    heads = _heads(fields, width)
    needs_state = any(layer.mixer is Mixer.STATE for layer in layers)
    return TextShape(
        layers=tuple(layers),
        width=width,
        ffn_width=_ffn_width(fields, layers, width),
        vocabulary=fields.count("vocab_size", "padded_vocab_size", most=LARGEST_VOCABULARY),
        tied=fields.flag("tie_word_embeddings", family.ties),
        family=family,
        attention=heads,
        global_attention=_global_heads(fields, heads),
        window=_window(fields),
        latent=_latent(fields),
        state=_state(fields, width) if needs_state else None,
        experts=_experts(fields) if has_experts(fields) else None,
        biased=_biases(fields, family),
        qk_norm=family.qk_norm or fields.flag("use_qk_norm"),
        output_gate=fields.flag("attn_output_gate", family.name == "qwen3-next"),
        shares_keys=fields.flag("attention_k_eq_v"),
        index_parameters=_index_parameters(fields, width),
    )


def _heads(fields: Fields, width: int) -> Heads:
    before = len(fields.problems)
    heads = fields.count("num_attention_heads", "n_head", "num_heads", "n_heads", most=LARGEST_HEADS)
    known = heads if len(fields.problems) == before else 0
    inner = fields.section("attn_config")
    if fields.raw("multi_query_attention") is False:
        kv_heads = heads
    elif inner.has("kv_n_heads"):
        kv_heads = _kv_heads(inner, known, heads, "kv_n_heads")
    else:
        names = ("num_key_value_heads", "multi_query_group_num", "num_kv_heads", "n_head_kv")
        kv_heads = _kv_heads(fields, known, heads, *names)
    return Heads(heads, kv_heads, _head_dim(fields, width, heads))


def _kv_heads(fields: Fields, heads: int, default: int, *names: str) -> int:
    """Return the key-value heads, each of which serves as many of the attention heads; `heads` is 0 if not known."""
    kv_heads = fields.count(*names, default=default)
    if heads % kv_heads:
        name = fields.named(*names)
        fields.problems.append(f"`{name}` must divide the {heads} attention heads, which {kv_heads} does not")
    return kv_heads


def _head_dim(fields: Fields, width: int, heads: int) -> int:
    """Return the dimension of a head; without one the width is split among the heads, unless attention is latent."""
    names = ("head_dim", "attention_head_dim", "kv_channels")
    if width > 1 and width % heads and not fields.has(*names, "kv_lora_rank"):
        fields.problems.append(f"`head_dim` is missing, and {heads} attention heads do not divide a width of {width}")
    return fields.count(*names, default=max(width // heads, 1), most=LARGEST_HEAD_DIM)


def _global_heads(fields: Fields, local: Heads) -> Heads:
    own = fields.has("num_global_key_value_heads")
    return Heads(
        local.heads,
        _kv_heads(fields, local.heads, 1, "num_global_key_value_heads") if own else local.kv_heads,
        fields.count("global_head_dim", default=local.head_dim, most=LARGEST_HEAD_DIM),
    )


def _ffn_width(fields: Fields, layers: list[Layer], width: int) -> int:
    names = ["intermediate_size", "ffn_hidden_size", "n_inner", "ffn_dim", "hidden_dim"]
    if fields.has("intermediate_size_mlp"):
        names.insert(0, "intermediate_size_mlp")
    dense = any(layer.feed_forward is FeedForward.DENSE for layer in layers)
    if dense or not (layers or has_experts(fields)):
        return fields.count(*names, default=4 * width if fields.has("n_embd") else None)
    return fields.count(*names, default=0, least=0)


def _window(fields: Fields) -> int:
    return fields.count(
        "sliding_window", "attention_chunk_size", "window_size", default=0, least=0, most=LARGEST_LENGTH
    )


def _latent(fields: Fields) -> Latent | None:
    if not fields.has("kv_lora_rank"):
        return None
    return Latent(
        fields.count("kv_lora_rank"),
        fields.count("q_lora_rank", default=0, least=0),
        fields.count("qk_rope_head_dim"),
        fields.count("qk_nope_head_dim"),
        fields.count("v_head_dim"),
    )


def _biases(fields: Fields, family: Family) -> str:
    for name in ("attention_bias", "qkv_bias", "add_qkv_bias", "use_qkv_bias"):
        if fields.has(name):
            return (family.bias if family.bias != "none" else "qkv") if fields.flag(name) else "none"
    return family.bias


def _index_parameters(fields: Fields, width: int) -> int:
    """Parameters per layer of the index of sparse attention: query, key and head weights (DeepSeek-V3.2-Exp report)."""
    if not fields.has("index_n_heads"):
        return 0
    heads, dim = fields.count("index_n_heads"), fields.count("index_head_dim")
    rank = fields.count("q_lora_rank", default=width)
    return rank * heads * dim + width * dim + width * heads


def _experts(fields: Fields) -> ExpertShape:
    count = fields.count("n_routed_experts", "num_local_experts", "num_experts", "moe_num_experts", "n_experts")
    width = fields.count("moe_intermediate_size", "expert_intermediate_size", "intermediate_size", "ffn_hidden_size")
    shared = fields.count("n_shared_experts", "num_shared_experts", "moe_num_shared_experts", default=0, least=0)
    shared_width = fields.count(
        "shared_expert_intermediate_size",
        "moe_shared_expert_intermediate_size",
        "shared_intermediate_size",
        default=shared * width,
        least=0,
    )
    if fields.text("model_type") in {"llama4", "llama4_text"}:
        shared, shared_width = 1, width
    if fields.flag("enable_moe_block"):
        shared, shared_width = 1, fields.count("intermediate_size")
    return ExpertShape(
        count,
        _experts_per_token(fields, count),
        width,
        max(shared, 1 if shared_width else 0),
        shared_width,
    )


def _experts_per_token(fields: Fields, count: int) -> int:
    names = ("num_experts_per_tok", "num_experts_per_token", "top_k_experts", "moe_top_k", "moe_topk", "moe_k")
    return fields.count(*names, most=count)


def _state(fields: Fields, width: int) -> State | None:
    if fields.has("linear_num_value_heads"):
        return _gated_delta(fields, width)
    if fields.has("linear_attn_config"):
        return _kimi_delta(fields.section("linear_attn_config"), width)
    if fields.has("mamba_num_heads", "mamba_n_heads"):
        return _mamba2(fields, width)
    if fields.has("mamba_d_state"):
        return _mamba(fields, width)
    if fields.has("attn_type_list"):
        return _lightning(fields, width)
    fields.problems.append("the dimensions of the recurrent state are missing (linear_*, mamba_* or ssm_* fields)")
    return None


def _state_bytes(fields: Fields) -> int:
    return {"float32": 4, "bfloat16": 2, "float16": 2}.get(fields.text("mamba_ssm_dtype"), 0)


def _gated_delta(fields: Fields, width: int) -> State:
    """Gated delta network (arXiv 2412.06464): queries and keys of one width, values of another, a short convolution."""
    value_heads = fields.count("linear_num_value_heads")
    key = fields.count("linear_num_key_heads") * fields.count("linear_key_head_dim")
    value = value_heads * fields.count("linear_value_head_dim")
    kernel = fields.count("linear_conv_kernel_dim")
    channels = 2 * key + value
    projections = width * (2 * key + 2 * value + 2 * value_heads) + value * width + channels * kernel
    return State(
        "gated-delta",
        value_heads * fields.count("linear_key_head_dim") * fields.count("linear_value_head_dim"),
        channels * (kernel - 1),
        projections,
        _state_bytes(fields) or 4,
    )


def _kimi_delta(inner: Fields, width: int) -> State:
    """Kimi delta attention: as gated delta, with a gate of low rank for each key channel (arXiv 2510.26692)."""
    heads, dim = inner.count("num_heads"), inner.count("head_dim")
    kernel = inner.count("short_conv_kernel_size")
    channels = 3 * heads * dim
    projections = width * 4 * heads * dim + 2 * (width * dim + dim * heads * dim) + width * heads + channels * kernel
    return State("kimi-delta", heads * dim * dim, channels * (kernel - 1), projections, 4)


def _mamba2(fields: Fields, width: int) -> State:
    """Mamba-2 (arXiv 2405.21060): heads x head dimension x state dimension."""
    heads = fields.count("mamba_num_heads", "mamba_n_heads")
    inner = heads * fields.count("mamba_head_dim", "mamba_d_head")
    size = fields.count("ssm_state_size", "mamba_d_state")
    groups = fields.count("n_groups", "mamba_n_groups", default=1)
    kernel = fields.count("conv_kernel", "mamba_d_conv")
    channels = inner + 2 * groups * size
    projections = width * (2 * inner + 2 * groups * size + heads) + inner * width + channels * kernel
    return State("Mamba2", inner * size, channels * (kernel - 1), projections, _state_bytes(fields))


def _mamba(fields: Fields, width: int) -> State:
    """Mamba (arXiv 2312.00752): inner x state dimension."""
    inner = fields.count("mamba_expand") * width
    size, kernel = fields.count("mamba_d_state"), fields.count("mamba_d_conv")
    rank = fields.count("mamba_dt_rank", default=-(-width // 16))
    projections = width * 2 * inner + inner * (kernel + rank + 2 * size) + rank * inner + inner * (size + width)
    return State("Mamba", inner * size, inner * (kernel - 1), projections)


def _lightning(fields: Fields, width: int) -> State:
    """Lightning attention (arXiv 2501.08313 section 2.2): heads x head dimension squared; output gate and projection."""
    heads = _heads(fields, width)
    inner = heads.heads * heads.head_dim
    return State("lightning linear", heads.heads * heads.head_dim**2, 0, width * inner * 5)


def modules_of(shape: TextShape) -> Iterator[Module]:
    """Yield every linear module of the layers. Norms, routers and embeddings are not among them."""
    for index, layer in enumerate(shape.layers):
        prefix = f"layers.{index}"
        yield from _mixer_modules(shape, layer, prefix)
        yield from _feed_forward_modules(shape, layer, prefix)


def _mixer_modules(shape: TextShape, layer: Layer, prefix: str) -> Iterator[Module]:
    if layer.mixer is Mixer.NONE:
        return
    if layer.mixer is Mixer.STATE:
        size = shape.state.parameters if shape.state else 0
        # The input projection is about three quarters of a recurrent layer; formats rarely differ between the two.
        yield Module(f"{prefix}.linear_attn.in_proj_qkv", "dense", size - size // 4)
        yield Module(f"{prefix}.linear_attn.out_proj", "dense", size // 4)
        return
    name = "cross_attn" if layer.mixer is Mixer.CROSS else "self_attn"
    if shape.latent is not None:
        yield from _latent_modules(shape, f"{prefix}.{name}")
        return
    heads = shape.attention if layer.mixer is Mixer.LOCAL else shape.global_attention
    query = shape.width * heads.heads * heads.head_dim
    key = shape.width * heads.kv_heads * heads.head_dim
    gate = 2 if shape.output_gate else 1
    yield Module(f"{prefix}.{name}.q_proj", "attention", query * gate)
    yield Module(f"{prefix}.{name}.k_proj", "attention", key)
    if not (shape.shares_keys and layer.mixer is Mixer.FULL):
        yield Module(f"{prefix}.{name}.v_proj", "attention", key)
    yield Module(f"{prefix}.{name}.o_proj", "attention", query)


def _latent_modules(shape: TextShape, prefix: str) -> Iterator[Module]:
    latent, heads, width = shape.latent, shape.attention.heads, shape.width
    assert latent is not None
    query = heads * (latent.nope_dim + latent.rope_dim)
    if latent.query_rank:
        yield Module(f"{prefix}.q_a_proj", "attention", width * latent.query_rank)
        yield Module(f"{prefix}.q_b_proj", "attention", latent.query_rank * query)
    else:
        yield Module(f"{prefix}.q_proj", "attention", width * query)
    yield Module(f"{prefix}.kv_a_proj_with_mqa", "attention", width * (latent.rank + latent.rope_dim))
    yield Module(f"{prefix}.kv_b_proj", "attention", latent.rank * heads * (latent.nope_dim + latent.value_dim))
    yield Module(f"{prefix}.o_proj", "attention", heads * latent.value_dim * width)
    if shape.index_parameters:
        yield Module(f"{prefix}.indexer.wq_b", "dense", shape.index_parameters)


def _feed_forward_modules(shape: TextShape, layer: Layer, prefix: str) -> Iterator[Module]:
    matrices = ("gate_proj", "up_proj", "down_proj") if shape.family.gated else ("up_proj", "down_proj")
    if layer.feed_forward is FeedForward.DENSE:
        for matrix in matrices:
            yield Module(f"{prefix}.mlp.{matrix}", "dense", shape.width * shape.ffn_width)
    experts = shape.experts
    if layer.feed_forward is FeedForward.EXPERTS and experts is not None:
        for matrix in matrices:
            yield Module(
                f"{prefix}.{shape.family.experts}.0.{matrix}", "experts", experts.count * shape.width * experts.width
            )
            if experts.shared_width:
                yield Module(f"{prefix}.{shape.family.shared}.{matrix}", "dense", shape.width * experts.shared_width)


def small_parameters(shape: TextShape) -> int:
    """Count norms, biases and routers."""
    total = shape.width
    for layer in shape.layers:
        halves = (layer.mixer is not Mixer.NONE) + (layer.feed_forward is not FeedForward.NONE)
        total += halves * shape.width
        if layer.mixer in (Mixer.FULL, Mixer.LOCAL) and shape.latent is None:
            total += _attention_biases(shape)
        if layer.feed_forward is FeedForward.EXPERTS and shape.experts is not None:
            total += shape.experts.count * shape.width
            if shape.biased == "all":
                total += shape.experts.count * (3 * shape.experts.width if shape.family.gated else shape.experts.width)
    return total


def _attention_biases(shape: TextShape) -> int:
    heads = shape.attention
    if shape.biased == "none":
        return 0
    output = shape.width if shape.biased == "all" else 0
    return heads.head_dim * (heads.heads + 2 * heads.kv_heads) + output
