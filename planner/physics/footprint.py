"""Types that attention families and the memory model share: cache footprint, engine rules, parameter counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from planner.physics.formats import KvFormat
from planner.physics.types import Architecture, Layout


class UnknownArchitecture(ValueError):  # noqa: N818
    """A model whose memory cannot be computed from its shape; `reason` says what is missing."""

    def __init__(self, name: str, reason: str) -> None:
        self.name = name
        self.reason = reason
        super().__init__(f"{name}: {reason}")


@dataclass(frozen=True, slots=True)
class KvFootprint:
    """Cache bytes on one GPU for one sequence, piecewise linear in its tokens.

    The GPU is the fullest one that serves the sequence: under attention-data parallelism a sequence lives on one of
    the `attention_data` groups, so a replica holds `attention_data` times as many sequences. `local_bytes_per_token`
    stops growing at `window_tokens`; `fixed_bytes` is recurrent state. `block_tokens` is the block that the model
    forces on the engine (0: the engine's own).
    """

    global_bytes_per_token: float
    local_bytes_per_token: float = 0.0
    window_tokens: float = 0.0
    fixed_bytes: float = 0.0
    block_tokens: int = 0

    def bytes_at(self, tokens: float) -> float:
        """Give the bytes of one sequence that holds `tokens` tokens (0 or more)."""
        local = self.local_bytes_per_token * min(tokens, self.window_tokens)
        return self.global_bytes_per_token * tokens + local + self.fixed_bytes

    def tokens_in(self, pool_bytes: float) -> float:
        """Give the longest single sequence that `pool_bytes` hold: the inverse of `bytes_at`, 0 when none fits."""
        room = pool_bytes - self.fixed_bytes
        slope = self.global_bytes_per_token + self.local_bytes_per_token
        if room <= 0.0 or slope == 0.0:
            return 0.0
        if room <= slope * self.window_tokens or self.global_bytes_per_token == 0.0:
            return room / slope
        return (room - self.local_bytes_per_token * self.window_tokens) / self.global_bytes_per_token


@dataclass(frozen=True, slots=True)
class KvRules:
    """How an engine lays out its cache.

    `hybrid_windows`: local layers of a mixed model keep only their window. `chunked_windows`: the same for chunked
    attention. `grouped_layers`: layers are padded to equal groups. `window_slack_tokens` is what a local layer holds
    beside its window. `mixed_windows`: also where local and global layers cache vectors of different size.
    `latents`: latent attention caches its latent, not all heads. `latent_alignment_bytes` rounds each MLA latent up (1: none). `state_bytes_per_element` is the width of a recurrent
    state where the model does not fix it. `state_pages` is how many cache pages each recurrent layer takes for one
    sequence (0: states have a pool of their own and take their own size); attention blocks then grow to the size of a
    state. `cross_layers`: layers that attend to an image get blocks for every token of the text.
    """

    hybrid_windows: bool = True
    chunked_windows: bool = False
    grouped_layers: bool = True
    mixed_windows: bool = True
    window_slack_tokens: int = 16
    latents: bool = True
    latent_alignment_bytes: int = 1
    state_bytes_per_element: float = 2.0
    state_pages: int = 0
    cross_layers: bool = True


@dataclass(frozen=True, slots=True)
class AttentionParameters:
    """Parameters of all attention layers by how tensor parallelism treats them.

    `sharded` divides by tp, `kv_heads` by at most the number of KV heads, `copied` not at all.
    `widened` is the part of `sharded` that engines hold a second time in 16 bits when the attention is quantised.
    """

    sharded: float
    kv_heads: float = 0.0
    copied: float = 0.0
    widened: float = 0.0

    @property
    def total(self) -> float:
        """Parameters in the checkpoint."""
        return self.sharded + self.kv_heads + self.copied


class AttentionFamily(Protocol):
    """One plug-in of `planner.physics.attention`: a module with these functions, asked in order of `RANK`."""

    RANK: int

    def matches(self, arch: Architecture) -> bool:
        """Tell whether this family computes `arch`."""

    def parameters(self, arch: Architecture) -> AttentionParameters:
        """Count the attention parameters of the whole model."""

    def footprint(self, arch: Architecture, layout: Layout, kv: KvFormat, rules: KvRules) -> KvFootprint:
        """Give the cache of one sequence on the fullest GPU. Raises `UnknownArchitecture`."""


def head_share(kv_heads: int, tensor: int) -> float:
    """Give the share of the KV heads that the fullest of `tensor` ranks holds (copies when ranks outnumber heads)."""
    return -(-kv_heads // tensor) / kv_heads


CLOSE_RATIO = 1.25
"""Below this ratio of layer numbers vLLM pads the fewer up to the more, instead of the more to a multiple."""


def group_size(layers: int, others: int) -> int:
    """Give the layers of one group where an engine pads two kinds of layers to equal groups (vLLM kv_cache_utils)."""
    few, many = sorted((layers, others))
    return many if many < CLOSE_RATIO * few else few


def padded(layers: int, group: int) -> int:
    """Give the layers counted when `layers` are filled up to whole groups."""
    return -(-layers // group) * group


def stage_share(layers: int, pipeline: int) -> float:
    """Give the share of `layers` on the fullest of `pipeline` stages."""
    return -(-layers // pipeline) / layers
