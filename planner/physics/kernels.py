"""Number formats that engines and GPUs have kernels for, and the rate at which a GPU multiplies them."""

from __future__ import annotations

from planner.physics.formats import WEIGHT_FORMATS, weight_format
from planner.physics.types import Device

GGUF_ENGINE = "llama.cpp"
GGUF_WEIGHTS = frozenset(name for name, fmt in WEIGHT_FORMATS.items() if fmt.embedding.startswith("q"))
GGUF_KV = frozenset({"bf16", "fp16", "int8", "int4"})
WIDE_WEIGHTS = frozenset({"bf16", "fp16", "fp32"})
NEEDS_NATIVE_FP4 = frozenset({"nvfp4"})
SLOW_SHARE = 0.25
"""Below this share of the 16-bit rate, the units of a format are a remnant and no reason to choose it."""


def unsupported(engine: str, weights: str, kv_cache: str, device: Device) -> str | None:
    """Return why `engine` cannot serve a pair of formats on `device`, None when it can."""
    if weights in GGUF_WEIGHTS and engine != GGUF_ENGINE:
        return f"{weights} is a llama.cpp format; the engine is {engine}"
    if engine == GGUF_ENGINE and weights not in GGUF_WEIGHTS | WIDE_WEIGHTS:
        return f"llama.cpp reads GGUF formats and 16-bit weights, not {weights}"
    if engine == GGUF_ENGINE and kv_cache not in GGUF_KV:
        return f"llama.cpp has no {kv_cache} KV cache; it has {', '.join(sorted(GGUF_KV))}"
    if kv_cache in NEEDS_NATIVE_FP4 and "fp4" not in device.flops:
        return f"{kv_cache} KV cache needs native 4-bit floating point, which {device.name} lacks"
    return None


def is_weight_only(weights: str, device: Device) -> bool:
    """Tell whether weights narrower than 16 bits are widened before they are multiplied, for want of hardware."""
    fmt = weight_format(weights)
    return fmt.quantised and (fmt.peak == "bf16" or fmt.peak not in device.flops)


def remnant_rate(weights: str, device: Device) -> float | None:
    """Return the FLOP/s of a format whose units on `device` are slow beside 16 bits, None where they are not."""
    rate = device.flops.get(weight_format(weights).peak)
    return rate if rate is not None and rate < SLOW_SHARE * device.flops["bf16"] else None
