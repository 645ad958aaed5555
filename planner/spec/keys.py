"""Find the place in a spec of a key as reports name it, such as `supply.limits.gpus.H200-SXM-141GB`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from planner.diagnostics import Span
from planner.source import YamlPath
from planner.spec.load import LoadedSpec

_OFFERS = ("supply", "offers")


def locate(loaded: LoadedSpec, key: str) -> Span | None:
    """Return the place of a key, or of the nearest section above it; None for a key that is not of this spec."""
    path = key_path(loaded, key)
    if loaded.document is None or not loaded.document.has(path[:1]):
        return None
    return loaded.span(path)


def key_path(loaded: LoadedSpec, key: str) -> YamlPath:
    """Return the path that a key stands for.

    Names may contain dots, so at each level the longest name that fits is taken; offers go by their labels.
    """
    node: Any = loaded.document.data if loaded.document is not None else {}
    path: YamlPath = ()
    rest = key
    while rest:
        names: Mapping[str, str | int] = _labels(loaded) if path == _OFFERS else _keys(node)
        fitting = [name for name in names if f"{rest.casefold()}.".startswith(f"{name.casefold()}.")]
        if not fitting:
            return (*path, *rest.split("."))
        name = max(fitting, key=len)
        node = node[names[name]]
        path = (*path, names[name])
        rest = rest[len(name) + 1 :]
    return path


def _labels(loaded: LoadedSpec) -> dict[str, str | int]:
    labels = loaded.spec.supply.offer_labels() if loaded.spec is not None else ()
    return {label: index for index, label in enumerate(labels)}


def _keys(node: Any) -> dict[str, str | int]:
    if isinstance(node, list):
        return {str(index): index for index in range(len(node))}
    return {name: name for name in node} if isinstance(node, dict) else {}
