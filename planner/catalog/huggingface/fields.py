"""Typed access to the fields of a config, under the different names that families use for the same thing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

LARGEST_COUNT = 10**9


class UnsupportedConfig(ValueError):  # noqa: N818
    """A config that no entry can be made of; `reasons` say what is missing, wrong or not known, one line each."""

    def __init__(self, reasons: list[str]) -> None:
        self.reasons = tuple(reasons)
        super().__init__("; ".join(reasons))


class Fields:
    """A view of one section of a config. Missing or ill-typed fields are collected, so that all are told at once."""

    def __init__(self, data: Mapping[str, Any], problems: list[str]) -> None:
        self._data = data
        self.problems = problems

    def has(self, *names: str) -> bool:
        """Tell whether any of the fields is present and not null."""
        return any(self._data.get(name) is not None for name in names)

    def raw(self, name: str) -> Any:
        """Return a field as it stands, None when absent."""
        return self._data.get(name)

    def count(self, *names: str, default: int | None = None, least: int = 1) -> int:
        """Return the first whole number that is present under one of the names; a problem and 1 when there is none."""
        for name in names:
            value = self._data.get(name)
            if value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, int | float) or value != int(value):
                self.problems.append(f"`{name}` is no whole number")
                return 1
            if not least <= value <= LARGEST_COUNT:
                self.problems.append(f"`{name}` must be from {least} to {LARGEST_COUNT}")
                return 1
            return int(value)
        if default is None:
            self.problems.append(f"`{names[0]}` is missing")
            return 1
        return default

    def flag(self, name: str, default: bool = False) -> bool:
        """Return a truth value."""
        value = self._data.get(name)
        if value is None:
            return default
        if not isinstance(value, bool):
            self.problems.append(f"`{name}` is neither true nor false")
            return default
        return value

    def text(self, name: str, default: str = "") -> str:
        """Return a text."""
        value = self._data.get(name)
        return value if isinstance(value, str) else default

    def listed(self, name: str) -> list[Any]:
        """Return a list, empty when absent."""
        value = self._data.get(name)
        return list(value) if isinstance(value, list) else []

    def section(self, name: str) -> Fields:
        """Return a nested section, empty when absent."""
        value = self._data.get(name)
        return Fields(value if isinstance(value, Mapping) else {}, self.problems)

    @property
    def data(self) -> Mapping[str, Any]:
        """The section itself."""
        return self._data
