"""Names and layouts as aiconfigurator takes them, without the package."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from opinion_cases import question

from planner.catalog import Catalog
from planner.second_opinion import Absent, Question, Uncovered
from planner.second_opinion.aiconfigurator import (
    BACKENDS,
    KV_CACHES,
    SYSTEMS,
    WEIGHTS,
    Aiconfigurator,
    call_of,
    quantisation,
)


def library(**changes: Any) -> Aiconfigurator:
    """The reviewer on a library that returns what it was asked."""

    def estimate(model: str, **arguments: Any) -> SimpleNamespace:
        calls.append((model, arguments))
        if Path(model).is_dir():
            configs.append(json.loads(Path(model, "config.json").read_text(encoding="utf-8")))
        return SimpleNamespace(
            ttft=120.0,
            tpot=25.0,
            raw={"seq/s": 3.5},
            backend_name="vllm",
            backend_version="0.24.0",
            system_name="h100_sxm",
        )

    calls: list[tuple[str, dict[str, Any]]] = changes.pop("calls", [])
    configs: list[dict[str, Any]] = changes.pop("configs", [])
    settings = {"name": "library", "estimate": estimate, "shipped": frozenset(), "shape_of": lambda _: {}, **changes}
    return Aiconfigurator(**settings)


def test_names_are_those_of_the_catalog(catalog: Catalog) -> None:
    from planner.physics.formats import KV_FORMATS, WEIGHT_FORMATS

    assert set(SYSTEMS) <= set(catalog.gpu_names())
    assert set(WEIGHTS) <= set(WEIGHT_FORMATS)
    assert set(KV_CACHES) <= set(KV_FORMATS)
    assert all(catalog.engine(name, None).name == name for name in BACKENDS)


def test_a_dense_model_is_asked_about_by_a_configuration(catalog: Catalog) -> None:
    calls: list[tuple[str, dict[str, Any]]] = []
    configs: list[dict[str, Any]] = []
    found = library(calls=calls, configs=configs).answer(question(catalog, cached_tokens=300))
    loaded, alone = (arguments for _, arguments in calls)

    assert (found.figures.tpot_s, found.figures.requests_per_s, found.figures.ttft_alone_s) == (0.025, 3.5, 0.12)
    assert (loaded["batch_size"], alone["batch_size"]) == (24, 1)
    assert (loaded["isl"], loaded["prefix"], loaded["osl"], loaded["ctx_tokens"]) == (1200, 300, 200, 1200)
    assert (loaded["system_name"], loaded["backend_name"], loaded["tp_size"]) == ("h100_sxm", "vllm", 2)
    assert (loaded["gemm_quant_mode"], loaded["kvcache_quant_mode"]) == ("fp8", "fp8")
    assert loaded["database_mode"] == "SILICON"
    assert configs[0]["num_hidden_layers"] == 80
    assert not Path(calls[0][0]).exists()


def test_ranks_and_microbatches_share_the_requests(catalog: Catalog) -> None:
    asked = question(
        catalog, "gpt-oss-120b", tensor=2, attention_data=4, expert=8, pipeline=2, in_flight=80, weights="mxfp4"
    )
    call = call_of(asked)

    assert (call["batch_size"], call["attention_dp_size"], call["pp_size"]) == (10, 4, 2)
    assert (call["moe_ep_size"], call["moe_tp_size"]) == (8, 1)
    assert call_of(question(catalog, "gpt-oss-120b", tensor=4))["moe_tp_size"] == 4


def test_prompts_beyond_a_step_are_cut(catalog: Catalog) -> None:
    assert call_of(question(catalog, input_tokens=20_000))["ctx_tokens"] == 8192
    assert call_of(question(catalog, input_tokens=20_000, cached_tokens=15_000))["ctx_tokens"] == 20_000


def test_a_checkpoint_as_published_keeps_its_own_modes(catalog: Catalog) -> None:
    asked = question(catalog, "gpt-oss-120b", weights="mxfp4")

    assert quantisation(asked, is_checkpoint=True)["moe_quant_mode"] is None
    assert quantisation(asked, is_checkpoint=False)["moe_quant_mode"] == "w4a16_mxfp4"


@pytest.mark.parametrize(
    ("model", "changes", "reason"),
    [
        ("llama-3.3-70b", {"gpu": "MI300X"}, "no measured tables of MI300X"),
        ("llama-3.3-70b", {"engine": "llama.cpp"}, "engine llama.cpp"),
        ("llama-3.3-70b", {"weights": "q4_k_m"}, "weights in q4_k_m"),
        ("llama-3.3-70b", {"kv_cache": "nvfp4"}, "KV cache in nvfp4"),
        ("gpt-oss-120b", {"weights": "int8"}, "no model of the shape"),
        ("deepseek-v3", {"weights": "bf16"}, "no model of the shape"),
    ],
)
def test_what_it_lacks_is_a_reason(model: str, changes: dict[str, Any], reason: str, catalog: Catalog) -> None:
    with pytest.raises(Uncovered, match=reason):
        library().answer(question(catalog, model, **changes))


def test_experts_need_a_mode_of_their_own(catalog: Catalog) -> None:
    with pytest.raises(Uncovered, match="with experts"):
        quantisation(question(catalog, "gpt-oss-120b", weights="int8"), is_checkpoint=False)


def test_the_same_shape_answers_for_a_derived_model(catalog: Catalog) -> None:
    shape = {"layers": 36, "hidden_size": 2880, "n": 64, "num_experts": 128, "topk": 4, "vocab": 201_088}
    shapes = {"a/first": {**shape, "layers": 35}, "b/second": shape}
    calls: list[tuple[str, dict[str, Any]]] = []
    reviewer = library(calls=calls, shipped=frozenset(shapes), shape_of=shapes.__getitem__)
    reviewer.answer(question(catalog, "gpt-oss-120b", weights="mxfp4"))

    assert {model for model, _ in calls} == {"b/second"}


def test_paths_of_the_library_are_not_shown(catalog: Catalog) -> None:
    def fail(_model: str, **_arguments: Any) -> None:
        raise RuntimeError("no data for 'int4_wo' at /opt/x/systems/data/a100_sxm/vllm/0.14.0; available: []")

    with pytest.raises(Uncovered, match=r"^no data for 'int4_wo' in the tables of a100_sxm/vllm/0.14.0; available"):
        library(estimate=fail).answer(question(catalog))


def test_an_absent_library_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "aiconfigurator", None)
    for name in [name for name in sys.modules if name.startswith("aiconfigurator.")]:
        monkeypatch.delitem(sys.modules, name)

    with pytest.raises(Absent, match=r"is not installed: pip install 'llm-fleet-planner\[aiconfigurator\]'"):
        Aiconfigurator.load()


def test_questions_are_plain_values(catalog: Catalog) -> None:
    assert isinstance(hash(question(catalog)), int)
    assert isinstance(question(catalog), Question)
