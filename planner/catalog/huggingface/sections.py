"""Sections of a config that hold parts of a model: which are read, and which would be left out of the count."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from planner.catalog.huggingface.families import WRAPPERS
from planner.catalog.huggingface.fields import Fields

READ = frozenset({*WRAPPERS, "quantization_config", "attn_config", "ffn_config", "linear_attn_config"})
HARMLESS = frozenset({"generation_config", "transformers.js_config", "projector_config"})
"""Settings, and the projector of an image encoder, which is counted from the widths that it joins."""

_PART = re.compile(r"_(config|processor|tower|encoder|decoder|model)$|audio|speech|vision|image|img|video|2wav|talker")
_TOWER_NAME = re.compile(r"_(tower|encoder)$")


def uncounted_parts(whole: Fields, text: Fields) -> list[str]:
    """Return a reason for every section, on the way to the language model, that holds a part that is not counted."""
    return [f"`{name}`: this part of the model is not counted" for name in sorted(set(_unread(whole, text)))]


def _unread(whole: Fields, text: Fields) -> Iterator[str]:
    for fields in _levels(whole.data, text):
        counted = READ | HARMLESS | ({"vision_config"} if fields is whole.data else set())
        yield from (name for name, value in fields.items() if name not in counted and _is_part(name, value))


def _levels(data: Mapping[str, Any], text: Fields) -> Iterator[Mapping[str, Any]]:
    level: Mapping[str, Any] | None = data
    while level is not None:
        yield level
        level = next((level[w] for w in WRAPPERS if level.get(w)), None) if level is not text.data else None


def _is_part(name: str, value: Any) -> bool:
    if isinstance(value, str):
        return bool(value) and _TOWER_NAME.search(name) is not None
    return isinstance(value, Mapping | list) and _holds_section(value) and _PART.search(name) is not None


def _holds_section(value: Mapping[str, Any] | list[Any]) -> bool:
    return bool(value) and (isinstance(value, Mapping) or any(isinstance(item, Mapping) for item in value))
