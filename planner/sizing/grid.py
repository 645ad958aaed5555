"""Grids: every combination of the values of all inputs, and rows as data with units in their keys."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from itertools import product
from math import prod
from typing import Any, TypeVar

from planner.sizing.inputs import SizingError, Unit

R = TypeVar("R")

LARGEST_GRID = 10_000
"""Rows that one answer may have."""

_BYTES = "_bytes"


def combinations(calculate: Callable[..., R], axes: Mapping[str, Sequence[object]]) -> list[R]:
    """Call `calculate` with every combination of the values of `axes`; the first axis changes slowest.

    Raises `SizingError` for more than `LARGEST_GRID` combinations, before any is computed.
    """
    check_size(map(len, axes.values()))
    return [calculate(**dict(zip(axes, values, strict=True))) for values in product(*axes.values())]


def check_size(lengths: Iterable[int]) -> None:
    """Refuse a grid of more than `LARGEST_GRID` combinations. Raises `SizingError`."""
    rows = prod(lengths)
    if rows > LARGEST_GRID:
        raise SizingError(f"the grid has {rows:,} rows; {LARGEST_GRID:,} are allowed: shorten a list")


def as_data(row: Any, unit: Unit) -> dict[str, Any]:
    """Return a row as a mapping in the order of its fields; sizes in bytes become GB or GiB, and their keys say which."""
    data: dict[str, Any] = {}
    for name in (field.name for field in fields(row)):
        value = getattr(row, name)
        if name.endswith(_BYTES):
            name = name.removesuffix(_BYTES) + f"_{unit.value.lower()}"
            value = None if value is None else value / unit.size_bytes
        data[name] = value
    return data
