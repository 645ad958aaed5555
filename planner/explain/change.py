"""Changes of a spec, by the keys that the user wrote."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import BaseModel

from planner.spec import FleetSpec

Place = tuple[str | int, ...]
"""Names of fields, keys and positions that lead to a value of a spec."""

S = TypeVar("S", bound=BaseModel)


@dataclass(frozen=True)
class Change:
    """One key of the spec with another value, both as YAML, and the spec that has it."""

    key: str
    now: str
    to: str
    spec: FleetSpec


def with_value(section: S, place: Place, value: Any) -> S:
    """Return a section with another value at a place below it; nothing is checked."""
    changed: S = _with(section, place, value)
    return changed


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


def flow(values: Iterable[object]) -> str:
    """Return a list as YAML on one line."""
    return f"[{', '.join(map(str, values))}]"
