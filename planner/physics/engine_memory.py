"""Memory constants of serving engines: activation peak, runtime, graphs, and what their memory fraction means."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass, fields
from enum import StrEnum
from math import log2
from typing import Any

from planner.physics.footprint import KvRules
from planner.physics.types import Architecture, Device, Layout

GIB_BYTES = 2.0**30
WIDE_BYTES = 2.0
FFN_COPIES = 3
"""A gated FFN holds gate and up outputs and their product at its peak."""
LARGE_DEVICE_BYTES = 70 * GIB_BYTES
"""Engines choose larger default batches from this size on, A100 excepted (vLLM EngineArgs.get_batch_defaults)."""


class FractionOf(StrEnum):
    """What an engine's memory fraction is a fraction of.

    `total` (vLLM): the pool is fraction x total less everything else. `free-after-load` (TensorRT-LLM): the pool is
    fraction x what is free once weights, activations, runtime and graphs are in place. `static` (SGLang): weights,
    runtime and pool together get fraction x total; activations and graphs live in the remainder. `none` (llama.cpp):
    there is no fraction; all that is free but a margin may be cache.
    """

    TOTAL = "total"
    FREE_AFTER_LOAD = "free-after-load"
    STATIC = "static"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class EngineMemory:
    """Memory constants of one engine over a range of versions, from the `memory` section of `catalog/engines`.

    The activation peak is the largest of a forward pass over T batched tokens, T x 2 bytes x
    (`forward_hidden_copies` x d + 3 x FFN width per rank, chosen experts counted each with its output), and of
    sampling, `bytes_per_logit` x rows x vocab + 2 bytes x T d, with one row per sequence, and of encoding the largest
    images, `vision_copies` x 2 bytes x patches x width each. `max_logit_rows` and
    `max_forward_tokens` cut rows and T (0: no cut). Runtime is `runtime_bytes_tp1`, or from two tensor ranks on
    `runtime_bytes_tp2` + `runtime_bytes_per_doubling` x (log2 tp - 1). Graphs are `graph_bytes_base` +
    `graph_bytes_per_layer` x layers (+ `graph_bytes_moe`). `margin_bytes` is never given to the pool. The `default_*`
    are what the engine does when it is not told. From `chunked_from_tokens` of `max_model_len` on prompts are chunked
    by default; below, a batch is at least one whole prompt. Models with images have steps of `vision_batched_tokens`. `mla_absorbed`: products of latent up-projections are held
    beside them. `hybrid_kv`, `chunked_kv`, `grouped_kv`, `mixed_kv`, `latent_kv` and `state_pages` are the rules of `KvRules`.
    """

    engine: str
    versions: str
    fraction_of: FractionOf
    default_fraction: float
    block_size_tokens: int
    default_max_num_seqs: int
    default_max_num_seqs_large: int
    default_batched_tokens: int
    default_batched_tokens_large: int
    bytes_per_logit: float
    forward_hidden_copies: float
    runtime_bytes_tp1: float
    runtime_bytes_tp2: float
    runtime_bytes_per_doubling: float
    graph_bytes_base: float
    graph_bytes_per_layer: float
    graph_bytes_moe: float
    graphs_in_budget: bool
    hybrid_kv: bool
    chunked_kv: bool
    grouped_kv: bool
    mixed_kv: bool = True
    latent_kv: bool = True
    latent_alignment_bytes: int = 1
    state_bytes_per_element: float = 2.0
    state_pages: int = 0
    mla_absorbed: bool = False
    chunked_from_tokens: int = 0
    vision_batched_tokens: int = 0
    vision_copies: float = 0.0
    max_logit_rows: int = 0
    max_forward_tokens: int = 0
    margin_bytes: float = 0.0
    source: str = ""

    def kv_rules(self, window_slack_tokens: int | None = None) -> KvRules:
        """Give the cache rules of this engine; the slack beside a window is one block unless stated."""
        slack = self.block_size_tokens if window_slack_tokens is None else window_slack_tokens
        return KvRules(
            hybrid_windows=self.hybrid_kv,
            chunked_windows=self.chunked_kv,
            grouped_layers=self.grouped_kv,
            mixed_windows=self.mixed_kv,
            window_slack_tokens=slack,
            latents=self.latent_kv,
            latent_alignment_bytes=self.latent_alignment_bytes,
            state_bytes_per_element=self.state_bytes_per_element,
            state_pages=self.state_pages,
        )

    def max_num_seqs_on(self, device: Device) -> int:
        """Give the engine's default batch cap on `device`."""
        return self.default_max_num_seqs_large if _is_large(device) else self.default_max_num_seqs

    def batched_tokens_on(self, device: Device, arch: Architecture) -> int:
        """Give the engine's default token budget of a step on `device`, where prompts are chunked."""
        tokens = self.default_batched_tokens_large if _is_large(device) else self.default_batched_tokens
        return max(tokens, self.vision_batched_tokens) if arch.vision_parameters else tokens

    def chunks_prompts(self, max_model_len: int) -> bool:
        """Tell whether the engine chunks prompts when it is not told."""
        return max_model_len >= self.chunked_from_tokens

    def activation_bytes(
        self, arch: Architecture, layout: Layout, max_num_seqs: int, batched_tokens: int, media_items: int = 0
    ) -> float:
        """Give the activation peak on one GPU over a batch of `batched_tokens`, or over `media_items` largest images."""
        tokens = min(batched_tokens, self.max_forward_tokens or batched_tokens)
        rows = min(max_num_seqs, self.max_logit_rows or max_num_seqs, tokens)
        hidden = arch.d_model * WIDE_BYTES * tokens
        sampling = self.bytes_per_logit * rows * arch.vocab + hidden
        forward = hidden * self.forward_hidden_copies + feed_forward_width(arch, layout) * WIDE_BYTES * tokens
        images = media_items * arch.vision_patches * arch.vision_width * WIDE_BYTES * self.vision_copies
        return max(sampling, forward, images)

    def runtime_bytes(self, tensor: int) -> float:
        """Give context, communication buffers and other memory outside the tensor allocator."""
        if tensor == 1:
            return self.runtime_bytes_tp1
        return self.runtime_bytes_tp2 + self.runtime_bytes_per_doubling * (log2(tensor) - 1)

    def graph_bytes(self, arch: Architecture, layout: Layout) -> float:
        """Give the memory of captured graphs on the fullest stage."""
        layers = -(-arch.n_layers // layout.pipeline)
        moe = self.graph_bytes_moe if arch.is_moe else 0.0
        return self.graph_bytes_base + self.graph_bytes_per_layer * layers + moe


def engine_memory(engine: str, versions: str, constants: Mapping[str, Any], source: str = "") -> EngineMemory:
    """Build `EngineMemory` from the `constants` of one range of a catalog file.

    Sizes may be given in GiB: `runtime_gib_tp1` is `runtime_bytes_tp1`. Raises `ValueError` that names every missing,
    unknown or ill-typed constant.
    """
    given = dict(_in_bytes(name, value) for name, value in constants.items())
    own = {f.name: f for f in fields(EngineMemory) if f.name not in {"engine", "versions", "source"}}
    required = {f.name for f in own.values() if f.default is MISSING}
    wrong = [f"unknown {name!r}" for name in sorted(given.keys() - own.keys())]
    wrong += [f"missing {name!r}" for name in sorted(required - given.keys())]
    wrong += [f"{n!r} is not {own[n].type}" for n in sorted(given.keys() & own.keys()) if not _fits(given[n], own[n])]
    if wrong:
        raise ValueError(f"memory constants of {engine} {versions}: {'; '.join(wrong)}")
    return EngineMemory(engine, versions, FractionOf(given.pop("fraction_of")), source=source, **given)


def _is_large(device: Device) -> bool:
    return device.usable_bytes >= LARGE_DEVICE_BYTES and not device.name.upper().startswith("A100")


def feed_forward_width(arch: Architecture, layout: Layout) -> float:
    """Give the elements per token that the feed-forward part of one layer holds at its peak on one rank."""
    dense = FFN_COPIES * arch.d_ff / layout.tensor if arch.n_moe_layers < arch.n_layers else 0.0
    if not arch.is_moe:
        return dense
    slices = 1 if layout.expert > 1 else layout.tensor * layout.attention_data
    routed = arch.experts_per_token * (FFN_COPIES * arch.moe_d_ff / slices + arch.d_model)
    return max(dense, routed)


def _in_bytes(name: str, value: Any) -> tuple[str, Any]:
    if "_gib" in name and isinstance(value, int | float):
        return name.replace("_gib", "_bytes"), value * GIB_BYTES
    return name, value


def _fits(value: object, field: Field[Any]) -> bool:
    if field.type == "FractionOf":
        return value in list(FractionOf)
    if field.type == "bool" or isinstance(value, bool):
        return field.type == "bool" and isinstance(value, bool)
    return isinstance(value, int) or (field.type == "float" and isinstance(value, float))
