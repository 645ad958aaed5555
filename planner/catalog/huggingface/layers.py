"""What each layer of a model is: which mixer (attention or recurrence) and which feed-forward, from any family's fields."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from planner.catalog.huggingface.families import Family
from planner.catalog.huggingface.fields import LARGEST_LENGTH, Fields


class Mixer(StrEnum):
    """How a layer mixes tokens."""

    FULL = "full"
    LOCAL = "local"
    CROSS = "cross"
    STATE = "state"
    NONE = "none"


class FeedForward(StrEnum):
    """What follows the mixer."""

    DENSE = "dense"
    EXPERTS = "experts"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer of a model."""

    mixer: Mixer
    feed_forward: FeedForward


_LAYER_TYPES: Mapping[str, Mixer] = {
    "full_attention": Mixer.FULL,
    "deepseek_sparse_attention": Mixer.FULL,
    "attention": Mixer.FULL,
    "global_attention": Mixer.FULL,
    "sliding_attention": Mixer.LOCAL,
    "chunked_attention": Mixer.LOCAL,
    "linear_attention": Mixer.STATE,
    "mamba": Mixer.STATE,
    "lightning_attention": Mixer.STATE,
}
_PATTERN_LETTERS: Mapping[str, Layer] = {
    "M": Layer(Mixer.STATE, FeedForward.NONE),
    "*": Layer(Mixer.FULL, FeedForward.NONE),
    "-": Layer(Mixer.NONE, FeedForward.DENSE),
    "E": Layer(Mixer.NONE, FeedForward.EXPERTS),
}
MAX_LAYERS = 2000


def layers_of(fields: Fields, family: Family) -> list[Layer]:
    """Return every layer in order. What cannot be told is added to the problems of `fields`."""
    pattern = fields.text("hybrid_override_pattern")
    if pattern:
        return _from_pattern(pattern, fields)
    blocks = fields.listed("layers_block_type")
    if "moe" in blocks or "mlp" in blocks:
        letters = {"mamba": "M", "attention": "*", "mlp": "-", "moe": "E"}
        return _from_pattern("".join(letters.get(str(b), "?") for b in blocks), fields)
    before = len(fields.problems)
    count = fields.count("num_hidden_layers", "n_layer", "num_layers", "n_layers", most=MAX_LAYERS)
    if len(fields.problems) > before:
        return []
    mixers = _mixers(fields, family, count)
    return [Layer(mixer, kind) for mixer, kind in zip(mixers, _feed_forwards(fields, count), strict=True)]


def _from_pattern(pattern: str, fields: Fields) -> list[Layer]:
    unknown = sorted(set(pattern) - _PATTERN_LETTERS.keys())
    if unknown or len(pattern) > MAX_LAYERS:
        fields.problems.append("`hybrid_override_pattern` has letters that are not known")
        return []
    return [_PATTERN_LETTERS[letter] for letter in pattern]


def _mixers(fields: Fields, family: Family, count: int) -> list[Mixer]:
    stated = fields.listed("layer_types") or fields.listed("layers_block_type")
    if stated:
        return _stated_mixers(stated, fields, count)
    if fields.listed("attn_type_list"):
        return [Mixer.FULL if kind else Mixer.STATE for kind in _fitted(fields, "attn_type_list", count)]
    if fields.has("linear_attn_config"):
        attention = fields.section("linear_attn_config").listed("full_attn_layers")
        return [Mixer.FULL if index + 1 in attention else Mixer.STATE for index in range(count)]
    if fields.has("attn_layer_period"):
        period = fields.count("attn_layer_period")
        offset = fields.count("attn_layer_offset", default=0, least=0)
        return [Mixer.FULL if index % period == offset else Mixer.STATE for index in range(count)]
    if fields.has("full_attention_interval"):
        every = fields.count("full_attention_interval")
        return [Mixer.STATE if (index + 1) % every else Mixer.FULL for index in range(count)]
    if fields.has("cross_attention_layers"):
        across = fields.listed("cross_attention_layers")
        return [Mixer.CROSS if index in across else Mixer.FULL for index in range(count)]
    return _windowed_mixers(fields, family, count)


def _stated_mixers(stated: list[object], fields: Fields, count: int) -> list[Mixer]:
    unknown = sorted({str(kind) for kind in stated} - _LAYER_TYPES.keys())
    if unknown:
        fields.problems.append(f"`layer_types` names layers that are not known: {', '.join(unknown[:3])}")
        return [Mixer.FULL] * count
    if len(stated) != count:
        fields.problems.append(f"`layer_types` has {len(stated)} entries for {count} layers")
        return [Mixer.FULL] * count
    return [_LAYER_TYPES[str(kind)] for kind in stated]


def _fitted(fields: Fields, name: str, count: int) -> list[object]:
    found = fields.listed(name)
    if len(found) != count:
        fields.problems.append(f"`{name}` has {len(found)} entries for {count} layers")
        return [1] * count
    return found


def _windowed_mixers(fields: Fields, family: Family, count: int) -> list[Mixer]:
    if fields.has("attention_chunk_size"):
        return [Mixer.LOCAL if (index + 1) % 4 else Mixer.FULL for index in range(count)]
    if not fields.has("sliding_window") or fields.raw("use_sliding_window") is False:
        return [Mixer.FULL] * count
    if fields.has("sliding_window_pattern", "_sliding_window_pattern"):
        every = fields.count("sliding_window_pattern", "_sliding_window_pattern")
        return [Mixer.LOCAL if (index + 1) % every else Mixer.FULL for index in range(count)]
    if family.name in {"gemma2", "gpt-oss"}:
        return [Mixer.FULL if index % 2 else Mixer.LOCAL for index in range(count)]
    if family.name == "gemma4":
        fields.problems.append("`layer_types` is missing: which layers are local is not told")
    longest = fields.count("max_position_embeddings", default=1, most=LARGEST_LENGTH)
    window = fields.count("sliding_window", default=longest, most=LARGEST_LENGTH)
    return [Mixer.LOCAL if family.windowed and window < longest else Mixer.FULL] * count


def _feed_forwards(fields: Fields, count: int) -> list[FeedForward]:
    if not has_experts(fields):
        return [FeedForward.DENSE] * count
    return [FeedForward.EXPERTS if _is_sparse(fields, index) else FeedForward.DENSE for index in range(count)]


def has_experts(fields: Fields) -> bool:
    """Tell whether some layers route tokens to more than one expert."""
    names = ("n_routed_experts", "num_local_experts", "num_experts", "moe_num_experts", "n_experts")
    return fields.has(*names) and fields.count(*names, default=0, least=0) > 1


def _is_sparse(fields: Fields, index: int) -> bool:
    if fields.has("first_k_dense_replace"):
        frequency = fields.count("moe_layer_freq", default=1)
        return index >= fields.count("first_k_dense_replace", default=0, least=0) and index % frequency == 0
    kinds = fields.listed("mlp_layer_types")
    if index < len(kinds):
        return bool(kinds[index] == "sparse")
    if fields.has("moe_layers"):
        return index in fields.listed("moe_layers")
    if fields.has("interleave_moe_layer_step"):
        return (index + 1) % fields.count("interleave_moe_layer_step") == 0
    if fields.has("expert_layer_period"):
        return index % fields.count("expert_layer_period") == fields.count("expert_layer_offset", default=0, least=0)
    if fields.has("moe_layer_start_index"):
        return index >= fields.count("moe_layer_start_index", default=0, least=0)
    step = fields.count("decoder_sparse_step", default=1)
    return index not in fields.listed("mlp_only_layers") and (index + 1) % step == 0
