"""Mixed local and global layers: sliding window (Gemma, gpt-oss) and chunked (Llama 4)."""

from __future__ import annotations

from planner.physics.attention import full
from planner.physics.footprint import AttentionParameters, KvFootprint, KvRules
from planner.physics.formats import KvFormat
from planner.physics.types import Architecture, Layout

RANK = 50
CLOSE_RATIO = 1.25
"""Below this ratio of layer numbers vLLM pads the fewer up to the more, instead of the more to a multiple."""


def matches(arch: Architecture) -> bool:
    """Accept models where some layers are local and some global.

    A window in every layer (Mistral-7B v0.1) is full attention to an engine: it kept the whole cache
    (throughput published at 20k-token prompts; honouring the window predicts two to three times too much).
    """
    mixed = 0 < arch.n_local_layers < arch.n_attention_layers
    return mixed and arch.sliding_window > 0 and full.matches(arch)


def parameters(arch: Architecture) -> AttentionParameters:
    """Count as for full attention: a window changes no projection."""
    return full.parameters(arch)


def footprint(arch: Architecture, layout: Layout, kv: KvFormat, rules: KvRules) -> KvFootprint:
    """Give global layers that grow and local layers that stop at the window, where the engine frees what left it.

    With `grouped_layers` both kinds are padded to multiples of the rarer one, so 52 + 10 layers count as 60 + 10, or
    to the larger number when the two are close (vLLM kv_cache_utils; start-up logs of Gemma-3).
    """
    token = full.bytes_per_token(arch, layout, kv)
    if not _honours_window(arch, rules):
        return KvFootprint(token)
    local, total = arch.n_local_layers, arch.n_attention_layers
    group = _group_size(local, total - local) if rules.grouped_layers else 1
    per_layer = token / total
    window = float(arch.sliding_window + rules.window_slack_tokens)
    return KvFootprint(_padded(total - local, group) * per_layer, _padded(local, group) * per_layer, window)


def _honours_window(arch: Architecture, rules: KvRules) -> bool:
    chunked = arch.attention.startswith("chunked")
    return rules.chunked_windows if chunked else rules.hybrid_windows


def _group_size(local: int, others: int) -> int:
    few, many = sorted((local, others))
    return many if many < CLOSE_RATIO * few else few


def _padded(layers: int, group: int) -> int:
    return -(-layers // group) * group
