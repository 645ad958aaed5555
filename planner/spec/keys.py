"""Find the place in a spec of a key as reports name it, such as `supply.limits.gpus.H200-SXM-141GB`."""

from __future__ import annotations

from planner.diagnostics import Span
from planner.source import YamlPath
from planner.source.edit import own_names, path_of
from planner.spec.load import LoadedSpec

_OFFERS = ("supply", "offers")


def locate(loaded: LoadedSpec, key: str) -> Span | None:
    """Return the place of a key, or of the nearest section above it; None for a key that is not of this spec."""
    path = key_path(loaded, key)
    if loaded.document is None or not loaded.document.has(path[:1]):
        return None
    return loaded.span(path)


def key_path(loaded: LoadedSpec, key: str) -> YamlPath:
    """Return the path that a key stands for; offers go by their labels. See `path_of`."""
    labels = offer_labels(loaded)
    data = loaded.document.data if loaded.document is not None else {}
    return path_of(data, key, lambda path, node: labels if path == _OFFERS else own_names(path, node))


def offer_labels(loaded: LoadedSpec) -> dict[str, int]:
    """Return the positions of the offers by label."""
    labels = loaded.spec.supply.offer_labels() if loaded.spec is not None else ()
    return {label: index for index, label in enumerate(labels)}
