"""Changes of a spec, by the keys that the user wrote."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import BaseModel

from planner.source import YamlPath
from planner.spec import FleetSpec

Place = tuple[str | int, ...]
"""Names of fields, keys and positions that lead to a value of a spec."""

_OFFERS = ("supply", "offers")
S = TypeVar("S", bound=BaseModel)


@dataclass(frozen=True)
class Change:
    """One key of the spec with another value, both as YAML, and the spec that has it; `path` is where the text has it."""

    path: YamlPath
    key: str
    now: str
    to: str
    spec: FleetSpec


def change_at(spec: FleetSpec, place: Place, now: str, to: str, value: Any) -> Change:
    """Return the change of one value of a spec."""
    return Change(path_of(spec, place), key_of(spec, place), now, to, with_value(spec, place, value))


def path_of(spec: FleetSpec, place: Place) -> YamlPath:
    """Return where the text of a spec has a value."""
    path: list[str | int] = []
    node: Any = spec
    for part in place:
        path.append(_written(node, part))
        node = _below(node, part)
    return tuple(path)


def key_of(spec: FleetSpec, place: Place) -> str:
    """Return a value's key as reports name it: offers go by their labels."""
    return key_at(spec, path_of(spec, place))


def key_at(spec: FleetSpec, path: YamlPath) -> str:
    """Return the key of a path of the text as reports name it."""
    names = [str(part) for part in path]
    if path[:2] == _OFFERS and len(path) > 2:
        names[2] = spec.supply.offer_labels()[int(path[2])]
    return ".".join(names)


def is_given(spec: FleetSpec, place: Place) -> bool:
    """Tell whether the user wrote a value, or a part of it, rather than leaving it at its default."""
    node: Any = spec
    for part in place:
        if isinstance(node, BaseModel) and part not in node.model_fields_set:
            return False
        node = _below(node, part)
        if node is None:
            return False
    return True


def with_value(section: S, place: Place, value: Any) -> S:
    """Return a section with another value at a place below it; nothing is checked."""
    found: S = _with(section, place, value)
    return found


def _with(node: Any, place: Place, value: Any) -> Any:
    if not place:
        return value
    first, *rest = place
    if isinstance(node, BaseModel):
        name = str(first)
        return node.model_copy(update={name: _with(getattr(node, name), tuple(rest), value)})
    if isinstance(node, tuple):
        return tuple(_with(item, tuple(rest), value) if i == first else item for i, item in enumerate(node))
    return {**node, first: _with(node[first], tuple(rest), value)}


def _written(node: Any, part: str | int) -> str | int:
    """Return what the text calls a field or key."""
    field = type(node).model_fields.get(str(part)) if isinstance(node, BaseModel) else None
    return (field.alias or part) if field is not None else part


def _below(node: Any, part: str | int) -> Any:
    """Return the value of a field, key or position; None where there is nothing."""
    if isinstance(node, BaseModel):
        return getattr(node, str(part), None)
    if isinstance(node, tuple):
        return node[int(part)] if int(part) < len(node) else None
    return node.get(part) if isinstance(node, dict) else None


def flow(values: Iterable[object]) -> str:
    """Return a list as YAML on one line."""
    return f"[{', '.join(map(str, values))}]"
