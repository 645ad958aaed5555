"""Arithmetic intensity against the ridge of the roofline: where a batch lies, and where attention and prompts lie."""

from __future__ import annotations

from dataclasses import dataclass

from planner.physics.formats import kv_format, weight_format
from planner.physics.textbook import (
    Regime,
    attention_intensity,
    latent_attention_intensity,
    nominal_kv_bytes,
    nominal_weight_bytes,
    regime,
    ridge_flop_per_byte,
)
from planner.sizing.advice import Advice, Scarce
from planner.sizing.inputs import Gpu, Subject

TERA = 1e12


@dataclass(frozen=True, slots=True)
class IntensityRow:
    """One combination. Intensities and ridges in FLOP per byte; `rate` is the format whose compute rate is used.

    `ridge_*` are those of the formats that the GPU has hardware for. `balanced_batch` reaches the ridge. `prefill_*`
    is a prompt of `context_tokens` alone.
    """

    model: str | None
    gpu: str | None
    context_tokens: int | None
    batch: int
    weights: str
    kv: str
    rate: str
    peak_tflops: float
    bandwidth_tb_s: float
    ridge_flop_per_byte: float
    decode_flop_per_byte: float
    regime: str
    balanced_batch: float
    attention_flop_per_byte: float
    prefill_flop_per_byte: float | None
    prefill_regime: str | None
    ridge_bf16_flop_per_byte: float | None
    ridge_fp8_flop_per_byte: float | None
    ridge_int8_flop_per_byte: float | None
    ridge_fp4_flop_per_byte: float | None
    bandwidth_over_first: float | None
    compute_over_first: float | None
    scarce: str
    lever: str


def intensity_row(
    subject: Subject, gpu: Gpu, context: int | None, batch: int, weights: str, kv: str, first: Gpu | None = None
) -> IntensityRow:
    """Return the intensity of a decode step of `batch` sequences. A model is needed for its heads and experts only.

    Raises `SizingError` without peak or bandwidth.
    """
    peak, bandwidth = gpu.peak(weights), gpu.bandwidth()
    width = nominal_weight_bytes(weight_format(weights))
    ridge = ridge_flop_per_byte(peak, bandwidth)
    decode = subject.decode_intensity(batch, width)
    prefill = subject.decode_intensity(context, width) if context else None
    side = regime(decode, ridge)
    balanced = subject.balanced_batch(ridge, width)
    advice = _advice(side, balanced)
    ridges = {name: ridge_flop_per_byte(rate, bandwidth) for name, rate in gpu.flops.items()}
    return IntensityRow(
        model=subject.name,
        gpu=gpu.name,
        context_tokens=context,
        batch=batch,
        weights=weights,
        kv=kv,
        rate=gpu.rate_format(weights),
        peak_tflops=peak / TERA,
        bandwidth_tb_s=bandwidth / TERA,
        ridge_flop_per_byte=ridge,
        decode_flop_per_byte=decode,
        regime=side,
        balanced_batch=balanced,
        attention_flop_per_byte=_attention(subject, kv),
        prefill_flop_per_byte=prefill,
        prefill_regime=regime(prefill, ridge) if prefill else None,
        ridge_bf16_flop_per_byte=ridges.get("bf16"),
        ridge_fp8_flop_per_byte=ridges.get("fp8"),
        ridge_int8_flop_per_byte=ridges.get("int8"),
        ridge_fp4_flop_per_byte=ridges.get("fp4"),
        bandwidth_over_first=bandwidth / first.bandwidth() if first else None,
        compute_over_first=peak / first.peak(weights) if first else None,
        scarce=advice.scarce,
        lever=advice.lever,
    )


def _attention(subject: Subject, kv: str) -> float:
    arch, width = subject.arch, nominal_kv_bytes(kv_format(kv))
    if arch.is_mla:
        return latent_attention_intensity(arch.n_heads, arch.kv_lora_rank, arch.qk_rope_head_dim, width)
    if not arch.n_heads or not arch.n_kv_heads:
        return attention_intensity(1, 1, width)
    return attention_intensity(arch.n_heads, arch.n_kv_heads, width)


def _advice(side: Regime, balanced: float) -> Advice:
    if side is Regime.MEMORY:
        return Advice(
            Scarce.BANDWIDTH, f"a larger batch (towards {balanced:,.0f}), fewer bytes per weight, or more bandwidth"
        )
    if side is Regime.COMPUTE:
        return Advice.of(Scarce.COMPUTE)
    return Advice(Scarce.NONE, "bandwidth and compute are used alike: more throughput needs more of both, or more GPUs")
