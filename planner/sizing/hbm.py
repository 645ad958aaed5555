"""HBM budget of one GPU: weights + KV + workspace by the rule of thumb, and the engine's real parts beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from planner.catalog.engine import EngineProfile
from planner.physics.memory import HbmBudget, Outcome
from planner.sizing.advice import Advice, Scarce
from planner.sizing.engine import engine_budget, engine_label
from planner.sizing.inputs import Gpu, Subject, Workspace

MOST_SHARDS = 64


@dataclass(frozen=True, slots=True)
class HbmRow:
    """One combination, per GPU. Shares are of the memory on the label; negative sizes are what is missing.

    `after_weights` is what weights alone leave, `kv_room` what weights and workspace leave, `free` what all three
    leave. The `engine_*` fields divide what software sees of the memory; `engine_outside` is what the engine's memory
    fraction leaves unused, `engine_sequences` what its pool holds at this context. Absent for models or GPUs that are
    no catalog entries.
    """

    model: str | None
    parameters: float
    gpu: str | None
    context_tokens: int | None
    batch: int
    weights: str
    kv: str
    tensor_parallel: int
    units: str
    memory_bytes: float
    weights_bytes: float
    weights_share: float
    kv_bytes: float | None
    kv_share: float | None
    workspace_bytes: float
    workspace_share: float
    after_weights_bytes: float
    kv_room_bytes: float
    kv_room_share: float
    free_bytes: float
    fits: bool
    engine: str | None
    engine_usable_bytes: float | None
    engine_weights_bytes: float | None
    engine_kv_pool_bytes: float | None
    engine_activations_bytes: float | None
    engine_runtime_bytes: float | None
    engine_graphs_bytes: float | None
    engine_outside_bytes: float | None
    engine_sequences: int | None
    engine_free_bytes: float | None
    engine_fits: bool | None
    scarce: str
    lever: str


@dataclass(frozen=True, slots=True)
class _Need:
    """What one GPU must hold, in bytes."""

    memory: float
    weights: float
    kv: float
    workspace: float

    @property
    def free(self) -> float:
        return self.memory - self.weights - self.kv - self.workspace


def hbm_row(
    subject: Subject,
    gpu: Gpu,
    context: int | None,
    batch: int,
    weights: str,
    kv: str,
    tensor: int,
    workspace: Workspace,
    units: str,
    engine: EngineProfile | None,
) -> HbmRow:
    """Return the budget of `batch` sequences of `context` tokens. Raises `SizingError`, `UnknownArchitecture`."""
    tokens = subject.context(context)

    def need_of(weights: str, kv: str, tensor: int) -> _Need:
        memory = gpu.memory()
        cache = batch * subject.cache(kv, tensor).bytes_at(tokens or 0) if tokens or batch > 1 else 0.0
        return _Need(memory, subject.weights_bytes(weights) / tensor, cache, workspace.of(memory))

    need = need_of(weights, kv, tensor)
    budget = engine_budget(engine, subject, gpu, weights, kv, tensor, tokens) if tokens else None
    room = need.memory - need.weights - need.workspace
    advice = _advice(need, need_of, _ways(subject, weights, kv, tensor))
    return HbmRow(
        model=subject.name,
        parameters=subject.parameters,
        gpu=gpu.name,
        context_tokens=tokens,
        batch=batch,
        weights=weights,
        kv=kv,
        tensor_parallel=tensor,
        units=units,
        memory_bytes=need.memory,
        weights_bytes=need.weights,
        weights_share=need.weights / need.memory,
        kv_bytes=need.kv if tokens else None,
        kv_share=need.kv / need.memory if tokens else None,
        workspace_bytes=need.workspace,
        workspace_share=need.workspace / need.memory,
        after_weights_bytes=need.memory - need.weights,
        kv_room_bytes=room,
        kv_room_share=room / need.memory,
        free_bytes=need.free,
        fits=need.free >= 0.0,
        engine=engine_label(engine, budget),
        engine_usable_bytes=budget.usable_bytes if budget else None,
        engine_weights_bytes=budget.weights_bytes if budget else None,
        engine_kv_pool_bytes=budget.kv_pool_bytes if budget else None,
        engine_activations_bytes=budget.activation_bytes if budget else None,
        engine_runtime_bytes=budget.runtime_bytes if budget else None,
        engine_graphs_bytes=budget.graph_bytes if budget else None,
        engine_outside_bytes=budget.free_bytes if budget else None,
        engine_sequences=budget.max_sequences(tokens) if budget and tokens else None,
        engine_free_bytes=_engine_free(budget, tokens, batch) if budget and tokens else None,
        engine_fits=_engine_free(budget, tokens, batch) >= 0.0 if budget and tokens else None,
        scarce=advice.scarce,
        lever=advice.lever,
    )


def _engine_free(budget: HbmBudget, tokens: int, batch: int) -> float:
    if budget.outcome is not Outcome.OK:
        return -budget.shortfall_bytes
    return budget.kv_pool_bytes - batch * budget.kv.bytes_at(tokens)


def _advice(now: _Need, need_of: Callable[[str, str, int], _Need], ways: Iterable[tuple[str, str, str, int]]) -> Advice:
    """Name the first change that makes the budget fit: narrower weights, narrower cache, both, then more GPUs."""
    if now.free >= 0.0:
        return Advice(Scarce.NONE, "it fits: use what is free for a larger batch or longer contexts")
    for label, weights, kv, shards in ways:
        if need_of(weights, kv, shards).free >= 0.0:
            return Advice.of(Scarce.CAPACITY, f"fits with {label}")
    return Advice(Scarce.CAPACITY, "nothing tried fits: a smaller model, a smaller batch, or shorter contexts")


def _ways(subject: Subject, weights: str, kv: str, tensor: int) -> Iterator[tuple[str, str, str, int]]:
    now = subject.weights_bytes(weights)
    narrower = [name for name in ("int8", "int4") if subject.weights_bytes(name) < now]
    kv_names = (
        ["fp8"] if subject.has_cache_shape and subject.cache("fp8").bytes_at(1) < subject.cache(kv).bytes_at(1) else []
    )
    yield from ((f"{w} weights", w, kv, tensor) for w in narrower)
    yield from ((f"{k} KV", weights, k, tensor) for k in kv_names)
    yield from ((f"{w} weights and {k} KV", w, k, tensor) for w in narrower for k in kv_names)
    shards = tensor * 2
    while shards <= MOST_SHARDS:
        yield f"{shards} GPUs (TP{shards})", weights, kv, shards
        shards *= 2
