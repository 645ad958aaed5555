"""Concurrency: how many sequences the memory holds, and how fast a step with all of them is."""

from __future__ import annotations

from dataclasses import dataclass
from math import floor

from planner.catalog.engine import EngineProfile
from planner.physics.formats import weight_format
from planner.physics.textbook import EXPECTED_BANDWIDTH_SHARES, nominal_weight_bytes, tokens_per_s
from planner.sizing.advice import Advice, Scarce
from planner.sizing.decode import MS
from planner.sizing.engine import engine_budget, engine_label
from planner.sizing.inputs import Gpu, Subject, Workspace


@dataclass(frozen=True, slots=True)
class ConcurrencyRow:
    """One combination; sizes and traffic are those of one GPU, `sequences` of the replica.

    `sequences` fill what weights and workspace leave. A step streams `kv_traffic` and the weights; `kv_alone_*` leaves
    the weights out, as some texts do. `engine_sequences` is what a real engine's cache holds.
    """

    model: str | None
    parameters: float
    gpu: str | None
    context_tokens: int
    weights: str
    kv: str
    tensor_parallel: int
    units: str
    memory_bytes: float
    weights_bytes: float
    workspace_bytes: float
    kv_room_bytes: float
    sequence_bytes: float
    sequences: int
    engine: str | None
    engine_sequences: int | None
    kv_traffic_bytes: float
    weights_traffic_bytes: float
    kv_alone_ms: float
    kv_alone_tok_s: float
    step_ms: float
    tok_s: float
    expected_low_tok_s: float
    expected_high_tok_s: float
    scarce: str
    lever: str


def concurrency_row(
    subject: Subject,
    gpu: Gpu,
    context: int | None,
    weights: str,
    kv: str,
    tensor: int,
    workspace: Workspace,
    weights_memory: float | None,
    units: str,
    engine: EngineProfile | None,
) -> ConcurrencyRow:
    """Return the sequences of `context` tokens that fit, and their step.

    `weights_memory` states the bytes of weights on one GPU for the room, the engine's too; traffic keeps parameters x width. Raises
    `SizingError`, `UnknownArchitecture`.
    """
    memory, bandwidth = gpu.memory(), gpu.bandwidth()
    held = subject.weights_bytes(weights) / tensor if weights_memory is None else weights_memory
    cache = subject.cache(kv, tensor)
    tokens = subject.context(context) or 1
    room = memory - held - workspace.of(memory)
    sequences = max(floor(room / cache.bytes_at(tokens)), 0)
    traffic = sequences * cache.bytes_at(tokens)
    width = nominal_weight_bytes(weight_format(weights))
    read = subject.step_parameters(max(sequences, 1)) * width / tensor
    step_s = (traffic + read) / bandwidth
    low, high = EXPECTED_BANDWIDTH_SHARES
    budget = engine_budget(engine, subject, gpu, weights, kv, tensor, tokens, weights_memory)
    advice = _advice(sequences, traffic, read)
    return ConcurrencyRow(
        model=subject.name,
        parameters=subject.parameters,
        gpu=gpu.name,
        context_tokens=tokens,
        weights=weights,
        kv=kv,
        tensor_parallel=tensor,
        units=units,
        memory_bytes=memory,
        weights_bytes=held,
        workspace_bytes=workspace.of(memory),
        kv_room_bytes=room,
        sequence_bytes=cache.bytes_at(tokens),
        sequences=sequences,
        engine=engine_label(engine, budget),
        engine_sequences=budget.max_sequences(tokens) if budget else None,
        kv_traffic_bytes=traffic,
        weights_traffic_bytes=read,
        kv_alone_ms=traffic / bandwidth * MS,
        kv_alone_tok_s=tokens_per_s(sequences, traffic / bandwidth),
        step_ms=step_s * MS,
        tok_s=tokens_per_s(sequences, step_s),
        expected_low_tok_s=tokens_per_s(sequences, step_s / low),
        expected_high_tok_s=tokens_per_s(sequences, step_s / high),
        scarce=advice.scarce,
        lever=advice.lever,
    )


def _advice(sequences: int, traffic: float, weights: float) -> Advice:
    if sequences == 0:
        return Advice.of(Scarce.CAPACITY)
    if traffic < weights:
        return Advice(
            Scarce.CAPACITY, "memory ends the batch while weights are most of a step: quantise weights or KV, or shard"
        )
    return Advice(
        Scarce.BANDWIDTH, "the cache is most of a step: quantise KV, a GQA model, shorter contexts, or more bandwidth"
    )
