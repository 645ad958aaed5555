"""Model records: parameter counts from the shape, textbook figures of KV and decode ceilings."""

from __future__ import annotations

import pytest

from planner.catalog import Catalog
from planner.catalog.checks.models import count_findings, kv_elements
from planner.physics.parameters import count_parameters


def test_every_count_agrees_with_its_shape_or_states_why_not(shipped: Catalog) -> None:
    found = [d.message for name in shipped.model_names() for d in count_findings(shipped.model(name))]

    assert found == []


def test_exceptions_are_few(shipped: Catalog) -> None:
    """Only recurrent layers, layers of several shapes and cross-attention are beyond the plain count."""
    entries = [shipped.model(name) for name in shipped.model_names()]
    excused = [e for e in entries if e.parameters.shape_exception]
    odd = [e for e in excused if not (e.state or e.attention.state_layers or e.attention.local_kv_elements)]

    assert sorted(e.name for e in odd if not e.attention.cross_layers) == ["nvidia/Llama-3_3-Nemotron-Super-49B-v1"]
    assert sum(bool(e.parameters.published_exception) for e in entries) == 3


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("meta-llama/Llama-2-7b-hf", 6_738_415_616),
        ("meta-llama/Meta-Llama-3-8B", 8_030_261_248),
        ("mistralai/Mistral-7B-v0.1", 7_241_732_096),
        ("mistralai/Mixtral-8x7B-Instruct-v0.1", 46_702_792_704),
        ("Qwen/Qwen3-32B", 32_762_123_264),
    ],
)
def test_counts_from_the_shape_match_published_checkpoints(shipped: Catalog, name: str, parameters: int) -> None:
    assert count_parameters(shipped.model(name).architecture()) == pytest.approx(parameters, rel=1e-5)


def test_mla_counts_close(shipped: Catalog) -> None:
    for name, billions in (("deepseek-ai/DeepSeek-V3", 671.03), ("deepseek-ai/DeepSeek-V2-Lite-Chat", 15.706)):
        assert count_parameters(shipped.model(name).architecture()) == pytest.approx(billions * 1e9, rel=1e-3)


def test_cached_elements_follow_from_the_attention_fields(shipped: Catalog) -> None:
    entries = [shipped.model(name) for name in shipped.model_names()]
    odd = [e for e in entries if kv_elements(e) != e.attention.kv_elements_per_token]

    assert [e.name for e in odd if not e.attention.local_kv_elements] == ["XiaomiMiMo/MiMo-V2-Flash"]


@pytest.mark.parametrize(
    ("name", "kv_bytes"),
    [("meta-llama/Meta-Llama-3-8B", 131_072), ("meta-llama/Llama-2-7b-hf", 524_288)],
)
def test_kv_bytes_per_token_are_the_textbook_figures(shipped: Catalog, name: str, kv_bytes: int) -> None:
    assert 2 * shipped.model(name).architecture().kv_elements_per_token == kv_bytes


@pytest.mark.parametrize(
    ("name", "bf16", "int8", "int4"),
    [
        ("mistralai/Mistral-7B-v0.1", 231, 463, 925),
        ("meta-llama/Meta-Llama-3-8B", 209, 417, 834),
        ("meta-llama/Meta-Llama-3-70B", 24, 47, 95),
    ],
)
def test_decode_ceilings_on_h100_are_the_textbook_figures(
    shipped: Catalog, name: str, bf16: int, int8: int, int4: int
) -> None:
    bandwidth = shipped.gpu("H100-SXM-80GB").bandwidth_bytes_per_s
    parameters = shipped.model(name).parameters.total

    ceilings = [bandwidth / (parameters * width) for width in (2.0, 1.0, 0.5)]

    assert ceilings == pytest.approx([bf16, int8, int4], abs=0.6)


def test_fields_reach_the_architecture(shipped: Catalog) -> None:
    gpt = shipped.model("gpt-oss-120b").architecture()
    assert (gpt.n_experts, gpt.experts_per_token, gpt.n_local_layers, gpt.sliding_window) == (128, 4, 18, 128)
    assert gpt.native_format == "mxfp4"

    deepseek = shipped.model("deepseek-ai/DeepSeek-V3").architecture()
    assert deepseek.is_mla
    assert (deepseek.first_k_dense, deepseek.n_moe_layers, deepseek.kv_elements_per_token) == (3, 58, 61 * 576)


def test_the_catalog_has_all_models(shipped: Catalog) -> None:
    assert len(shipped.model_names()) == 207
