"""Rates that one GPU really reaches, by component: datasheet peaks times fitted shares, bounded by a ceiling."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from planner.physics.bands import family_kind
from planner.physics.constants import EngineMultipliers, Offsets, SpeedConstants
from planner.physics.memory import WEIGHT_FORMATS, kv_format
from planner.physics.types import Architecture, Device, Layout

REFERENCE_GROUP = 8.0
"""Query heads per KV head at which the KV share is stated; MLA counts as that group (catalog/calibration)."""

REFERENCE_HEAD_DIM = 128.0
"""Head dimension at which the KV share is stated."""

BLOCK_SCALED = "fp8-block"
FOUR_BITS = 4
NATIVE_FOUR_BIT_PEAK = "fp4"


@dataclass(frozen=True, slots=True)
class Rates:
    """Bytes/s and FLOP/s of one GPU by component, after the engine multiplier and the pipeline slowdown."""

    weight_bytes_per_s: float
    expert_bytes_per_s: float
    kv_bytes_per_s: float
    attention_flops_per_s: float
    ffn_flops_per_s: float
    head_flops_per_s: float
    expert_flops_per_s: float
    mla_flops_per_s: float
    prefill_flops_per_s: float


@dataclass(frozen=True, slots=True)
class _Machine:
    """A device as an engine drives it: what every rate below is computed from."""

    device: Device
    engine: EngineMultipliers
    offsets: Offsets
    constants: SpeedConstants

    @property
    def bf16_flops_per_s(self) -> float:
        return self.device.flops["bf16"]

    def gemm_flops_per_s(self, weight_format: str) -> float:
        """Return the matrix rate for weights of a format before the engine multiplier."""
        peak, factor = _peak(self.device, weight_format, self.constants)
        rate = self.constants.gemm_compute_share * math.exp(self.offsets.compute) * factor * peak
        if self.engine.capped_kernels:
            return 1.0 / (1.0 / rate + 1.0 / self.constants.kernel_flops_per_s)
        return rate

    def ceiling(self, share: float) -> float:
        """Bend a bandwidth share smoothly below the ceiling, which holds after the engine multiplier."""
        power = self.constants.streaming_ceiling_exponent
        return float((share**-power + self.limit**-power) ** (-1.0 / power))

    @property
    def limit(self) -> float:
        """Largest bandwidth share before the engine multiplier."""
        return self.constants.streaming_ceiling_share * self.engine.gpu_time


def rates(
    arch: Architecture,
    device: Device,
    layout: Layout,
    formats: Mapping[str, str],
    kv: str,
    engine: EngineMultipliers,
    constants: SpeedConstants,
) -> Rates:
    """Return the rates of every component; `formats` maps components to weight formats as `component_formats` does.

    Source: catalog/calibration (effective rates e_w, e_kv, e_c with offsets by architecture class and GPU). A format
    whose matrix peak the device lacks computes at the bf16 rate while its weights stream at their small size.
    """
    offsets = constants.offsets(device.name, device.architecture_class, family_kind(arch))
    machine = _Machine(device, engine, offsets, constants)
    slowdown = engine.gpu_time * pipeline_factor(layout, engine, constants)
    weights = machine.ceiling(constants.weight_bandwidth_share * math.exp(machine.offsets.weights))
    experts = min(weights * constants.expert_bandwidth_factor, machine.limit)
    imbalance = 1.0 + (constants.expert_imbalance if layout.attention_data > 1 else 0.0)
    bandwidth = device.bandwidth_bytes_per_s / slowdown
    bf16 = machine.bf16_flops_per_s / slowdown
    present = 1.0 if arch.is_moe else 0.0
    return Rates(
        weight_bytes_per_s=weights * bandwidth,
        expert_bytes_per_s=present * experts * bandwidth / imbalance,
        kv_bytes_per_s=_kv_share(arch, kv, machine) * bandwidth,
        attention_flops_per_s=machine.gemm_flops_per_s(formats["attention"]) / slowdown,
        ffn_flops_per_s=machine.gemm_flops_per_s(formats["dense"]) / slowdown,
        head_flops_per_s=machine.gemm_flops_per_s("bf16") / slowdown,
        expert_flops_per_s=present * _expert_flops_per_s(formats["experts"], machine) / slowdown / imbalance,
        mla_flops_per_s=constants.mla_compute_share * bf16 if arch.is_mla else 0.0,
        prefill_flops_per_s=constants.prefill_attention_share * bf16,
    )


def pipeline_factor(layout: Layout, engine: EngineMultipliers, constants: SpeedConstants) -> float:
    """Return the factor on GPU time that pipeline stages cost; layers split without overlap cost nothing extra."""
    if engine.layer_split:
        return 1.0
    return 1.0 + constants.pipeline_stage_excess * (layout.pipeline - 1)


def _expert_flops_per_s(weight_format: str, machine: _Machine) -> float:
    """Grouped matrix rate; 4-bit weights that the hardware cannot multiply are widened first."""
    rate = machine.gemm_flops_per_s(weight_format) * machine.constants.expert_compute_factor
    known = WEIGHT_FORMATS[weight_format]
    native = known.peak == NATIVE_FOUR_BIT_PEAK and NATIVE_FOUR_BIT_PEAK in machine.device.flops
    if known.bits == FOUR_BITS and not native:
        return rate / (1.0 + machine.constants.dequantise_excess)
    return rate


def _kv_share(arch: Architecture, kv: str, machine: _Machine) -> float:
    constants = machine.constants
    share = constants.kv_bandwidth_share * math.exp(machine.offsets.kv)
    if not arch.is_mla:
        group = arch.n_heads / arch.n_kv_heads / REFERENCE_GROUP
        share *= group ** (1.0 - constants.kv_group_exponent)
        share *= (arch.head_dim / REFERENCE_HEAD_DIM) ** (constants.kv_head_exponent - 1.0)
    narrow = kv_format(kv).nominal_bytes_per_element == 1.0
    return min(machine.ceiling(share) * (constants.kv8_bandwidth_factor if narrow else 1.0), machine.limit)


def _peak(device: Device, weight_format: str, constants: SpeedConstants) -> tuple[float, float]:
    """Return the datasheet peak that a format computes at, and the factor on the matrix share there.

    MXFP4 weights meet 8-bit activations: they take the fp8 peak where fp4 is native, else the bf16 peak.
    """
    flops = device.flops
    peak = WEIGHT_FORMATS[weight_format].peak
    if peak not in flops:
        return flops["bf16"], 1.0
    if weight_format == "mxfp4" and "fp8" in flops:
        peak = "fp8"
    factors = {"fp8": constants.fp8_compute_factor, "int8": constants.fp8_compute_factor}
    factors[NATIVE_FOUR_BIT_PEAK] = constants.fp4_compute_factor
    blocks = constants.fp8_block_compute_factor if weight_format == BLOCK_SCALED and peak == "fp8" else 1.0
    return flops[peak], factors.get(peak, 1.0) * blocks
