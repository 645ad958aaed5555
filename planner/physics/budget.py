"""HBM budget of one GPU: what an engine leaves for the KV cache after weights, activations, runtime and graphs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from math import ceil, floor

from planner.physics.engine_memory import EngineMemory, FractionOf
from planner.physics.footprint import KvFootprint
from planner.physics.kv import kv_footprint
from planner.physics.types import Architecture, Device, Layout
from planner.physics.weights import weights_bytes


class Outcome(StrEnum):
    """How a start-up ends: `oom` is at load or at graph capture, `kv_too_small` holds not one longest sequence."""

    OK = "ok"
    OOM = "oom"
    KV_TOO_SMALL = "kv_too_small"


@dataclass(frozen=True, slots=True)
class Extras:
    """What else one GPU holds beside the model: adapters and a draft model, and what the draft caches per token."""

    weights_bytes: float = 0.0
    kv_bytes_per_token: float = 0.0


NOTHING_EXTRA = Extras()
MEDIA_ITEMS = 2
"""Unless prompts are limited, engines profile the largest image and the largest video (start-up logs of a 7B VLM)."""


@dataclass(frozen=True, slots=True)
class HbmBudget:
    """Whole bytes of one GPU, the fullest of the replica. The six parts after `usable_bytes` sum to it exactly.

    `free_bytes` is what no part claims; negative when the parts do not fit. `kv` is the cache of one sequence.
    `kv_tokens` and `max_concurrency` are of the whole replica (all attention-data groups) and at `max_model_len`, as
    engines print them at start-up. `longest_bytes` is what one sequence of that length reserves when it is admitted;
    `fits` needs room for it, as engines do. `shortfall_bytes` is what is missing per GPU, 0 when it fits.
    """

    usable_bytes: float
    weights_bytes: float
    kv_pool_bytes: float
    activation_bytes: float
    runtime_bytes: float
    graph_bytes: float
    free_bytes: float
    kv: KvFootprint
    longest_bytes: float
    kv_tokens: float
    max_concurrency: float
    shortfall_bytes: float

    @property
    def outcome(self) -> Outcome:
        """Tell how a start-up would end, checked in the engine's order: load, size the cache, capture graphs."""
        if self.weights_bytes + self.runtime_bytes > self.usable_bytes:
            return Outcome.OOM
        if self.kv_pool_bytes < self.longest_bytes:
            return Outcome.KV_TOO_SMALL
        return Outcome.OK if self.free_bytes >= 0.0 else Outcome.OOM

    @property
    def fits(self) -> bool:
        """Tell whether the engine starts and can serve one sequence of the longest length."""
        return self.outcome is Outcome.OK

    def max_sequences(self, tokens: float) -> int:
        """Give how many sequences of `tokens` tokens one GPU holds at once (per attention-data group)."""
        need = self.kv.bytes_at(tokens)
        return floor(self.kv_pool_bytes / need) if need > 0 else 0


def hbm_budget(
    arch: Architecture,
    device: Device,
    layout: Layout,
    weights: str,
    kv: str,
    engine: EngineMemory,
    max_num_seqs: int,
    max_num_batched_tokens: int,
    max_model_len: int,
    memory_fraction: float | None = None,
    chunked_prefill: bool = True,
    extras: Extras = NOTHING_EXTRA,
    media_items: int = MEDIA_ITEMS,
) -> HbmBudget:
    """Divide the usable memory of one GPU as `engine` does at start-up.

    `memory_fraction` (0 to 1) defaults to the engine's. Without chunked prefill a batch is at least one whole prompt
    of `max_model_len`. `extras` stay in memory beside the model and count as weights.
    `media_items` is how many images and videos of the largest size an engine profiles for one prompt. Raises `UnknownArchitecture` or `UnknownFormat`.
    """
    batched = max_num_batched_tokens if chunked_prefill else max(max_num_batched_tokens, max_model_len)
    parts = _Parts(
        usable=float(floor(device.usable_bytes)),
        weights=float(ceil(weights_bytes(arch, layout, weights, engine.mla_absorbed) + extras.weights_bytes)),
        activations=float(ceil(engine.activation_bytes(arch, layout, max_num_seqs, batched, media_items))),
        runtime=float(ceil(engine.runtime_bytes(layout.tensor))),
        graphs=float(ceil(engine.graph_bytes(arch, layout))),
    )
    fraction = engine.default_fraction if memory_fraction is None else memory_fraction
    room = float(floor(_pool(parts, engine, fraction)))
    footprint = kv_footprint(arch, layout, kv, engine.kv_rules())
    longest = _longest_bytes(arch, layout, kv, engine, batched, max_model_len)
    if extras.kv_bytes_per_token:
        slope = footprint.global_bytes_per_token + extras.kv_bytes_per_token
        footprint = replace(footprint, global_bytes_per_token=slope)
        longest += extras.kv_bytes_per_token * max_model_len
    return _budget(parts, room, footprint, longest, max_model_len, layout.attention_data)


@dataclass(frozen=True, slots=True)
class _Parts:
    usable: float
    weights: float
    activations: float
    runtime: float
    graphs: float

    @property
    def claimed(self) -> float:
        return self.weights + self.activations + self.runtime + self.graphs


def _pool(parts: _Parts, engine: EngineMemory, fraction: float) -> float:
    """Give the bytes an engine would allocate for its cache; negative when the rest does not fit."""
    match engine.fraction_of:
        case FractionOf.TOTAL:
            outside = 0.0 if engine.graphs_in_budget else parts.graphs
            return fraction * parts.usable - (parts.claimed - outside)
        case FractionOf.FREE_AFTER_LOAD:
            return fraction * (parts.usable - parts.claimed)
        case FractionOf.STATIC:
            return fraction * parts.usable - parts.weights - parts.runtime
        case FractionOf.NONE:
            return parts.usable - parts.claimed - engine.margin_bytes


def _longest_bytes(
    arch: Architecture, layout: Layout, kv: str, engine: EngineMemory, batched_tokens: int, max_model_len: int
) -> float:
    # Engines admit on the worst case: a local layer holds its window and a whole batch of new tokens.
    rules = engine.kv_rules(batched_tokens - 1 if engine.grouped_kv else None)
    held = kv_footprint(arch, layout, kv, rules)
    block = held.block_tokens or engine.block_size_tokens
    return held.bytes_at(ceil(max_model_len / block) * block)


def _budget(
    parts: _Parts, room: float, footprint: KvFootprint, longest: float, max_model_len: int, groups: int
) -> HbmBudget:
    pool = max(room, 0.0)
    free = parts.usable - parts.claimed - pool
    concurrency = pool / longest * groups
    return HbmBudget(
        usable_bytes=parts.usable,
        weights_bytes=parts.weights,
        kv_pool_bytes=pool,
        activation_bytes=parts.activations,
        runtime_bytes=parts.runtime,
        graph_bytes=parts.graphs,
        free_bytes=free,
        kv=footprint,
        longest_bytes=longest,
        kv_tokens=concurrency * max_model_len,
        max_concurrency=concurrency,
        shortfall_bytes=max(longest - room, -free, 0.0),
    )
