"""GPU records as the catalog's `gpus/<name>.yaml` holds them, and the device the physics sees."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, Strict, model_validator

from planner.catalog.base import NotNegative, Positive, Record, Text, Texts, Whole
from planner.physics.types import Device

GIB_BYTES = 2**30
TERA = 1e12
GIGA = 1e9
BRIDGED_GPUS = 2

RateFormat = Literal["fp32", "tf32", "bf16", "fp16", "fp8", "fp4", "int8"]
ArchitectureClass = Literal[
    "", "Ada", "AmpereDC", "AmpereG", "Apple", "BlackwellDC", "BlackwellG", "CDNA2", "CDNA3", "CDNA4", "Gaudi",
    "Hopper", "IntelHPC", "Xe2",
]  # fmt: skip


class Memory(Record):
    """Memory of one GPU: the label in GB, the driver's figure in MiB, and what software can allocate in GiB."""

    label_gb: Positive
    kind: Text
    reported_mib: Positive | None = None
    usable_gib: Positive
    usable_basis: Literal["measured", "estimate", "derived"]
    usable_note: str = ""
    bandwidth_tb_s: Positive


class Link(Record):
    """The link between the GPUs of one node, one way per GPU. A `bridge` joins two PCIe cards, no more."""

    name: Text
    kind: Literal["nvlink", "xgmi", "pcie"]
    gb_s_one_way: NotNegative
    bridge: bool = False
    scale_up_gpus: Whole


class Pcie(Record):
    """The PCIe link of one GPU, one way."""

    generation: Whole
    gb_s_one_way: Positive


class GpuEntry(Record):
    """One accelerator, with datasheet figures, their sources and how far they can be trusted.

    `dense_tflops` holds dense peaks in TFLOPS (TOPS for int8) per format; `native` lists the formats with tensor
    hardware. `architecture_class` is the group that shares efficiency constants, empty when unknown.
    """

    name: Text
    vendor: Text
    architecture: Text
    architecture_class: ArchitectureClass
    compute_capability: str = ""
    memory: Memory
    dense_tflops: dict[RateFormat, Positive]
    bf16_from: Literal["bf16", "fp16"] = "bf16"
    native: Annotated[tuple[Literal["bf16", "fp8", "fp4"], ...], Strict(False)]
    link: Link
    pcie: Pcie | None = None
    l2_mb: Positive | None = None
    tdp_w: NotNegative = 0.0
    sources: Annotated[Texts, Field(min_length=1)]
    read: Text
    confidence: Literal["high", "medium", "low"]
    notes: Texts = ()
    doubts: Texts = ()

    @model_validator(mode="after")
    def _has_a_16_bit_rate(self) -> GpuEntry:
        if self.bf16_from not in self.dense_tflops:
            raise ValueError(f"no dense rate for {self.bf16_from}, which bf16 is taken from")
        return self

    @property
    def usable_bytes(self) -> float:
        """Bytes that software can allocate on one GPU."""
        return self.memory.usable_gib * GIB_BYTES

    @property
    def bandwidth_bytes_per_s(self) -> float:
        """Datasheet memory bandwidth in bytes/s."""
        return self.memory.bandwidth_tb_s * TERA

    def flops(self) -> dict[str, float]:
        """Return dense peaks in FLOP/s by format: `bf16` always, `fp8` and `fp4` when native, `int8` when listed."""
        rates = {"bf16": self.dense_tflops[self.bf16_from] * TERA}
        for rate_format in ("fp8", "fp4", "int8"):
            tflops = self.dense_tflops.get(rate_format)
            if tflops is not None and (rate_format == "int8" or rate_format in self.native):
                rates[rate_format] = tflops * TERA
        return rates

    def ridge_flop_per_byte(self, rate_format: str = "bf16") -> float:
        """Return the ridge of the roofline: dense peak over memory bandwidth. Raises `KeyError` without that rate."""
        return self.flops()[rate_format] / self.bandwidth_bytes_per_s

    def device(self) -> Device:
        """Return the device for the physics.

        A bridged card has the bridge's rate up to `scale_up_gpus` 2. Any group wider than `scale_up_gpus` uses
        `pcie_bytes_per_s`.
        """
        scale_up = self.link.scale_up_gpus
        return Device(
            name=self.name,
            vendor=self.vendor,
            architecture_class=self.architecture_class,
            usable_bytes=self.usable_bytes,
            bandwidth_bytes_per_s=self.bandwidth_bytes_per_s,
            flops=self.flops(),
            link_class=self.link.kind,
            link_bytes_per_s=self.link.gb_s_one_way * GIGA,
            scale_up_gpus=min(scale_up, BRIDGED_GPUS) if self.link.bridge else scale_up,
            pcie_bytes_per_s=self.pcie.gb_s_one_way * GIGA if self.pcie else 0.0,
            tdp_w=self.tdp_w,
        )
