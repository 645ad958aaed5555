"""Labels of published measurements: what they mean, and what was assumed."""

from __future__ import annotations

import pytest

from planner.catalog import Catalog, UnknownName


@pytest.mark.parametrize(
    ("label", "gpu", "assumed"),
    [
        ("H100 SXM 80GB", "H100-SXM-80GB", False),
        ("H100-80GB", "H100-SXM-80GB", True),
        ("A100 (memory not stated)", "A100-SXM-40GB", True),
        ("GB200 192GB", "GB200", True),
        ("RTX 6000 Ada 48GB", "RTX-6000-Ada", False),
    ],
)
def test_gpu_labels(shipped: Catalog, label: str, gpu: str, assumed: bool) -> None:
    found = shipped.gpu_label(label)

    assert found.name == gpu
    assert bool(found.assumed) == assumed


@pytest.mark.parametrize(
    "label", ["MI250", "Intel Max 1550", "DGX Spark GB10", "RTX 3080 10GB", "M2 Ultra 76-Core GPU 192GB"]
)
def test_labels_without_a_catalog_entry_say_why(shipped: Catalog, label: str) -> None:
    found = shipped.gpu_label(label)

    assert not found.name
    assert found.absent


def test_a_card_with_two_gpus(shipped: Catalog) -> None:
    assert shipped.gpu_label("Intel Arc Pro B60 Dual 48GB").devices == 2


@pytest.mark.parametrize(
    ("label", "model"),
    [
        ("meta-llama/Llama-3.1-405B", "meta-llama/Llama-3.1-405B-Instruct"),
        ("RedHatAI/Llama-3.3-70B-Instruct-fp8-dynamic", "meta-llama/Llama-3.3-70B-Instruct"),
        ("Qwen/Qwen3-30B-A3B", "Qwen/Qwen3-30B-A3B"),
        ("Qwen3-32B", "Qwen/Qwen3-32B"),
    ],
)
def test_model_labels(shipped: Catalog, label: str, model: str) -> None:
    assert shipped.model_label(label).name == model


def test_an_unknown_label_is_refused(shipped: Catalog) -> None:
    with pytest.raises(UnknownName):
        shipped.gpu_label("Voodoo 2")
    with pytest.raises(UnknownName):
        shipped.model_label("acme/roadrunner-7b")
