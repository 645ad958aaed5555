"""Names: exact, ignoring case, by alias, by last part, by parts in order; else what could be meant."""

from __future__ import annotations

import pytest

from planner.catalog import Catalog, UnknownName
from planner.catalog.names import resolve

GPUS = ("H100-NVL-94GB", "H100-PCIe-80GB", "H100-SXM-80GB", "L40", "L40S", "RTX-4090", "RTX-A6000")
MODELS = ("meta-llama/Llama-3.3-70B-Instruct", "meta-llama/Meta-Llama-3-8B", "openai/gpt-oss-20b", "Qwen/Qwen3-32B")


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("H100-SXM-80GB", "H100-SXM-80GB"),
        (" h100-sxm-80gb ", "H100-SXM-80GB"),
        ("h100-sxm", "H100-SXM-80GB"),
        ("l40", "L40"),
        ("4090", "RTX-4090"),
        ("a6000", "RTX-A6000"),
        ("hopper-board", "H100-SXM-80GB"),
    ],
)
def test_one_gpu_is_meant(name: str, meant: str) -> None:
    assert resolve("gpu", name, GPUS, {"hopper-board": ("H100-SXM-80GB",)}) == meant


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("llama-3.3-70b", "meta-llama/Llama-3.3-70B-Instruct"),
        ("Llama-3.3-70B-Instruct", "meta-llama/Llama-3.3-70B-Instruct"),
        ("llama-3-8b", "meta-llama/Meta-Llama-3-8B"),
        ("qwen/qwen3-32b", "Qwen/Qwen3-32B"),
        ("gpt-oss-20b", "openai/gpt-oss-20b"),
    ],
)
def test_one_model_is_meant(name: str, meant: str) -> None:
    assert resolve("model", name, MODELS, {}) == meant


def test_h100_could_mean_three() -> None:
    with pytest.raises(UnknownName) as caught:
        resolve("gpu", "h100", GPUS, {})

    assert caught.value.ambiguous
    assert caught.value.suggestions == ("H100-NVL-94GB", "H100-PCIe-80GB", "H100-SXM-80GB")
    assert "could mean H100-NVL-94GB, H100-PCIe-80GB, H100-SXM-80GB" in str(caught.value)


def test_a_misspelt_name_gets_the_nearest_ones() -> None:
    with pytest.raises(UnknownName) as caught:
        resolve("gpu", "H100-SMX-80GB", GPUS, {})

    assert caught.value.suggestions[0] == "H100-SXM-80GB"
    assert not caught.value.ambiguous


def test_a_misspelt_short_name_gets_the_full_one() -> None:
    with pytest.raises(UnknownName) as caught:
        resolve("model", "qwen3-23b", MODELS, {})

    assert "Qwen/Qwen3-32B" in caught.value.suggestions


@pytest.mark.parametrize(("name", "first"), [("llama-3-8", "meta-llama/Meta-Llama-3-8B"), ("h100-s", None)])
def test_a_name_cut_short_gets_the_whole_one_first(name: str, first: str | None) -> None:
    with pytest.raises(UnknownName) as caught:
        resolve("model", name, (*MODELS, "huggyllama/llama-30b"), {})

    assert (caught.value.suggestions or (None,))[0] == first


def test_a_name_like_none_gets_all_where_they_are_few() -> None:
    with pytest.raises(UnknownName, match="no engine `zzz` in the catalog; it has sglang, vllm"):
        resolve("engine", "zzz", ("vllm", "sglang"), {})


@pytest.mark.parametrize("name", ["llama", "", "/", "..", "../../etc/passwd", "*", "meta-llama/"])
def test_words_that_name_nothing(name: str) -> None:
    with pytest.raises(UnknownName) as caught:
        resolve("model", name, MODELS, {})

    assert not caught.value.ambiguous


def test_a_long_choice_is_cut_in_the_sentence_only() -> None:
    names = tuple(f"org/m{i}-7b" for i in range(9))
    with pytest.raises(UnknownName) as caught:
        resolve("model", "7b", names, {})

    assert caught.value.suggestions == names
    assert str(caught.value).endswith("org/m5-7b and 3 more")


def test_the_shipped_names_resolve_to_themselves(shipped: Catalog) -> None:
    for name in shipped.gpu_names():
        assert shipped.gpu(name.lower()).name == name
    for name in shipped.model_names():
        assert shipped.model(name.upper()).name == name


def test_what_is_left_out_says_why(shipped: Catalog) -> None:
    with pytest.raises(UnknownName, match="not modelled: no reliable dense rate"):
        shipped.gpu("rtx-pro-4500-server")
