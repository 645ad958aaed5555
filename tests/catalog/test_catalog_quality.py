"""Quality of formats: levels of evidence, means, and what needs none."""

from __future__ import annotations

import pytest

from planner.catalog import Catalog
from planner.catalog.quality import NATIVE, QualityFile, evidence_for


def quality(catalog: Catalog, model: str, weights: str | None, kv: str | None, evidence: str = "any"):
    return catalog.quality(catalog.model(model).architecture(), weights, kv, evidence)


@pytest.mark.parametrize(
    ("model", "weights", "kv"),
    [
        ("llama-3.3-70b", None, None),
        ("llama-3.3-70b", "bf16", "bf16"),
        ("llama-3.3-70b", "fp16", None),
        ("gpt-oss-120b", "mxfp4", "bf16"),
        ("deepseek-ai/DeepSeek-V3", "fp8", None),
        ("deepseek-ai/DeepSeek-V3", "fp8-block", None),
        ("deepseek-ai/DeepSeek-V3", "bf16", None),
        ("moonshotai/Kimi-K2.5", "int4", None),
    ],
)
def test_native_and_wider_formats_keep_everything(
    shipped: Catalog, model: str, weights: str | None, kv: str | None
) -> None:
    assert quality(shipped, model, weights, kv, "model") == NATIVE


@pytest.mark.parametrize(
    ("model", "weights", "level", "percent", "n"),
    [
        ("llama-3.3-70b", "int8", "model", (99.4 + 100) / 2, 2),
        ("llama-3.3-70b", "fp8", "family", 99.2, 1),
        ("llama-3.3-70b", "int4", "family", ((98.9 + 96.1 + 99.7 + 97.4) / 4 + 99.28) / 2, 5),
        ("Qwen/Qwen2.5-7B-Instruct", "fp8", "family", 99.2, 1),
        ("Qwen/Qwen3-32B", "fp8", "any", 99.2, 1),
        ("Qwen/Qwen3-32B", "int4", "any", ((98.9 + 96.1 + 99.7 + 97.4) / 4 + 99.28) / 2, 5),
        ("meta-llama/Llama-2-7b-hf", "q4_k_m", "model", 98.6, 1),
        ("Qwen/Qwen3-32B", "q4_k_m", "any", ((97.28 + 97.65) / 2 + 98.81 + 98.6) / 3, 4),
    ],
)
def test_weight_formats(shipped: Catalog, model: str, weights: str, level: str, percent: float, n: int) -> None:
    found = quality(shipped, model, weights, None)

    assert (found.level, found.n) == (level, n)
    assert found.recovery == pytest.approx(percent / 100)
    assert found.source


@pytest.mark.parametrize(
    ("kv", "percent"),
    [("fp8", 99.9), ("int8", 100.0), ("int4", 98.5), ("nvfp4", 84.1)],
)
def test_kv_means_over_models_are_the_known_ones(shipped: Catalog, kv: str, percent: float) -> None:
    found = quality(shipped, "Qwen/Qwen3-32B", None, kv)

    assert found.level == "any"
    assert 100 * found.recovery == pytest.approx(percent, abs=0.05)


def test_no_mean_exceeds_the_native_score(shipped: Catalog) -> None:
    assert quality(shipped, "gpt-oss-120b", None, "fp8", "model").recovery == 1.0


def test_weights_and_kv_multiply_and_the_weaker_level_counts(shipped: Catalog) -> None:
    weights = quality(shipped, "llama-3.3-70b", "fp8", None)
    kv = quality(shipped, "llama-3.3-70b", None, "fp8")
    both = quality(shipped, "llama-3.3-70b", "fp8", "fp8")

    assert both.recovery == pytest.approx(weights.recovery * kv.recovery)
    assert (weights.level, kv.level, both.level) == ("family", "any", "any")
    assert both.n == weights.n + kv.n


@pytest.mark.parametrize(
    ("weights", "kv", "evidence"),
    [
        ("fp8", None, "model"),
        (None, "fp8", "family"),
        ("fp8", "fp8", "family"),
        ("mxfp4", None, "any"),
        ("q2_k", None, "any"),
    ],
)
def test_without_evidence_at_the_level_there_is_none(
    shipped: Catalog, weights: str | None, kv: str | None, evidence: str
) -> None:
    assert quality(shipped, "llama-3.3-70b", weights, kv, evidence) is None


def test_a_pooled_average_gives_way_to_single_models(shipped: Catalog) -> None:
    file = QualityFile.model_validate(
        {
            "formats": {
                "fp8": [
                    {"label": "many", "pooled": ["llama3"], "scores": {"suite": 90.0}, "source": "a"},
                    {"label": "one", "model": "x/y", "family": "llama3", "scores": {"suite": 99.0}, "source": "b"},
                ]
            }
        }
    )

    found = evidence_for(file, "fp8", shipped.model("llama-3.3-70b").architecture(), "any")

    assert found is not None
    assert (found.recovery, found.source) == (0.99, "b")
