"""Configs with impossible values or parts that are not counted: each is refused with its key, and nothing is left out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from planner.catalog.huggingface import UnsupportedConfig, entry_from_config, parse_config, read_config
from planner.catalog.model import ModelEntry
from planner.diagnostics import DiagnosticError

CONFIGS = Path(__file__).parents[1] / "data" / "configs"
LLAMA: dict[str, Any] = {
    "model_type": "llama",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
    "max_position_embeddings": 8192,
    "torch_dtype": "bfloat16",
}
MIXTRAL = {**LLAMA, "model_type": "mixtral", "num_local_experts": 8, "num_experts_per_tok": 2}
DBRX: dict[str, Any] = {
    "model_type": "dbrx",
    "d_model": 6144,
    "n_heads": 48,
    "n_layers": 40,
    "max_seq_len": 32768,
    "vocab_size": 100352,
    "attn_config": {"kv_n_heads": 8},
    "ffn_config": {"ffn_hidden_size": 10752, "moe_num_experts": 16, "moe_top_k": 4},
    "torch_dtype": "bfloat16",
}
ENCODER = {"hidden_size": 1280, "num_hidden_layers": 32}


def entry(data: dict[str, Any]) -> ModelEntry:
    return entry_from_config(data, "a/b", "test", "2026-11-30")


def refused(data: dict[str, Any]) -> tuple[str, ...]:
    with pytest.raises(UnsupportedConfig) as caught:
        entry(data)
    return caught.value.reasons


@pytest.mark.parametrize("number", ["Infinity", "-Infinity", "NaN", "1e400", "-1e400"])
@pytest.mark.parametrize("key", [key for key, value in LLAMA.items() if isinstance(value, int)])
def test_numbers_that_are_not_finite_are_refused_with_their_key(key: str, number: str) -> None:
    text = json.dumps({**LLAMA, key: "?"}).replace('"?"', number)
    (reason,) = refused(parse_config(text.encode(), "config.json"))
    assert reason.startswith(f"`{key}` is no whole number but ")


@pytest.mark.parametrize("number", ["Infinity", "NaN", "1e400"])
def test_numbers_that_are_not_read_may_be_anything(number: str) -> None:
    """Published configs of Nemotron-H hold `"time_step_limit": [0.0, Infinity]`."""
    text = json.dumps({**LLAMA, "time_step_limit": "?"}).replace('"?"', f"[0.0, {number}]")
    assert entry(parse_config(text.encode(), "config.json")).layers == 32


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"num_key_value_heads": 7}, "`num_key_value_heads` must divide the 32 attention heads, which 7 does not"),
        ({"num_key_value_heads": 64}, "`num_key_value_heads` must divide the 32 attention heads, which 64 does not"),
        ({"num_attention_heads": 48, "num_key_value_heads": 8}, "`head_dim` is missing, and 48 attention heads"),
        ({"head_dim": 10**7}, "`head_dim` must be from 1 to 8192, not 10000000"),
        ({"max_position_embeddings": -1}, "`max_position_embeddings` must be from 1 to 1000000000, not -1"),
        ({"max_position_embeddings": 0}, "`max_position_embeddings` must be from 1 to 1000000000, not 0"),
        ({"max_position_embeddings": 1e30}, "`max_position_embeddings` must be from 1 to 1000000000, not 1e+30"),
        ({"max_position_embeddings": "x"}, '`max_position_embeddings` is no whole number but "x"'),
        ({"hidden_size": True}, "`hidden_size` is no whole number but true"),
        ({"hidden_size": 10**9}, "`hidden_size` must be from 1 to 1000000"),
        ({"quantization_config": "awq"}, '`quantization_config` is no object but "awq"'),
        ({"quantization_config": ["awq"]}, "`quantization_config` is no object but a list"),
        ({"rope_scaling": 8}, "`rope_scaling` is no object but 8"),
        ({"layer_types": "full_attention"}, '`layer_types` is no list but "full_attention"'),
        ({"text_config": "x"}, '`text_config` is no object but "x"'),
        ({"torch_dtype": "bf17"}, '`torch_dtype` "bf17" is not known'),
        ({"tie_word_embeddings": "no"}, '`tie_word_embeddings` is neither true nor false but "no"'),
    ],
)
def test_values_that_no_model_has_are_refused(changes: dict[str, Any], reason: str) -> None:
    reasons = refused({**LLAMA, **changes})
    assert len(reasons) == 1
    assert reasons[0].startswith(reason)


def test_more_experts_per_token_than_there_are() -> None:
    assert refused({**MIXTRAL, "num_experts_per_tok": 9}) == ("`num_experts_per_tok` must be from 1 to 8, not 9",)


def test_a_format_that_is_stored_needs_a_method() -> None:
    """The dtype of an FP8 checkpoint may be that of its weights; without a method it says nothing known."""
    fp8 = {**LLAMA, "torch_dtype": "float8_e4m3fn"}
    assert refused(fp8) == ('`torch_dtype` "float8_e4m3fn" is not known',)
    assert entry({**fp8, "quantization_config": {"quant_method": "fp8"}}).native_format == "fp8"


@pytest.mark.parametrize(
    ("data", "key", "named"),
    [
        (LLAMA, "intermediate_size", "intermediate_size"),
        (MIXTRAL, "intermediate_size", "intermediate_size"),
        (DBRX, "d_model", "d_model"),
        (DBRX, "n_heads", "n_heads"),
        (DBRX, "n_layers", "n_layers"),
        (DBRX, "max_seq_len", "max_seq_len"),
        (DBRX, "ffn_config", "ffn_hidden_size"),
    ],
)
def test_what_is_missing_is_called_as_the_family_calls_it(data: dict[str, Any], key: str, named: str) -> None:
    assert refused({k: v for k, v in data.items() if k != key}) == (f"`{named}` is missing",)


def test_experts_in_a_section_are_counted() -> None:
    """DBRX is published with 132B parameters, 36B active."""
    counts = entry(DBRX).parameters
    assert counts.total / 1e9 == pytest.approx(131.6, rel=0.001)
    assert counts.active / 1e9 == pytest.approx(36.5, rel=0.005)


@pytest.mark.parametrize(
    "section",
    ["audio_config", "speech_config", "img_processor", "audio_processor", "talker_config", "code2wav_config",
     "token2wav_config", "image_encoder", "vq_config", "compression_config", "video_tower"],
)  # fmt: skip
def test_parts_that_are_not_counted_are_refused(section: str) -> None:
    assert refused({**LLAMA, section: ENCODER}) == (f"`{section}`: this part of the model is not counted",)


def test_parts_beside_and_inside_of_the_language_model_are_refused() -> None:
    thinker = {"text_config": LLAMA, "vision_config": ENCODER, "audio_config": ENCODER}
    data = {"model_type": "omni", "thinker_config": thinker, "talker_config": ENCODER}
    keys = [reason.split("`")[1] for reason in refused(data)]
    assert keys == ["audio_config", "talker_config", "vision_config"]
    assert refused({"model_type": "x", "text_config": {**LLAMA, "audio_config": ENCODER}})[0].startswith(
        "`audio_config`"
    )


def test_a_tower_of_another_repository_is_refused() -> None:
    assert refused({**LLAMA, "mm_vision_tower": "openai/clip-vit-large-patch14-336"})[0].startswith("`mm_vision_tower`")


def test_parts_that_are_empty_and_settings_are_no_parts() -> None:
    settings = {"audio_config": None, "speech_config": {}, "generation_config": {"top_k": 1}, "image_token_id": 7}
    assert entry({**LLAMA, **settings}).vision is None


def test_image_encoders_beside_the_language_model_are_counted() -> None:
    assert entry(read_config(CONFIGS / "google--gemma-3-27b-it.json")).vision is not None


@pytest.mark.parametrize("levels", [65, 500, 900])
def test_deep_nesting_is_refused(levels: int) -> None:
    text = '{"text_config": ' * levels + "{}" + "}" * levels
    with pytest.raises(DiagnosticError, match="too deeply"):
        parse_config(text.encode(), "config.json")
