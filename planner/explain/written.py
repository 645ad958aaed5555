"""Changes made in the text of a spec, as a user would make them, so that they meet every check that a file meets."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import reduce
from typing import Any

from planner.explain.change import Change
from planner.source import YamlPath, parse
from planner.spec import LoadedSpec, load_spec

_VALUE = "value"


def with_changes(loaded: LoadedSpec, changes: Sequence[Change]) -> LoadedSpec:
    """Return what is read from the text of a spec once changes are made in it, one after the other."""
    data: Any = loaded.document.data if loaded.document is not None else {}
    data = reduce(lambda node, change: _with(node, change.path, _read(change.to)), changes, data)
    text = json.dumps(data, ensure_ascii=False)  # JSON is YAML, and quotes what must stay text
    return load_spec(text, loaded.path, loaded.file)


def _read(text: str) -> Any:
    """Return the value that a text has in YAML; the text itself where it has none."""
    document, _ = parse(f"{_VALUE}: {text}", _VALUE)
    return document.data[_VALUE] if document is not None else text


def _with(node: Any, path: YamlPath, value: Any) -> Any:
    """Return plain data with another value at a path; sections that are missing on the way are added."""
    if not path:
        return value
    first, rest = path[0], path[1:]
    if isinstance(node, list):
        return [_with(item, rest, value) if i == first else item for i, item in enumerate(node)]
    own = node if isinstance(node, dict) else {}
    return {**own, first: _with(own.get(first), rest, value)}
