"""Typed access to the fields of a config, under the different names that families use for the same thing."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

LARGEST_COUNT = 10**6
LARGEST_VOCABULARY = 10**7
LARGEST_LENGTH = 10**9
SHOWN_LETTERS = 40


class UnsupportedConfig(ValueError):  # noqa: N818
    """A config that no entry can be made of; `reasons` say what is missing, wrong or not known, one line each."""

    def __init__(self, reasons: list[str]) -> None:
        self.reasons = tuple(reasons)
        super().__init__("; ".join(reasons))


class Fields:
    """A view of one section of a config. Missing or ill-typed fields are collected, so that all are told at once.

    `keys` are the names that a family has for fields, by the usual name: what is called missing.
    """

    def __init__(self, data: Mapping[str, Any], problems: list[str], keys: Mapping[str, str] | None = None) -> None:
        self._data = data
        self.problems = problems
        self._keys = keys or {}

    def has(self, *names: str) -> bool:
        """Tell whether any of the fields is present and not null."""
        return any(self._data.get(name) is not None for name in names)

    def raw(self, name: str) -> Any:
        """Return a field as it stands, None when absent."""
        return self._data.get(name)

    def named(self, *names: str) -> str:
        """Return the first of the names that is present, else the one that the family usually has."""
        return next((name for name in names if self.has(name)), self._keys.get(names[0], names[0]))

    def count(self, *names: str, default: int | None = None, least: int = 1, most: int = LARGEST_COUNT) -> int:
        """Return the first whole number that is present under one of the names; a problem and 1 when there is none."""
        name = self.named(*names)
        value = self._data.get(name)
        if value is None and default is not None:
            return default
        if value is None:
            self.problems.append(f"`{name}` is missing")
        elif not _is_whole(value):
            self.problems.append(f"`{name}` is no whole number but {shown(value)}")
        elif not least <= value <= most:
            self.problems.append(f"`{name}` must be from {least} to {most}, not {shown(value)}")
        else:
            return int(value)
        return 1

    def flag(self, name: str, default: bool = False) -> bool:
        """Return a truth value."""
        value = self._data.get(name)
        if value is None:
            return default
        if not isinstance(value, bool):
            self.problems.append(f"`{name}` is neither true nor false but {shown(value)}")
            return default
        return value

    def text(self, name: str, default: str = "") -> str:
        """Return a text."""
        value = self._data.get(name)
        self._expect(name, value, str, "text")
        return value if isinstance(value, str) else default

    def listed(self, name: str) -> list[Any]:
        """Return a list, empty when absent."""
        value = self._data.get(name)
        self._expect(name, value, list, "list")
        return list(value) if isinstance(value, list) else []

    def section(self, name: str) -> Fields:
        """Return a nested section, empty when absent."""
        value = self._data.get(name)
        self._expect(name, value, Mapping, "object")
        return Fields(value if isinstance(value, Mapping) else {}, self.problems)

    @property
    def data(self) -> Mapping[str, Any]:
        """The section itself."""
        return self._data

    def _expect(self, name: str, value: Any, kind: type, called: str) -> None:
        if value is not None and not isinstance(value, kind):
            self.problems.append(f"`{name}` is no {called} but {shown(value)}")


def shown(value: Any) -> str:
    """Return a value as JSON writes it, cut to `SHOWN_LETTERS`; of lists and objects only what they are."""
    if isinstance(value, Mapping | list):
        return "a list" if isinstance(value, list) else "an object"
    text = json.dumps(value, default=str)
    return text if len(text) <= SHOWN_LETTERS else f"{text[:SHOWN_LETTERS]}..."


def _is_whole(value: Any) -> bool:
    if isinstance(value, float):
        return math.isfinite(value) and value.is_integer()
    return isinstance(value, int) and not isinstance(value, bool)
