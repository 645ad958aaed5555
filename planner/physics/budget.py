"""HBM budget of one GPU: what an engine leaves for the KV cache after weights, activations, runtime and graphs."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from planner.physics.footprint import KvFootprint, KvRules
from planner.physics.types import Architecture, Device, Layout


class FractionOf(StrEnum):
    """What an engine's memory fraction is a fraction of."""

    TOTAL = "total"
    """vLLM: the pool is fraction x total less everything else; the rest stays free (graphs, if not counted)."""
    FREE_AFTER_LOAD = "free-after-load"
    """TensorRT-LLM: the pool is fraction x what is free once weights, activations and runtime are in place."""
    STATIC = "static"
    """SGLang: weights and pool together get fraction x total; activations and graphs live in the remainder."""
    NONE = "none"
    """llama.cpp: no fraction; everything that is free may be cache."""


@dataclass(frozen=True, slots=True)
class EngineMemory:
    """Memory constants of one engine over a range of versions, from the `memory:` section of `catalog/engines`.

    Activation peak in bytes = max(forward, sampling), where forward = T x 2 x (`forward_hidden_copies` d +
    3 x FFN width per rank [+ the same per chosen expert]) over T batched tokens, and sampling =
    `bytes_per_logit` x rows x vocab + 2 T d over `max_num_seqs` rows. `max_rows` cuts T and rows (llama.cpp ubatch).
    Runtime (context, NCCL) = `runtime_bytes_tp1`, or `runtime_bytes_tp2` + `runtime_bytes_per_doubling` x
    (log2 tp - 1). Graphs = `graph_bytes_base` + `graph_bytes_per_layer` x layers (+ `graph_bytes_moe`).
    """

    engine: str
    versions: str
    fraction_of: FractionOf
    default_fraction: float
    block_size_tokens: int
    default_max_num_seqs: int
    default_max_num_seqs_large: int
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
    latent_alignment_bytes: int = 1
    state_bytes_per_element: float = 2.0
    max_rows: int = 0
    source: str = ""

    def kv_rules(self, window_slack_tokens: int | None = None) -> KvRules:
        """Give the cache rules of this engine; the slack beside a window is one block unless stated."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class HbmBudget:
    """Bytes of one GPU, the fullest of the replica. The six parts after `usable_bytes` sum to it exactly.

    `free_bytes` is what no part claims; negative when the parts do not fit. `kv_tokens` and `max_concurrency` are of
    the whole replica (all attention-data groups), at `max_model_len` as engines print them at start-up.
    """

    usable_bytes: float
    weights_bytes: float
    kv_pool_bytes: float
    activation_bytes: float
    runtime_bytes: float
    graph_bytes: float
    free_bytes: float
    kv: KvFootprint
    kv_tokens: float
    max_concurrency: float
    fits: bool
    shortfall_bytes: float


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
) -> HbmBudget:
    """Divide the usable memory of one GPU. Raises `UnknownArchitecture` or `UnknownFormat`."""
    raise NotImplementedError
