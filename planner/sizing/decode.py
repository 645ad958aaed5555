"""Decode ceiling: bandwidth over the bytes that a step reads, and what of it to expect."""

from __future__ import annotations

from dataclasses import dataclass

from planner.physics.formats import weight_format
from planner.physics.textbook import (
    EXPECTED_BANDWIDTH_SHARES,
    decode_flops,
    nominal_weight_bytes,
    ridge_flop_per_byte,
    tokens_per_s,
)
from planner.sizing.advice import Advice, Scarce
from planner.sizing.inputs import Gpu, Subject

MS = 1e3
TERA = 1e12


@dataclass(frozen=True, slots=True)
class DecodeRow:
    """One combination. Bytes are what one GPU reads per step; collectives between GPUs are left out.

    `weights_ceiling_tok_s` reads weights only. `ceiling_tok_s` also reads the cache and computes, whichever is
    slower; `expected_*` is the same at 70 and 85 % of the bandwidth. `*_over_first` compares with the first GPU.
    """

    model: str | None
    parameters: float
    gpu: str | None
    context_tokens: int | None
    batch: int
    weights: str
    kv: str
    tensor_parallel: int
    bandwidth_tb_s: float
    weights_bytes: float
    kv_bytes: float | None
    weights_ms: float
    kv_ms: float | None
    compute_ms: float | None
    step_ms: float
    weights_ceiling_tok_s: float
    kv_alone_tok_s: float | None
    ceiling_tok_s: float
    expected_low_tok_s: float
    expected_high_tok_s: float
    bandwidth_over_first: float | None
    compute_over_first: float | None
    scarce: str
    lever: str


def decode_row(
    subject: Subject,
    gpu: Gpu,
    context: int | None,
    batch: int,
    weights: str,
    kv: str,
    tensor: int,
    kv_memory: float | None,
    first: Gpu | None = None,
) -> DecodeRow:
    """Return the ceiling of one step of `batch` sequences at `context` tokens, on `tensor` GPUs.

    Without a context the cache is left out; `kv_memory` states its bytes on one GPU instead. Raises `SizingError`.
    """
    bandwidth = gpu.bandwidth()
    width = nominal_weight_bytes(weight_format(weights))
    weights_bytes = subject.step_parameters(batch) * width / tensor
    kv_bytes = _kv_bytes(subject, context, batch, kv, tensor, kv_memory)
    weights_s, kv_s = weights_bytes / bandwidth, (kv_bytes or 0.0) / bandwidth
    peak = gpu.known_peak(weights)
    compute_s = decode_flops(subject.active_parameters, batch) / tensor / peak if peak else 0.0
    low, high = EXPECTED_BANDWIDTH_SHARES
    read_s = weights_s + kv_s
    step_s = max(read_s, compute_s)
    balanced = subject.balanced_batch(ridge_flop_per_byte(peak, bandwidth), width) if peak else None
    advice = _advice(weights_bytes, kv_bytes or 0.0, compute_s > read_s, batch, balanced)
    return DecodeRow(
        model=subject.name,
        parameters=subject.parameters,
        gpu=gpu.name,
        context_tokens=context,
        batch=batch,
        weights=weights,
        kv=kv,
        tensor_parallel=tensor,
        bandwidth_tb_s=bandwidth / TERA,
        weights_bytes=weights_bytes,
        kv_bytes=kv_bytes,
        weights_ms=weights_s * MS,
        kv_ms=kv_s * MS if kv_bytes is not None else None,
        compute_ms=compute_s * MS if peak else None,
        step_ms=step_s * MS,
        weights_ceiling_tok_s=tokens_per_s(batch, weights_s),
        kv_alone_tok_s=tokens_per_s(batch, kv_s) if kv_bytes else None,
        ceiling_tok_s=tokens_per_s(batch, step_s),
        expected_low_tok_s=tokens_per_s(batch, max(read_s / low, compute_s)),
        expected_high_tok_s=tokens_per_s(batch, max(read_s / high, compute_s)),
        bandwidth_over_first=bandwidth / first.bandwidth() if first else None,
        compute_over_first=_ratio(peak, first.known_peak(weights)) if first else None,
        scarce=advice.scarce,
        lever=advice.lever,
    )


def _kv_bytes(
    subject: Subject, context: int | None, batch: int, kv: str, tensor: int, kv_memory: float | None
) -> float | None:
    if kv_memory is not None:
        return kv_memory
    return None if context is None else batch * subject.cache(kv, tensor).bytes_at(context)


def _ratio(value: float | None, first: float | None) -> float | None:
    return value / first if value and first else None


def _advice(weights_bytes: float, kv_bytes: float, is_computing: bool, batch: int, balanced: float | None) -> Advice:
    if is_computing:
        return Advice.of(Scarce.COMPUTE)
    if kv_bytes > weights_bytes:
        return Advice(Scarce.BANDWIDTH, "the cache is most of the step: quantise KV, a GQA model, or more bandwidth")
    if balanced and batch >= balanced:
        return Advice(Scarce.BANDWIDTH, "the cache keeps the step from the ridge: quantise KV, or more bandwidth")
    target = f" (towards {balanced:,.0f}, the ridge)" if balanced else ""
    return Advice(Scarce.BANDWIDTH, f"a larger batch{target}, fewer bytes per weight, or more bandwidth")
