"""A catalog entry as the text of its YAML file."""

from __future__ import annotations

from typing import Any

import yaml

from planner.catalog.model import ModelEntry

WIDTH = 120


def entry_yaml(entry: ModelEntry) -> str:
    """Return the file of an entry: fields in their order, without those that have their default."""
    data: dict[str, Any] = _plain(entry.model_dump(exclude_defaults=True))
    text: str = yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=WIDTH, default_flow_style=None)
    return text


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    return value
