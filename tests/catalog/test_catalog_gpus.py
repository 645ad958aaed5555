"""GPU records: figures against published ones, fallbacks, links."""

from __future__ import annotations

import pytest

from planner.catalog import Catalog

GIB = 2**30


def test_every_gpu_becomes_a_device(shipped: Catalog) -> None:
    for name in shipped.gpu_names():
        device = shipped.gpu(name).device()
        assert device.usable_bytes > 10 * GIB
        assert device.usable_bytes < 1.08 * shipped.gpu(name).memory.label_gb * 1e9
        assert device.bandwidth_bytes_per_s > 1e11
        assert device.flops["bf16"] > 1e13
        assert device.link_bytes_per_s > 0
        assert device.scale_up_gpus >= 1


@pytest.mark.parametrize(
    ("name", "ridge"),
    [("H100-SXM-80GB", 295), ("A100-SXM-40GB", 200.6)],
)
def test_ridge_is_the_textbook_figure(shipped: Catalog, name: str, ridge: float) -> None:
    assert shipped.gpu(name).ridge_flop_per_byte() == pytest.approx(ridge, rel=2e-3)


def test_usable_memory_is_not_the_label(shipped: Catalog) -> None:
    assert shipped.gpu("H100-SXM-80GB").usable_bytes == pytest.approx(84.93e9, rel=1e-3)
    assert shipped.gpu("B300-SXM-288GB").usable_bytes == pytest.approx(287.4e9, rel=1e-3)


@pytest.mark.parametrize("name", ["T4", "T4G", "V100-SXM2-16GB", "V100-SXM2-32GB", "V100-PCIe-16GB"])
def test_without_a_bf16_rate_fp16_stands_in(shipped: Catalog, name: str) -> None:
    gpu = shipped.gpu(name)

    assert "bf16" not in gpu.dense_tflops
    assert gpu.bf16_from == "fp16"
    assert gpu.device().flops["bf16"] == gpu.dense_tflops["fp16"] * 1e12


def test_rates_are_native_only(shipped: Catalog) -> None:
    assert set(shipped.gpu("A100-SXM-80GB").flops()) == {"bf16", "int8"}
    assert set(shipped.gpu("H100-SXM-80GB").flops()) == {"bf16", "fp8", "int8"}
    assert set(shipped.gpu("B200-SXM-180GB").flops()) == {"bf16", "fp8", "fp4", "int8"}


@pytest.mark.parametrize(
    ("name", "link_class", "scale_up", "gb_s"),
    [
        ("H100-SXM-80GB", "nvlink", 8, 450),
        ("H100-PCIe-80GB", "nvlink", 2, 300),
        ("H200-NVL-141GB", "nvlink", 2, 450),
        ("A100-PCIe-80GB", "pcie", 1, 32),
        ("L40S", "pcie", 1, 32),
        ("MI300X", "xgmi", 8, 448),
        ("Gaudi2", "xgmi", 8, 262.5),
        ("GB200", "nvlink", 72, 900),
    ],
)
def test_links(shipped: Catalog, name: str, link_class: str, scale_up: int, gb_s: float) -> None:
    device = shipped.gpu(name).device()

    assert (device.link_class, device.scale_up_gpus, device.link_bytes_per_s) == (link_class, scale_up, gb_s * 1e9)


@pytest.mark.parametrize(
    ("name", "architecture_class"),
    [
        ("L4", "Ada"), ("A30", "AmpereDC"), ("A100-PCIe-40GB", "AmpereDC"), ("A10G", "AmpereG"), ("GB300", "BlackwellDC"),
        ("RTX-5090", "BlackwellG"), ("RTX-PRO-6000-Server", "BlackwellG"), ("MI210", "CDNA2"), ("MI325X", "CDNA3"),
        ("MI355X", "CDNA4"), ("Gaudi3", "Gaudi"), ("GH200-96GB", "Hopper"), ("Arc-Pro-B60", "Xe2"), ("T4", ""),
    ],
)  # fmt: skip
def test_architecture_classes(shipped: Catalog, name: str, architecture_class: str) -> None:
    assert shipped.gpu(name).architecture_class == architecture_class


def test_nothing_is_both_modelled_and_left_out(shipped: Catalog) -> None:
    left_out = {n.name for n in shipped.not_modelled()}

    assert left_out >= {"TPU-v6e", "Inferentia2", "Trainium1", "RTX-PRO-4500-Server", "GH200-144GB"}
    assert not left_out & set(shipped.gpu_names())


def test_a_derived_memory_figure_says_so(shipped: Catalog) -> None:
    memory = shipped.gpu("Arc-Pro-B60").memory

    assert memory.usable_basis == "derived"
    assert memory.reported_mib is not None
    t4 = shipped.gpu("T4").memory
    assert t4.reported_mib is not None
    assert memory.usable_gib == pytest.approx(
        memory.reported_mib / 1024 * t4.usable_gib / (t4.reported_mib / 1024), abs=0.05
    )
