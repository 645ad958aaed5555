"""GPU records as the catalog's `gpus/<name>.yaml` holds them, and the device the physics sees."""

from __future__ import annotations

from typing import Literal

from planner.catalog.base import Count, NotNegative, Positive, Record, Text
from planner.physics.types import Device

GIB = 2**30
TERA = 1e12
GIGA = 1e9
BRIDGED_GPUS = 2

RateFormat = Literal["fp32", "tf32", "bf16", "fp16", "fp8", "fp4", "int8"]
Confidence = Literal["high", "medium", "low"]


class Memory(Record):
    """Memory of one GPU: the label in GB, the driver's figure in MiB, and what software can allocate in GiB."""

    label_gb: Positive
    kind: Text
    reported_mib: Positive | None = None
    usable_gib: Positive
    usable_basis: Text
    bandwidth_tb_s: Positive


class Link(Record):
    """The link between GPUs of one node, one way per GPU. A `bridge` joins `BRIDGED_GPUS` PCIe cards only."""

    name: Text
    kind: Literal["nvlink", "xgmi", "pcie"]
    gb_s_one_way: NotNegative
    bridge: bool = False
    scale_up_gpus: int


class Pcie(Record):
    """The PCIe link of one GPU, one way. Absent on unified-memory machines."""

    generation: int
    gb_s_one_way: Positive


class GpuEntry(Record):
    """One accelerator, with datasheet figures, their sources and how far they can be trusted.

    `dense_tflops` holds dense peaks in TFLOPS (TOPS for int8) per format as published; `native` lists the formats
    with tensor hardware. `architecture_class` is the group that shares efficiency constants, empty when unknown.
    """

    name: Text
    vendor: Text
    architecture: Text
    architecture_class: Literal[
        "", "Ada", "AmpereDC", "AmpereG", "Apple", "BlackwellDC", "BlackwellG", "CDNA2", "CDNA3", "CDNA4",
        "Gaudi", "Hopper", "IntelHPC", "Xe2",
    ]  # fmt: skip
    compute_capability: str = ""
    memory: Memory
    dense_tflops: dict[RateFormat, Positive]
    bf16_from: Literal["bf16", "fp16"] = "bf16"
    native: tuple[Literal["bf16", "fp8", "fp4"], ...] = ()
    link: Link
    pcie: Pcie | None = None
    l2_mb: Positive | None = None
    tdp_w: NotNegative = 0.0
    sources: tuple[Text, ...]
    read: Text
    confidence: Confidence
    notes: tuple[Text, ...] = ()
    doubts: tuple[Text, ...] = ()

    @property
    def usable_bytes(self) -> float:
        """Bytes that software can allocate on one GPU."""
        return self.memory.usable_gib * GIB

    @property
    def bandwidth_bytes_per_s(self) -> float:
        """Datasheet memory bandwidth in bytes/s."""
        return self.memory.bandwidth_tb_s * TERA

    def flops(self) -> dict[str, float]:
        """Dense peaks in FLOP/s for the formats that the hardware runs natively; `bf16` is always there."""
        rates = {"bf16": self.dense_tflops[self.bf16_from] * TERA}
        for name in ("fp8", "fp4"):
            if name in self.native and name in self.dense_tflops:
                rates[name] = self.dense_tflops[name] * TERA
        if "int8" in self.dense_tflops:
            rates["int8"] = self.dense_tflops["int8"] * TERA
        return rates

    def ridge(self, rate_format: str = "bf16") -> float:
        """Return the ridge of the roofline in FLOP per byte: dense peak over memory bandwidth."""
        return self.flops()[rate_format] / self.bandwidth_bytes_per_s

    def device(self) -> Device:
        """Return the device for the physics.

        A bridged PCIe card is given the bridge rate with `scale_up_gpus` 2: wider groups fall back to
        `pcie_bytes_per_s`, as every group wider than `scale_up_gpus` does.
        """
        pcie = self.pcie.gb_s_one_way * GIGA if self.pcie else 0.0
        return Device(
            name=self.name,
            vendor=self.vendor,
            architecture_class=self.architecture_class,
            usable_bytes=self.usable_bytes,
            bandwidth_bytes_per_s=self.bandwidth_bytes_per_s,
            flops=self.flops(),
            link_class=self.link.kind,
            link_bytes_per_s=self.link.gb_s_one_way * GIGA,
            scale_up_gpus=min(self.link.scale_up_gpus, BRIDGED_GPUS) if self.link.bridge else self.link.scale_up_gpus,
            pcie_bytes_per_s=pcie,
            tdp_w=self.tdp_w,
        )


class NotModelled(Record):
    """An accelerator that the facts name and the planner leaves out, with the reason."""

    name: Text
    reason: Text


__all__ = ["Confidence", "Count", "GpuEntry", "Link", "Memory", "NotModelled", "Pcie", "RateFormat"]
