"""Models from real config.json files: counts, caches, states, stored formats, and what is refused with its reason."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from planner.catalog import Catalog
from planner.catalog.canonical import same_model, tokens
from planner.catalog.checks.models import count_findings
from planner.catalog.huggingface import UnsupportedConfig, entry_from_config, entry_yaml, parse_config, read_config
from planner.catalog.model import ModelEntry
from planner.diagnostics import DiagnosticError

CONFIGS = Path(__file__).parents[1] / "data" / "configs"
NAMES = sorted(p.stem for p in CONFIGS.glob("*.json") if "hf_quant" not in p.name)
REFUSED = {
    "deepseek-ai--DeepSeek-V4-Flash": "model type `deepseek_v4`",
    "nvidia--NVIDIA-Nemotron-3-Super-120B-A12B-FP8": "`moe_latent_size`: experts behind a latent projection",
    "google--gemma-4-E2B-it": "`num_kv_shared_layers`: layers that share their cache",
}


def config(name: str) -> dict[str, Any]:
    return read_config(CONFIGS / f"{name}.json")


def imported(name: str, **changes: Any) -> ModelEntry:
    beside = CONFIGS / f"{name}.hf_quant_config.json"
    data = {**config(name), **changes}
    return entry_from_config(
        data, name.replace("--", "/"), "test", "2026-11-30", read_config(beside) if beside.exists() else None
    )


def refused(data: dict[str, Any]) -> tuple[str, ...]:
    with pytest.raises(UnsupportedConfig) as caught:
        entry_from_config(data, "a/b", "test", "2026-11-30")
    return caught.value.reasons


@pytest.mark.parametrize("name", [n for n in NAMES if n not in REFUSED])
def test_an_entry_is_consistent_and_survives_its_file(name: str) -> None:
    entry = imported(name)
    assert [d.message for d in count_findings(entry)] == []
    assert ModelEntry.model_validate(yaml.safe_load(entry_yaml(entry))) == entry


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_what_is_not_modelled_is_refused_with_the_reason(name: str) -> None:
    assert any(reason.startswith(REFUSED[name]) for reason in refused(config(name)))


@pytest.mark.parametrize(
    "name",
    [
        "Qwen/Qwen3.5-27B",
        "deepseek-ai/DeepSeek-V3",
        "google/gemma-3-27b-it",
        "meta-llama/Llama-4-Scout-17B-16E-Instruct",
        "moonshotai/Kimi-K2.5",
        "nvidia/Nemotron-H-56B-Base-8K",
        "openai/gpt-oss-20b",
    ],
)
def test_counts_and_caches_agree_with_the_catalog(shipped: Catalog, name: str) -> None:
    entry, known = imported(name.replace("/", "--")), shipped.model(name)
    assert entry.parameters.total == pytest.approx(known.parameters.total, rel=1e-4)
    ours, theirs = entry.architecture(), known.architecture()
    for field in (
        "kv_elements_per_token",
        "n_layers",
        "n_state_layers",
        "state_elements",
        "n_local_layers",
        "n_experts",
    ):
        assert getattr(ours, field) == getattr(theirs, field), field
    assert ours.native_format == theirs.native_format


@pytest.mark.parametrize(
    ("name", "billions"),
    [
        ("ai21labs--AI21-Jamba-1.5-Mini", 51.57),
        ("moonshotai--Kimi-Linear-48B-A3B-Instruct", 49.12),
        ("meta-llama--Llama-3.2-11B-Vision-Instruct", 9.775),
        ("Qwen--Qwen2.5-VL-7B-Instruct", 7.616),
        ("nvidia--Gemma-4-31B-IT-NVFP4", 30.7),
    ],
)
def test_counts_are_the_published_ones(name: str, billions: float) -> None:
    assert imported(name).parameters.total / 1e9 == pytest.approx(billions, rel=0.002)


def test_image_encoders_are_counted_apart() -> None:
    """Llama-3.2-11B-Vision is published with 10.67B parameters, gemma-3-27b with 27.43B."""
    for name, published in (("meta-llama--Llama-3.2-11B-Vision-Instruct", 10.67), ("google--gemma-3-27b-it", 27.43)):
        entry = imported(name)
        assert entry.vision is not None
        assert (entry.parameters.total + entry.vision.parameters) / 1e9 == pytest.approx(published, rel=0.01)


@pytest.mark.parametrize(
    ("name", "native", "stored"),
    [
        ("Qwen--Qwen3-30B-A3B-FP8", "fp8", {"attention": {"fp8-block": 1.0}, "experts": {"fp8-block": 1.0}}),
        ("RedHatAI--Meta-Llama-3.1-8B-Instruct-FP8-dynamic", "fp8", {"attention": {"fp8": 1.0}, "head": {"bf16": 1.0}}),
        ("TheBloke--Llama-2-7B-AWQ", "int4", {"dense": {"int4": 1.0}, "embedding": {"fp16": 1.0}}),
        ("moonshotai--Kimi-K2.5", "int4", {"attention": {"bf16": 1.0}, "experts": {"int4-g32": 1.0}}),
        ("nvidia--Gemma-4-31B-IT-NVFP4", "nvfp4", {"attention": {"bf16": 1.0}, "dense": {"nvfp4": 1.0}}),
        ("openai--gpt-oss-20b", "mxfp4", {"attention": {"bf16": 1.0}, "experts": {"mxfp4": 1.0}}),
        ("deepseek-ai--DeepSeek-V3", "fp8", {"attention": {"fp8-block": 1.0}, "head": {"bf16": 1.0}}),
        ("nvidia--Qwen3-235B-A22B-NVFP4", "nvfp4", {"experts": {"nvfp4": 1.0}, "head": {"bf16": 1.0}}),
    ],
)
def test_formats_are_those_of_the_list_not_of_the_name(name: str, native: str, stored: dict[str, Any]) -> None:
    entry = imported(name)
    assert entry.native_format == native
    assert {part: entry.stored[part] for part in stored} == stored  # type: ignore[index]


def layered(ignore: list[str], layers: int = 4) -> ModelEntry:
    data = config("RedHatAI--Meta-Llama-3.1-8B-Instruct-FP8-dynamic")
    how = {**data["quantization_config"], "ignore": ignore}
    return entry_from_config(
        {**data, "num_hidden_layers": layers, "quantization_config": how}, "a/b", "test", "2026-11-30"
    )


@pytest.mark.parametrize(
    ("ignore", "part", "wide"),
    [
        (["lm_head", "model.layers.0.self_attn.q_proj"], "attention", 4096 / (2 * 4096 + 2 * 1024) / 4),
        (["re:.*self_attn.*"], "attention", 1.0),
        (["model.layers.1.mlp*"], "dense", 0.25),
        (["model.layers.1.*", "model.layers.2.mlp"], "dense", 0.5),
        (["*.down_proj"], "dense", 1 / 3),
        (["down_proj"], "dense", 1 / 3),
        (["model.layers.10.mlp"], "dense", 0.0),
        (["model.layers.0.mlp.gate"], "dense", 0.0),
    ],
)
def test_modules_left_out_are_counted_by_their_parameters(ignore: list[str], part: str, wide: float) -> None:
    assert layered(ignore).stored[part].get("bf16", 0.0) == pytest.approx(wide, abs=1e-5)  # type: ignore[index]


def test_an_ignored_head_is_stored_wide() -> None:
    assert layered(["lm_head"]).stored["head"] == {"bf16": 1.0}
    assert layered([]).stored["head"] == {"fp8": 1.0}


@pytest.mark.parametrize("pattern", ["re:(a+)+$", "re:(.*)*x", "re:[", "x" * 400])
def test_patterns_that_could_run_for_ever_are_refused(pattern: str) -> None:
    data = config("RedHatAI--Meta-Llama-3.1-8B-Instruct-FP8-dynamic")
    data["quantization_config"]["ignore"] = [pattern]
    assert any("pattern" in reason for reason in refused(data))


def test_everything_that_is_missing_is_told_at_once() -> None:
    reasons = refused({"model_type": "llama", "hidden_size": "wide", "num_hidden_layers": -1})
    assert len(reasons) >= 4
    assert "`vocab_size` is missing" in reasons
    assert '`hidden_size` is no whole number but "wide"' in reasons


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        ({}, "`model_type` is missing"),
        ({"model_type": "bert"}, "model type `bert` is not known"),
        (
            {**config("Qwen--Qwen3.5-27B")["text_config"], "layer_types": ["quantum"] * 64},
            "layers that are not known: quantum",
        ),
        ({**config("Qwen--Qwen3.5-27B")["text_config"], "layer_types": ["full_attention"]}, "1 entries for 64 layers"),
        ({**config("openai--gpt-oss-20b"), "quantization_config": {"quant_method": "magic"}}, "`magic` is not known"),
        ({**config("nvidia--Nemotron-H-56B-Base-8K"), "hybrid_override_pattern": "MMX"}, "letters that are not known"),
        ({**config("TheBloke--Llama-2-7B-AWQ"), "num_hidden_layers": 10**9}, "must be from 1 to 2000, not 1000000000"),
    ],
)
def test_refusals_name_what_is_wrong(data: dict[str, Any], reason: str) -> None:
    assert any(reason in each for each in refused(data))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "not JSON"),
        (b"[1]", "no object"),
        (b'{"a": ', "not JSON"),
        (b"\xff\xfe", "UTF-8"),
        (b"[" * 100_000, "too deeply"),
        (b'{"a": ' + b"9" * 10_000 + b"}", "number too long"),
    ],
)
def test_files_that_are_no_config_are_refused(data: bytes, message: str) -> None:
    with pytest.raises(DiagnosticError, match=message):
        parse_config(data, "config.json")


VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5), st.lists(st.integers(), max_size=3)
)


@given(st.sampled_from([n for n in NAMES if n not in REFUSED]), st.data())
def test_no_value_of_a_config_makes_a_traceback(name: str, data: st.DataObject) -> None:
    whole = json.loads(json.dumps(config(name)))
    section = whole.get("text_config", whole)
    for key in data.draw(st.lists(st.sampled_from(sorted(section)), max_size=3)):
        section[key] = data.draw(VALUES)
    with contextlib.suppress(UnsupportedConfig):
        assert entry_from_config(whole, "a/b", "test", "2026-11-30").parameters.total > 0


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("RedHatAI/Meta-Llama-3.1-8B-Instruct-quantized.w4a16", "meta-llama/Llama-3.1-8B-Instruct"),
        ("NousResearch/Hermes-3-Llama-3.1-8B", "meta-llama/Llama-3.1-8B-Instruct"),
        ("cyankiwi/gemma-4-31B-it-AWQ-4bit", "google/gemma-4-31B-it"),
        ("deepseek-ai/DeepSeek-R1-0528-Qwen3-8B", "Qwen/Qwen3-8B"),
        ("Qwen/Qwen3-30B-A3B-Instruct-2507", "Qwen/Qwen3-30B-A3B"),
        ("Llama 3.3 70B", "meta-llama/Llama-3.3-70B-Instruct"),
        ("meta-llama/Llama-9-8B", None),
        ("8B", None),
        ("", None),
    ],
)
def test_builds_and_fine_tunes_are_taken_as_their_model(shipped: Catalog, name: str, model: str | None) -> None:
    assert same_model(name, shipped.model_names()) == model


def test_a_quantised_build_in_the_catalog_stands_for_its_base(shipped: Catalog) -> None:
    assert shipped.model_label("somebody/Qwen3.6-27B-GPTQ").model == "Qwen/Qwen3.5-27B"
    assert shipped.model_label("nvidia/Qwen3.6-27B-NVFP4").model == "nvidia/Qwen3.6-27B-NVFP4"


def test_a_base_is_stored_as_its_published_build(shipped: Catalog) -> None:
    stored = shipped.architecture("Qwen/Qwen3.5-27B").stored
    assert ("nvfp4", "attention", "fp8", 1.0) in stored


def test_telling_parts_leave_out_formats_and_dates() -> None:
    assert tokens("org/Falcon-7B-Instruct-2507-GPTQ-Int4") == ("falcon", "7b")
