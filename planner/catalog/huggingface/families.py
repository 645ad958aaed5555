"""What a `model_type` implies that its config does not say: which matrices, which biases, which defaults."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any


@dataclass(frozen=True, slots=True)
class Family:
    """Traits of one `model_type`, read from its reference implementation in `transformers`.

    `name` is the family in the catalog. `gated`: three matrices per feed-forward. `ties`: embeddings are tied when the
    config does not say. `bias`: which projections have biases by default (none, qkv, all). `qk_norm`: a norm on query
    and key. `windowed`: a `sliding_window` without layer types holds in every layer. `rotary`: positions are rotated.
    `experts` and `shared` are where a checkpoint keeps routed and shared experts below a layer. `defaults` are values
    of the configuration class that published configs leave out. `keys` are the names it has for usual fields, and
    `inner` is a section that holds some of them.
    """

    name: str
    gated: bool = True
    ties: bool = False
    bias: str = "none"
    qk_norm: bool = False
    windowed: bool = False
    rotary: bool = True
    experts: str = "mlp.experts"
    shared: str = "mlp.shared_experts"
    defaults: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    keys: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    inner: str = ""


_GEMMA_3 = MappingProxyType(
    {
        "vocab_size": 262_208,
        "num_attention_heads": 8,
        "num_key_value_heads": 4,
        "head_dim": 256,
        "max_position_embeddings": 131_072,
        "rope_local_base_freq": 10_000,
        "sliding_window_pattern": 6,
    }
)

_DBRX = MappingProxyType(
    {
        "hidden_size": "d_model",
        "num_hidden_layers": "n_layers",
        "num_attention_heads": "n_heads",
        "max_position_embeddings": "max_seq_len",
        "moe_intermediate_size": "ffn_hidden_size",
        "intermediate_size": "ffn_hidden_size",
        "n_routed_experts": "moe_num_experts",
        "num_experts_per_tok": "moe_top_k",
    }
)
_CHATGLM = MappingProxyType(
    {
        "num_hidden_layers": "num_layers",
        "intermediate_size": "ffn_hidden_size",
        "max_position_embeddings": "seq_length",
        "vocab_size": "padded_vocab_size",
    }
)
_ONE_WIDTH = MappingProxyType({"moe_intermediate_size": "intermediate_size"})

FAMILIES: dict[str, Family] = {
    "llama": Family("llama"),
    "mistral": Family("mistral", windowed=True),
    "ministral3": Family("mistral"),
    "mixtral": Family("mixtral", experts="block_sparse_moe.experts", keys=_ONE_WIDTH),
    "qwen2": Family("qwen2", bias="qkv"),
    "qwen2_moe": Family("qwen2-moe", bias="qkv", shared="mlp.shared_expert"),
    "qwen2_vl": Family("qwen2", bias="qkv"),
    "qwen2_vl_text": Family("qwen2", bias="qkv"),
    "qwen2_5_vl": Family("qwen2.5", bias="qkv"),
    "qwen2_5_vl_text": Family("qwen2.5", bias="qkv"),
    "qwen3": Family("qwen3", qk_norm=True),
    "qwen3_moe": Family("qwen3-moe", qk_norm=True),
    "qwen3_vl_text": Family("qwen3", qk_norm=True),
    "qwen3_vl_moe_text": Family("qwen3-moe", qk_norm=True),
    "qwen3_next": Family("qwen3-next", qk_norm=True, shared="mlp.shared_expert"),
    "qwen3_5": Family("qwen3.5", qk_norm=True),
    "qwen3_5_text": Family("qwen3.5", qk_norm=True),
    "qwen3_5_moe": Family("qwen3.5-moe", qk_norm=True, shared="mlp.shared_expert"),
    "qwen3_5_moe_text": Family("qwen3.5-moe", qk_norm=True, shared="mlp.shared_expert"),
    "gemma": Family("gemma", ties=True),
    "gemma2": Family("gemma2", ties=True),
    "gemma3": Family("gemma3", ties=True, qk_norm=True, defaults=_GEMMA_3),
    "gemma3_text": Family("gemma3", ties=True, qk_norm=True, defaults=_GEMMA_3),
    "gemma4": Family("gemma4", ties=True, qk_norm=True, experts="experts", shared="mlp"),
    "gemma4_text": Family("gemma4", ties=True, qk_norm=True, experts="experts", shared="mlp"),
    "deepseek_v2": Family("deepseek"),
    "deepseek_v3": Family("deepseek"),
    "deepseek_v32": Family("deepseek"),
    "kimi_k2": Family("kimi"),
    "minicpm3": Family("minicpm"),
    "glm": Family("glm4", bias="qkv"),
    "glm4": Family("glm4", bias="qkv"),
    "chatglm": Family("glm4", bias="qkv", keys=_CHATGLM),
    "glm4_moe": Family("glm4.5"),
    "glm4_moe_lite": Family("glm4.5"),
    "glm_moe_dsa": Family("glm5"),
    "glm4v_moe_text": Family("glm4.5"),
    "gpt_oss": Family("gpt-oss", bias="all", keys=_ONE_WIDTH),
    "phi3": Family("phi3"),
    "phi3_v": Family("phi3"),
    "phimoe": Family("phi3-moe", bias="all", experts="block_sparse_moe.experts", keys=_ONE_WIDTH),
    "granite": Family("granite"),
    "granitemoe": Family("granite", keys=_ONE_WIDTH),
    "granitemoehybrid": Family("granite"),
    "cohere": Family("command-r", ties=True),
    "cohere2": Family("command-a", ties=True),
    "olmo2": Family("olmo2", qk_norm=True),
    "olmo3": Family("olmo3", qk_norm=True),
    "olmoe": Family("olmoe", qk_norm=True, keys=_ONE_WIDTH),
    "internlm2": Family("internlm"),
    "internlm3": Family("internlm"),
    "exaone": Family("exaone"),
    "exaone4": Family("exaone", qk_norm=True),
    "starcoder2": Family("starcoder2", gated=False, ties=True, bias="all", windowed=True),
    "stablelm": Family("stablelm"),
    "baichuan": Family("baichuan"),
    "minimax_m2": Family("minimax-m2", qk_norm=True, experts="block_sparse_moe.experts", keys=_ONE_WIDTH),
    "mimo": Family("mimo", bias="qkv"),
    "seed_oss": Family("seed", bias="qkv"),
    "smollm3": Family("smollm", ties=True),
    "apertus": Family("apertus", gated=False, qk_norm=True),
    "nemotron": Family("nemotron4", gated=False),
    "nemotron_h": Family("nemotron-h", gated=False, rotary=False),
    "jamba": Family("jamba", rotary=False, keys=_ONE_WIDTH),
    "minimax": Family("minimax-01"),
    "minimax_text_01": Family("minimax-01"),
    "minimax_m1": Family("minimax-01"),
    "dbrx": Family("dbrx", keys=_DBRX, inner="ffn_config"),
    "llama4": Family("llama4"),
    "llama4_text": Family("llama4"),
    "mllama": Family("llama3"),
    "mllama_text_model": Family("llama3"),
    "gpt_neox": Family("pythia", gated=False, bias="all"),
    "opt": Family(
        "opt", gated=False, ties=True, bias="all", rotary=False, keys=MappingProxyType({"intermediate_size": "ffn_dim"})
    ),
    "ernie4_5": Family("ernie"),
    "ernie4_5_moe": Family("ernie"),
    "hunyuan_v1_dense": Family("hunyuan", qk_norm=True),
    "hunyuan_v1_moe": Family("hunyuan", qk_norm=True),
    "kimi_linear": Family("kimi"),
}
"""Model types that can be imported."""

NOT_COUNTED: dict[str, str] = {
    "moe_latent_size": "experts behind a latent projection are not modelled",
    "routed_expert_hidden_size": "experts behind a latent projection are not modelled",
    "hidden_size_per_layer_input": "embeddings of every layer are not modelled",
    "num_kv_shared_layers": "layers that share their cache are not modelled",
    "cla_share_factor": "layers that share their cache are not modelled",
    "indexer_types": "an index that layers share is not modelled",
    "compress_ratios": "compressed attention is not modelled",
    "block_configs": "layers that differ one by one are not modelled",
}
"""Fields that change the layout beyond what is counted here, with what to say when one is set."""

WRAPPERS = ("text_config", "llm_config", "language_config", "thinker_config")
"""Sections that hold the language model of a multimodal config."""
