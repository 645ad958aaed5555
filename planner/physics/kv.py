"""KV cache and recurrent state of one sequence."""

from __future__ import annotations

from math import ceil

from planner.physics.attention import family_of
from planner.physics.footprint import KvFootprint, KvRules
from planner.physics.formats import kv_format
from planner.physics.types import Architecture, Layout

DEFAULT_RULES = KvRules()
"""Rules of a current vLLM with blocks of 16 tokens."""


def kv_footprint(arch: Architecture, layout: Layout, kv: str, rules: KvRules = DEFAULT_RULES) -> KvFootprint:
    """Give the cache of one sequence on the fullest GPU that serves it, as a function of tokens.

    Raises `UnknownArchitecture` when a recurrent state cannot be sized, `UnknownFormat` for `kv`.
    """
    return family_of(arch).footprint(arch, layout, kv_format(kv), rules)


def kv_bytes(
    arch: Architecture,
    layout: Layout,
    kv: str,
    tokens: float,
    rules: KvRules = DEFAULT_RULES,
    block_tokens: int = 0,
) -> float:
    """Give the cache bytes per GPU of one sequence of `tokens`, state included; `block_tokens` rounds up to blocks.

    Raises as `kv_footprint`.
    """
    held = ceil(tokens / block_tokens) * block_tokens if block_tokens else tokens
    return kv_footprint(arch, layout, kv, rules).bytes_at(held)


def state_bytes(arch: Architecture, layout: Layout, rules: KvRules = DEFAULT_RULES) -> float:
    """Give the bytes per GPU of one sequence that do not grow with its tokens (0 without state layers)."""
    return kv_footprint(arch, layout, "bf16", rules).fixed_bytes
