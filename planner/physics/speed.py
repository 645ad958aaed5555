"""Speed of one shape on one device and engine: folds bytes, FLOPs, rates and overheads into step coefficients.

The public front of the speed model: `coefficients` once per shape, `stack` to rate many together, `step_parts` per load.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from planner.physics.bands import family_kind
from planner.physics.collectives import collectives
from planner.physics.constants import EngineMultipliers, SpeedConstants
from planner.physics.memory import (
    KvFootprint,
    KvRules,
    ParameterSplit,
    component_bytes,
    component_formats,
    kv_footprint,
    split_parameters,
)
from planner.physics.resources import (
    ResourceSeconds,
    bandwidth_floor_s,
    compute_floor_s,
    resource_seconds,
    step_bytes,
    step_flops,
)
from planner.physics.roofline import Rates, pipeline_factor, rates
from planner.physics.step import Array, StepCoefficients, StepParts, Values, stack, step_parts, step_s
from planner.physics.types import Architecture, Device, Layout

FLOPS_PER_PARAMETER = 2.0
"""One multiply-add per parameter and token."""

ATTENTION_FLOPS = 4.0
"""Scores and weighted values: two multiply-adds per query element and attended token."""

STREAMED = KvRules(chunked_windows=True, grouped_layers=False, window_slack_tokens=0, cross_layers=False)
"""What attention reads of the cache, as opposed to what the engine reserves: exactly the window, in chunked layers too."""

STATE_PASSES = 2.0
"""A recurrent state is read and written once per step."""


@dataclass(frozen=True, slots=True)
class Shape:
    """A model in its formats on a layout of a device: all that step coefficients need and no constant changes."""

    arch: Architecture
    device: Device
    layout: Layout
    weights: str
    kv: str
    formats: Mapping[str, str]
    bytes_per_parameter: Mapping[str, float]
    split: ParameterSplit
    streamed: KvFootprint

    @classmethod
    def of(cls, arch: Architecture, device: Device, layout: Layout, weights: str, kv: str) -> Shape:
        """Size a shape; `streamed` is the cache of all pipeline stages together. Raises as `coefficients`."""
        cache = kv_footprint(arch, replace(layout, pipeline=1), kv, STREAMED)
        formats, sizes = component_formats(arch, weights), component_bytes(arch, weights)
        return cls(arch, device, layout, weights, kv, formats, sizes, split_parameters(arch), cache)


def coefficients(
    arch: Architecture,
    device: Device,
    layout: Layout,
    weights: str,
    kv: str,
    engine_class: str,
    constants: SpeedConstants,
) -> StepCoefficients:
    """Fold everything that does not depend on the load into step coefficients, as plain floats.

    `weights` and `kv` are names of `planner.physics.memory` formats, `engine_class` a key of the engine table (an
    unknown one takes its generation's line). Source: catalog/calibration (time of one iteration). Raises `ValueError`
    for an unknown format (`UnknownFormat`), a model that cannot be computed (`UnknownArchitecture`), or a layout over
    several GPUs of a device without links.
    """
    return shape_coefficients(Shape.of(arch, device, layout, weights, kv), engine_class, constants)


def shape_coefficients(shape: Shape, engine_class: str, constants: SpeedConstants) -> StepCoefficients:
    """Return the `coefficients` of a shape that was sized before: a fit asks for them under thousands of constants."""
    arch, device, layout = shape.arch, shape.device, shape.layout
    level = constants.level((engine_class, device.name, family_kind(arch), shape.weights))
    engine = constants.engine(engine_class).slower(level)
    speeds = rates(arch, device, layout, shape.formats, shape.kv, engine, constants)
    return StepCoefficients(
        **_dense(shape, speeds),
        **_experts(shape, speeds),
        **_attention(shape, speeds),
        **_communication(arch, device, layout, engine, constants),
        **_overheads(arch, device, engine, constants),
        **{name: getattr(speeds, name) for name in Rates.__slots__},
        half_tokens=constants.gemm_half_tokens * layout.attention_data,
        data_ranks=float(layout.attention_data),
        streams=1.0 if engine.layer_split else float(layout.pipeline),
        exponent=constants.roofline_exponent,
        expert_half_tokens=constants.expert_half_tokens,
        expert_tile_tokens=constants.expert_tile_tokens,
    )


def _dense(shape: Shape, speeds: Rates) -> dict[str, float]:
    """Weights that every token meets, split by tensor parallelism and copied by attention-data ranks."""
    split, sizes, layout = shape.split, shape.bytes_per_parameter, shape.layout
    ffn_bytes = (split.dense - split.small) * sizes["dense"] + split.small * sizes["small"]
    read, product = layout.tensor * speeds.weight_bytes_per_s, layout.tensor * layout.attention_data
    return {
        "attention_read_s": split.attention * sizes["attention"] / read,
        "attention_token_s": FLOPS_PER_PARAMETER * split.attention / product / speeds.attention_flops_per_s,
        "ffn_read_s": ffn_bytes / read,
        "ffn_token_s": FLOPS_PER_PARAMETER * split.dense / product / speeds.ffn_flops_per_s,
        "head_read_s": split.head * sizes["head"] / read,
        "head_token_s": FLOPS_PER_PARAMETER * split.head / product / speeds.head_flops_per_s,
    }


def _experts(shape: Shape, speeds: Rates) -> dict[str, float]:
    """Routed experts, spread over all GPUs; a dense model hits a single expert without weights."""
    arch, layout, parameters = shape.arch, shape.layout, shape.split.experts
    if not arch.is_moe:
        return {"expert_read_s": 0.0, "expert_token_s": 0.0, "expert_share": 1.0, "expert_miss_log": -1.0}
    gpus = layout.tensor * layout.attention_data
    share = arch.experts_per_token / arch.n_experts
    return {
        "expert_read_s": parameters * shape.bytes_per_parameter["experts"] / gpus / speeds.expert_bytes_per_s,
        "expert_token_s": FLOPS_PER_PARAMETER * parameters / gpus / speeds.expert_flops_per_s,
        "expert_share": share,
        "expert_miss_log": math.log1p(-share) if share < 1.0 else -math.inf,
    }


def _attention(shape: Shape, speeds: Rates) -> dict[str, float]:
    """Reads of the cache while decoding, and score FLOPs of prompts; all stages of a pipeline together."""
    arch, layout, cache = shape.arch, shape.layout, shape.streamed
    streamed = layout.attention_data * speeds.kv_bytes_per_s
    local = cache.local_bytes_per_token / (cache.local_bytes_per_token + cache.global_bytes_per_token)
    gpus = layout.tensor * layout.attention_data
    scores = ATTENTION_FLOPS * score_width(arch) * arch.n_attention_layers / gpus / speeds.prefill_flops_per_s
    latent = FLOPS_PER_PARAMETER * (2 * arch.kv_lora_rank + arch.qk_rope_head_dim) * arch.n_heads
    return {
        "kv_global_s": cache.global_bytes_per_token / streamed,
        "kv_local_s": cache.local_bytes_per_token / streamed,
        "window_tokens": cache.window_tokens,
        "state_s": STATE_PASSES * cache.fixed_bytes / streamed,
        "mla_token_s": latent * arch.n_attention_layers / gpus / speeds.mla_flops_per_s if arch.is_mla else 0.0,
        "prefill_global_s": scores * (1.0 - local),
        "prefill_local_s": scores * local,
    }


def score_width(arch: Architecture) -> float:
    """Elements per token that scores and weighted values multiply, averaged over both, over all query heads."""
    if arch.is_mla:
        return arch.n_heads * (arch.qk_rope_head_dim + arch.qk_nope_head_dim + arch.v_head_dim) / 2
    return float(arch.n_heads * arch.head_dim)


def _communication(
    arch: Architecture, device: Device, layout: Layout, engine: EngineMultipliers, constants: SpeedConstants
) -> dict[str, float]:
    """Collectives are GPU time: the engine's multiplier and the pipeline slowdown apply."""
    slowdown = engine.gpu_time * pipeline_factor(layout, engine, constants)
    talk = collectives(arch, device, layout, constants)
    return {
        "collective_step_s": talk.step_s * slowdown,
        "allreduce_token_s": talk.allreduce_token_s * slowdown,
        "alltoall_token_s": talk.alltoall_token_s * slowdown,
        "hop_token_s": talk.hop_token_s * slowdown,
    }


def _overheads(
    arch: Architecture, device: Device, engine: EngineMultipliers, constants: SpeedConstants
) -> dict[str, float]:
    """Fixed times per layer, step, sequence and request, and the engine's factor on prompts."""
    slower = math.exp(constants.offsets(device.name, device.architecture_class, family_kind(arch)).layer)
    layers = arch.n_layers * constants.layer_s + arch.n_moe_layers * constants.moe_layer_s
    return {
        "layers_s": engine.overhead * slower * layers,
        "host_step_s": engine.overhead * constants.step_s,
        "host_sequence_s": engine.sequence * constants.sequence_s,
        "prefill_factor": engine.prefill,
        "request_s": engine.request * constants.request_path_s,
    }


__all__ = [
    "Array",
    "ResourceSeconds",
    "Shape",
    "SpeedConstants",
    "StepCoefficients",
    "StepParts",
    "Values",
    "bandwidth_floor_s",
    "coefficients",
    "compute_floor_s",
    "resource_seconds",
    "shape_coefficients",
    "stack",
    "step_bytes",
    "step_flops",
    "step_parts",
    "step_s",
]
