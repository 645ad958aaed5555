"""Objects of untrusted JSON with their path: what is not there is blank, what is there and cannot be read is said so."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from planner.catalog.canonical import tidy
from planner.validation.cells import filled

LEAST, MOST = 1e-9, 1e12
"""Numbers outside are no measurements, whatever the unit."""
LONGEST_SHOWN = 40
FAILED_SHARE = 0.05
"""Share of failed requests from which on a run is not scored: those that failed took other time than those that are told."""

Path = tuple[str | int, ...]
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]:,]')


class Unusable(Exception):  # noqa: N818
    """What a file states and nobody can read or score, with the path of the field."""

    def __init__(self, path: Path, reason: str) -> None:
        self.path = path
        self.reason = reason
        super().__init__(reason)


Metric = float | None | Unusable
"""A measured number, None where the file has none, or why it cannot be used."""


@dataclass(frozen=True)
class Run:
    """An object of a result file. Numbers and texts are asked for by their keys inside it."""

    data: Mapping[str, Any]
    path: Path = ()

    def raw(self, *keys: str) -> Any:
        """Return what lies under a path of keys, None where nothing does. Raises `Unusable` for a path through no object."""
        found: Any = self.data
        for depth, key in enumerate(keys):
            if found is None:
                return None
            if not isinstance(found, Mapping):
                raise self._wrong(keys[:depth], found, "is no object")
            found = found.get(key)
        return found

    def inner(self, *keys: str) -> Run:
        """Return an object inside, an empty one where there is none. Raises `Unusable` for anything else in its place."""
        found = self.raw(*keys)
        if found is not None and not isinstance(found, Mapping):
            raise self._wrong(keys, found, "is no object")
        return Run(found or {}, (*self.path, *keys))

    def has(self, *keys: str) -> bool:
        """Tell whether something other than null is there."""
        return self.raw(*keys) is not None

    def number(self, *keys: str) -> float | None:
        """Return a positive number of believable size, None for a blank. A list of one number is that number.

        Raises:
            Unusable: something else is there.
        """
        found = self.raw(*keys)
        value = found[0] if isinstance(found, list) and len(found) == 1 else found
        if value is None or (isinstance(value, str) and not filled(value)):
            return None
        if isinstance(value, bool) or not isinstance(value, int | float) or not LEAST <= value <= MOST:
            raise self._wrong(keys, found, "is no positive number")
        return float(value)

    def whole(self, *keys: str) -> float | None:
        """Return a positive whole number, None for a blank. Raises `Unusable` for anything else."""
        value = self.number(*keys)
        if value is not None and value != math.floor(value):
            raise self._wrong(keys, self.raw(*keys), "is no whole number")
        return value

    def count(self, *keys: str) -> float:
        """Return a whole number that may be 0, which a blank is too. Raises `Unusable` for anything else."""
        return 0.0 if self.is_zero(*keys) else self.whole(*keys) or 0.0

    def statistic(self, *keys: str) -> float | None:
        """Return a number; tools write 0 for statistics that they could not take."""
        return None if self.is_zero(*keys) else self.number(*keys)

    def metric(self, *keys: str) -> Metric:
        """Return a statistic, or why it cannot be used."""
        try:
            return self.statistic(*keys)
        except Unusable as error:
            return error

    def is_zero(self, *keys: str) -> bool:
        """Tell whether a plain 0 is there, which is no `number`."""
        value = self.raw(*keys)
        return isinstance(value, int | float) and not isinstance(value, bool) and value == 0

    def text(self, *keys: str) -> str:
        """Return a name on one printable line, empty for a blank. Raises `Unusable` for anything but text."""
        value = self.raw(*keys)
        if value is None:
            return ""
        if not isinstance(value, str):
            raise self._wrong(keys, value, "is no text")
        return tidy(value.strip())

    def one_of(self, legal: Mapping[str, float], *keys: str) -> float:
        """Return what a word stands for. Raises `Unusable` for a word that is not known, and for none."""
        word = self.text(*keys)
        if word not in legal:
            raise self._wrong(keys, self.raw(*keys), f"is not one of {', '.join(legal)}")
        return legal[word]

    def runs(self, key: str) -> list[Run]:
        """Return the entries of a list as objects, an empty one for an entry that is none."""
        entries = self.raw(key)
        listed = enumerate(entries) if isinstance(entries, list) else ()
        return [Run(entry if isinstance(entry, Mapping) else {}, (*self.path, key, n)) for n, entry in listed]

    def refuse(self, reason: str, *keys: str) -> Unusable:
        """Return the whole object as one that cannot be scored, for the reason given; `keys` lead to the field that says so."""
        return Unusable((*self.path, *keys), reason)

    def check_losses(self, failed: float, sent: float, *keys: str) -> None:
        """Raise `Unusable` where more than a small share of the requests failed, or more than were sent."""
        if failed > sent or failed < 0.0:
            raise self.refuse(f"impossible: {sent - failed:,.0f} of {sent:,.0f} requests were completed", *keys)
        if failed > FAILED_SHARE * sent:
            raise self.refuse(
                f"{failed:,.0f} of {sent:,.0f} requests failed (at most {100 * FAILED_SHARE:.0f} % may)", *keys
            )

    def _wrong(self, keys: Iterable[str], value: object, what: str) -> Unusable:
        path = (*self.path, *keys)
        return Unusable(path, f"`{dotted(path)}` {_shown(value)} {what}")


def dotted(path: Path) -> str:
    """Return a path as people write it: `benchmarks[2].metrics`."""
    parts = (f"[{part}]" if isinstance(part, int) else f".{tidy(part)}" for part in path)
    return "".join(parts).removeprefix(".")


def lines_of(text: str, paths: Collection[Path]) -> dict[Path, int]:
    """Return the line of each path in the text of a JSON file; the nearest object above it where it is not there."""
    wanted = {path[:n] for path in paths for n in range(len(path) + 1)}
    found: dict[Path, int] = {}
    line, counted = 1, 0
    for path, offset in _places(text):
        if path in wanted and path not in found:
            line, counted = line + text.count("\n", counted, offset), offset
            found[path] = line
    return {path: next((found[path[:n]] for n in range(len(path), -1, -1) if path[:n] in found), 1) for path in paths}


def repeated_key(text: str) -> tuple[str, int] | None:
    """Return the first key that an object of a JSON text has twice, with its line: readers keep the last and say nothing."""
    known: set[Path] = set()
    for path, offset in _places(text):
        if text[offset] == '"':
            if path in known:
                return str(path[-1]), text.count("\n", 0, offset) + 1
            known.add(path)
    return None


def _places(text: str) -> Iterator[tuple[Path, int]]:
    """Yield the path and offset of every key, and of every object or list in a list."""
    path: list[str | int] = []
    key: tuple[str, int] | None = None
    for token in _TOKEN.finditer(text):
        mark = token[0]
        match mark[0]:
            case "{" | "[":
                yield tuple(path), token.start()
                path.append("" if mark == "{" else 0)
            case "}" | "]":
                path = path[:-1]
            case ",":
                if path and isinstance(path[-1], int):
                    path[-1] += 1
            case ":" if key is not None and path:
                path[-1] = key[0]
                yield tuple(path), key[1]
            case '"':
                key = (json.loads(mark, strict=False), token.start())
            case _:
                pass


def _shown(value: object) -> str:
    try:
        text = json.dumps(value)
    except (TypeError, ValueError):
        text = str(type(value))
    return tidy(text if len(text) <= LONGEST_SHOWN else text[: LONGEST_SHOWN - 3] + "...")
