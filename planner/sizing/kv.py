"""KV cache: what a token, a sequence and a batch take, beside the weights."""

from __future__ import annotations

from dataclasses import dataclass

from planner.physics.textbook import contiguous_waste, kv_elements_per_token, paged_waste
from planner.sizing.advice import Advice, Scarce
from planner.sizing.inputs import ELEMENT_BYTES, SizingError, Subject

_GB = 1e9
_GIB = 2.0**30


@dataclass(frozen=True, slots=True)
class KvRow:
    """One combination. `stored_bytes_per_token` adds the scales that engines keep beside narrow formats.

    `kv_*` is the whole batch over all GPUs, copies not counted; `kv_gb_per_gpu` the fullest GPU. Shares of 1:
    `kv_over_weights_share` of the weights, `*_waste_share` of what one sequence is given.
    """

    model: str | None
    parameters: float | None
    kv_heads: int | None
    context_tokens: int
    batch: int
    weights: str
    kv: str
    tensor_parallel: int
    elements_per_token: int
    bytes_per_token: float
    stored_bytes_per_token: float
    sequence_gb: float
    kv_gb: float
    kv_gib: float
    kv_gb_per_gpu: float
    weights_gb: float | None
    kv_over_weights_share: float | None
    saving_over_multi_head: float | None
    contiguous_waste_share: float | None
    paged_waste_share: float | None
    scarce: str
    lever: str


def kv_row(
    subject: Subject, context: int | None, batch: int, weights: str, kv: str, tensor: int, reserve: int | None
) -> KvRow:
    """Return the cache of `batch` sequences of `context` tokens.

    `reserve` is the length that an allocator without pages sets aside per sequence. Raises `SizingError`, also for
    one that is shorter than the context.
    """
    whole, per_gpu, stored = subject.cache(kv), subject.cache(kv, tensor), subject.cache(kv, stored=True)
    elements = subject.cache("bf16")
    tokens = subject.context(context) or 1
    if reserve is not None and reserve < tokens:
        raise SizingError(f"--reserve: {reserve:,} tokens do not hold the {tokens:,} of --context")
    known = subject.known_parameters
    weight_bytes = subject.weights_bytes(weights) if known else None
    kv_bytes = batch * whole.bytes_at(tokens)
    share = kv_bytes / weight_bytes if weight_bytes else None
    advice = _advice(subject, kv, share)
    return KvRow(
        model=subject.name,
        parameters=known,
        kv_heads=subject.arch.n_kv_heads or None,
        context_tokens=tokens,
        batch=batch,
        weights=weights,
        kv=kv,
        tensor_parallel=tensor,
        elements_per_token=round((elements.global_bytes_per_token + elements.local_bytes_per_token) / ELEMENT_BYTES),
        bytes_per_token=whole.global_bytes_per_token + whole.local_bytes_per_token,
        stored_bytes_per_token=stored.global_bytes_per_token + stored.local_bytes_per_token,
        sequence_gb=whole.bytes_at(tokens) / _GB,
        kv_gb=kv_bytes / _GB,
        kv_gib=kv_bytes / _GIB,
        kv_gb_per_gpu=batch * per_gpu.bytes_at(tokens) / _GB,
        weights_gb=weight_bytes / _GB if weight_bytes else None,
        kv_over_weights_share=share,
        saving_over_multi_head=_saving(subject),
        contiguous_waste_share=contiguous_waste(tokens, reserve) if reserve else None,
        paged_waste_share=paged_waste(tokens) if reserve else None,
        scarce=advice.scarce,
        lever=advice.lever,
    )


def _saving(subject: Subject) -> float | None:
    arch = subject.arch
    if not arch.n_heads or not arch.kv_elements_per_token:
        return None
    return kv_elements_per_token(arch.n_attention_layers, arch.n_heads, arch.head_dim) / arch.kv_elements_per_token


def _advice(subject: Subject, kv: str, share: float | None) -> Advice:
    if share is not None and share < 1.0:
        return Advice(Scarce.CAPACITY, "the weights are the larger part: quantise weights, or shard")
    ways = ["quantise KV"] if subject.cache(kv).bytes_at(1) > subject.cache("fp8").bytes_at(1) else []
    grouped = subject.arch.is_mla or subject.arch.n_heads > subject.arch.n_kv_heads
    ways += [] if grouped else ["a GQA model"]
    return Advice(Scarce.CAPACITY, "the cache is the larger part: " + ", ".join([*ways, "shorter contexts, or shard"]))
