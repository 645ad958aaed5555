"""Mixed local and global layers: sliding window (Gemma, gpt-oss) and chunked (Llama 4)."""

from __future__ import annotations

from planner.physics.attention import full
from planner.physics.footprint import AttentionParameters, KvFootprint, KvRules, group_size, padded
from planner.physics.formats import KvFormat
from planner.physics.types import Architecture, Layout

RANK = 50


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
    token = full.bytes_per_token(arch, layout, kv, rules)
    if not _honours_window(arch, rules):
        return KvFootprint(token * _largest_layer(arch))
    local, others = arch.n_local_layers, arch.n_attention_layers - arch.n_local_layers
    group = group_size(local, others) if rules.grouped_layers else 1
    local_token = token * arch.kv_elements_of_local_layers / arch.kv_elements_per_token
    window = float(arch.sliding_window + rules.window_slack_tokens)
    return KvFootprint(
        (token - local_token) * padded(others, group) / others, local_token * padded(local, group) / local, window
    )


def _largest_layer(arch: Architecture) -> float:
    """Give the factor by which pages of one size, that of the largest layer, exceed what the layers need.

    Start-up log of a 50 + 10 layer model on vLLM 0.20: 976 kB per token, where all layers take the size of the local ones.
    """
    if not arch.local_kv_elements:
        return 1.0
    local = arch.local_kv_elements / arch.n_local_layers
    others = (arch.kv_elements_per_token - arch.local_kv_elements) / (arch.n_attention_layers - arch.n_local_layers)
    return max(local, others) * arch.n_attention_layers / arch.kv_elements_per_token


def _honours_window(arch: Architecture, rules: KvRules) -> bool:
    if arch.local_kv_elements and not rules.mixed_windows:
        return False
    chunked = arch.attention.startswith("chunked")
    return rules.chunked_windows if chunked else rules.hybrid_windows
