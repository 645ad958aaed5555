"""Constants of the speed model as `catalog/calibration/<name>.yaml` states them, checked once when read."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

UNKNOWN_ENGINE_GENERATION = "modern"
"""Generation assumed for an engine class that neither the engine table nor the generation table names."""


Combination = tuple[str, str, str, str]
"""Engine class, GPU, kind of model family, weight format."""


@dataclass(frozen=True, slots=True)
class Offsets:
    """Logarithms to add to the global constants for an architecture class or a GPU; all zero when unknown."""

    weights: float = 0.0
    kv: float = 0.0
    compute: float = 0.0
    layer: float = 0.0

    def __add__(self, other: Offsets) -> Offsets:
        return Offsets(
            self.weights + other.weights,
            self.kv + other.kv,
            self.compute + other.compute,
            self.layer + other.layer,
        )


@dataclass(frozen=True, slots=True)
class EngineMultipliers:
    """Multipliers of one engine class on GPU time, fixed overheads, per-sequence overhead, prompts and request path.

    A `layer_split` engine runs its pipeline stages one after the other, with one batch at a time; `capped_kernels`
    marks matrix kernels that saturate at `kernel_flops_per_s`.
    """

    generation: str
    gpu_time: float
    overhead: float
    sequence: float
    prefill: float
    request: float
    layer_split: bool = False
    capped_kernels: bool = False

    def slower(self, factor: float) -> EngineMultipliers:
        """Return the multipliers with every step time multiplied by `factor`; prompts follow, being ratios to steps."""
        if factor == 1.0:
            return self
        return replace(
            self, gpu_time=self.gpu_time * factor, overhead=self.overhead * factor, sequence=self.sequence * factor
        )


@dataclass(frozen=True, slots=True)
class SpeedConstants:
    """All constants of the speed model in base units; the YAML file holds the meaning and the source of each.

    Shares are of datasheet rates, factors multiply shares, `*_tokens` are token counts. `architectures`, `gpus` and `families` map
    names to offsets, `generations` and `engines` to multipliers, `levels` combinations to the logarithm of a factor on
    all step times.
    """

    weight_bandwidth_share: float
    expert_bandwidth_factor: float
    kv_bandwidth_share: float
    kv8_bandwidth_factor: float
    kv_group_exponent: float
    kv_head_exponent: float
    mla_compute_share: float
    gemm_compute_share: float
    gemm_half_tokens: float
    fp8_compute_factor: float
    fp8_block_compute_factor: float
    fp4_compute_factor: float
    expert_compute_factor: float
    expert_half_tokens: float
    expert_tile_tokens: float
    expert_imbalance: float
    dequantise_excess: float
    prefill_attention_share: float
    roofline_exponent: float
    streaming_ceiling_share: float
    streaming_ceiling_exponent: float
    layer_s: float
    moe_layer_s: float
    step_s: float
    sequence_s: float
    allreduce_latency_nvlink_s: float
    allreduce_latency_xgmi_s: float
    allreduce_latency_pcie_s: float
    allreduce_latency_doubling: float
    allreduce_share_nvlink: float
    allreduce_share_xgmi: float
    allreduce_share_pcie: float
    alltoall_latency_s: float
    alltoall_latency_pcie_factor: float
    alltoall_share: float
    alltoall_share_pcie: float
    network_latency_s: float
    network_share: float
    network_bytes_per_s: float
    pipeline_stage_excess: float
    runtime_bytes: float
    reserved_output_share: float
    held_output_share: float
    memory_share_reserve: float
    memory_share_preempt: float
    request_path_s: float
    burst_weight: float
    kernel_flops_per_s: float
    architectures: Mapping[str, Offsets]
    gpus: Mapping[str, Offsets]
    families: Mapping[str, Offsets]
    generations: Mapping[str, EngineMultipliers]
    engines: Mapping[str, EngineMultipliers]
    levels: Mapping[Combination, float] = field(default_factory=dict)

    @classmethod
    def from_mapping(cls, data: Mapping[str, Any]) -> SpeedConstants:
        """Read the constants from the parsed calibration file. Raises `ValueError` naming what is missing or wrong."""
        generations = _engines(data, "generations")
        if UNKNOWN_ENGINE_GENERATION not in generations:
            raise ValueError(f"calibration: generations.{UNKNOWN_ENGINE_GENERATION} is missing")
        return cls(
            **_scalars(data, tuple(f.name for f in fields(cls) if f.name not in _TABLES)),
            architectures=_offsets(data, "architectures"),
            gpus=_offsets(data, "gpus"),
            families=_offsets(data, "families"),
            generations=generations,
            engines=_engines(data, "engines"),
            levels=_levels(data),
        )

    def level(self, combination: Combination) -> float:
        """Return the factor on all step times that measurements of this very combination ask for, 1 without any."""
        return math.exp(self.levels.get(combination, 0.0))

    def offsets(self, gpu: str, architecture_class: str, family: str = "") -> Offsets:
        """Return the sum of the offsets of a GPU, its architecture class and a kind of model family; zero where unknown."""
        device = self.architectures.get(architecture_class, Offsets()) + self.gpus.get(gpu, Offsets())
        return device + self.families.get(family, Offsets())

    def engine(self, engine_class: str) -> EngineMultipliers:
        """Return the multipliers of an engine class; a class without a line takes that of its generation.

        A generation's name is a class of its own. Any other name counts as a current engine.
        """
        line = self.engines.get(engine_class) or self.generations.get(engine_class)
        return line or self.generations[UNKNOWN_ENGINE_GENERATION]


_TABLES = frozenset({"architectures", "gpus", "families", "generations", "engines", "levels"})


def _scalars(data: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, float]:
    rows = _section(data, "constants")
    unknown = sorted(str(name) for name in rows if name not in names)
    if unknown:
        raise ValueError(f"calibration: constants.{unknown[0]} is not a constant of the speed model")
    return {name: _not_negative(_section(rows, name, "constants"), "value", f"constants.{name}") for name in names}


def _section(data: Mapping[str, Any], key: str, where: str = "") -> Mapping[str, Any]:
    value = data.get(key)
    if value is None:
        raise ValueError(f"calibration: {_join(where, key)} is missing")
    if not isinstance(value, Mapping):
        raise ValueError(f"calibration: {_join(where, key)} must be a mapping, got {value!r}")
    return value


def _number(data: Mapping[str, Any], key: str, where: str) -> float:
    value = data.get(key)
    if value is None:
        raise ValueError(f"calibration: {where}.{key} is missing")
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"calibration: {where}.{key} must be a finite number, got {value!r}")
    return float(value)


def _not_negative(data: Mapping[str, Any], key: str, where: str) -> float:
    value = _number(data, key, where)
    if value < 0:
        raise ValueError(f"calibration: {where}.{key} must not be negative, got {value:g}")
    return value


def _positive(data: Mapping[str, Any], key: str, where: str) -> float:
    value = _number(data, key, where)
    if value <= 0:
        raise ValueError(f"calibration: {where}.{key} must be above zero, got {value:g}")
    return value


def _offsets(data: Mapping[str, Any], table: str) -> dict[str, Offsets]:
    names = tuple(f.name for f in fields(Offsets))
    rows = _section(data, table)
    return {
        str(row): Offsets(**{name: _number(_section(rows, row, table), name, f"{table}.{row}") for name in names})
        for row in sorted(rows)
    }


def _engines(data: Mapping[str, Any], table: str) -> dict[str, EngineMultipliers]:
    rows = _section(data, table)
    return {str(row): _engine(_section(rows, row, table), f"{table}.{row}") for row in sorted(rows)}


def _levels(data: Mapping[str, Any]) -> dict[Combination, float]:
    rows = data.get("levels", [])
    if not isinstance(rows, list) or not all(isinstance(row, Mapping) for row in rows):
        raise ValueError("calibration: levels must be a list of mappings")
    found: dict[Combination, float] = {}
    for index, row in enumerate(rows):
        parts = [row.get(key) for key in ("engine_class", "gpu", "family", "weights")]
        if not all(isinstance(part, str) for part in parts):
            raise ValueError(f"calibration: levels[{index}] needs engine_class, gpu, family and weights")
        found[parts[0], parts[1], parts[2], parts[3]] = _number(row, "log_time", f"levels[{index}]")
    return found


def _engine(row: Mapping[str, Any], where: str) -> EngineMultipliers:
    numbers = ("gpu_time", "overhead", "sequence", "prefill", "request")
    generation = row.get("generation")
    if not isinstance(generation, str):
        raise ValueError(f"calibration: {where}.generation must be a name, got {generation!r}")
    return EngineMultipliers(
        generation=generation,
        layer_split=row.get("layer_split", False) is True,
        capped_kernels=row.get("capped_kernels", False) is True,
        **{name: _positive(row, name, where) for name in numbers},
    )


def _join(where: str, key: str) -> str:
    return f"{where}.{key}" if where else key
