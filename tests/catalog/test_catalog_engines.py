"""Engines: the range of versions that applies, and whether it was measured."""

from __future__ import annotations

import pytest

from planner.catalog import Catalog, UnknownName
from planner.catalog.engine import version_key


@pytest.mark.parametrize(
    ("name", "version", "vendor", "speed_class", "generation", "max_num_seqs", "extrapolated"),
    [
        ("vllm", "0.6.3", "NVIDIA", "vllm_old", "old", 256, False),
        ("vllm", "0.6.3", "AMD", "vllm_old_nonnv", "old", 256, False),
        ("vllm", "0.8.4", "NVIDIA", "modern", "modern", 256, True),
        ("vllm", "0.13.0", "NVIDIA", "vllm_new", "modern", 1024, False),
        ("vllm", "0.13.0", "AMD", "modern", "modern", 1024, False),
        ("vllm", "0.33", "NVIDIA", "vllm_new", "modern", 1024, True),
        ("sglang", "0.5.6.post1", "AMD", "modern", "modern", 2048, False),
        ("tensorrt-llm", "0.14.0", "NVIDIA", "trt_cpp", "modern", 2048, False),
        ("tensorrt-llm", "1.2.0rc2", "NVIDIA", "trt_pt", "modern", 4096, False),
        ("llama.cpp", "b6918", "Apple", "llamacpp", "local", 64, False),
    ],
)
def test_profiles(
    shipped: Catalog, name: str, version: str, vendor: str, speed_class: str, generation: str, max_num_seqs: int,
    extrapolated: bool,
) -> None:  # fmt: skip
    profile = shipped.engine(name, version)

    assert profile.speed_class(vendor) == speed_class
    assert profile.generation == generation
    assert profile.max_num_seqs == max_num_seqs
    assert profile.extrapolated == extrapolated


def test_the_newest_release_is_the_default(shipped: Catalog) -> None:
    profile = shipped.engine("vllm")

    assert profile.version == "0.33"
    assert profile.versions == "0.9 to before 0.20"


def test_who_reserves_and_who_preempts(shipped: Catalog) -> None:
    assert shipped.engine("tensorrt-llm").kv_policy == "reserving"
    assert shipped.engine("vllm").kv_policy == "preempting"


def test_vendors_an_engine_runs_on(shipped: Catalog) -> None:
    assert not shipped.engine("tensorrt-llm").supports("AMD")
    assert shipped.engine("llama.cpp").supports("Apple")


def test_memory_constants_come_with_the_profile(shipped: Catalog) -> None:
    for name in shipped.engine_names():
        profile = shipped.engine(name)
        assert profile.memory.engine == name
        assert profile.memory.block_size_tokens >= 1


@pytest.mark.parametrize("version", ["newest", "", "v"])
def test_a_version_has_a_number(shipped: Catalog, version: str) -> None:
    with pytest.raises(UnknownName) as caught:
        shipped.engine("vllm", version)

    assert caught.value.kind == "engine version"


def test_unknown_engine(shipped: Catalog) -> None:
    with pytest.raises(UnknownName) as caught:
        shipped.engine("vlm")

    assert caught.value.suggestions == ("vllm",)


@pytest.mark.parametrize(
    ("older", "newer"),
    [("0.9", "0.10"), ("0.19.1", "0.20"), ("b4000", "b6918"), ("1.2.0rc2", "1.2.1"), ("0.5.6.post1", "0.5.7")],
)
def test_versions_compare_by_number(older: str, newer: str) -> None:
    assert version_key(older) < version_key(newer)
