"""Variants of a spec: changes made in its text, as a user would make them, so that they meet every check that a file meets."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import reduce
from typing import Any

from planner.source import YamlPath
from planner.source.edit import read_value, with_value
from planner.spec.load import LoadedSpec, load_spec


def with_texts(loaded: LoadedSpec, changes: Iterable[tuple[YamlPath, str]]) -> LoadedSpec:
    """Return what is read from the text of a spec once other values, as YAML, stand at some paths; `null` removes a key.

    Raises `DiagnosticError` for a text that is no YAML value.
    """
    data: Any = loaded.document.data if loaded.document is not None else {}
    return with_data(
        loaded, reduce(lambda node, change: with_value(node, change[0], read_value(change[1])), changes, data)
    )


def with_data(loaded: LoadedSpec, data: Any) -> LoadedSpec:
    """Return what is read from other data in the place of a spec."""
    text = json.dumps(data, ensure_ascii=False)  # JSON is YAML, and quotes what must stay text
    return load_spec(text, loaded.path, loaded.file)
