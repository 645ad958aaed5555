"""What `--set` says: a key, and the values that it takes or the distribution that they are drawn from."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from planner.sweep.distributions import Distribution, DistributionError, read_distribution, written

MOST_VALUES = 10_000
_DRAWN = re.compile(r"\s*([A-Za-z]+)\s*\((.*)\)\s*", re.DOTALL)
_NUMBER = r"([+-]?(?:\d+(?:\.\d*)?|\.\d+))"
_RANGE = re.compile(rf"{_NUMBER}(\D*?)\.\.\s*{_NUMBER}(\D*?)/\s*(\d{{1,9}})(\D*)", re.ASCII)
"""From, to and how many, with the unit behind any of them."""
_OPENING, _CLOSING = "[{(", "]})"
_QUOTES = "\"'"


class SettingError(ValueError):
    """A setting that cannot be read: what is wrong, and the part of its text that it is about (`end` exclusive)."""

    def __init__(self, message: str, start: int, end: int) -> None:
        super().__init__(message)
        self.start, self.end = start, end


@dataclass(frozen=True)
class Value:
    """A value as YAML, and the part of the setting's text that it comes from (`end` exclusive)."""

    text: str
    start: int
    end: int


@dataclass(frozen=True)
class Setting:
    """A key with its values; `drawn` where they are drawn from a distribution instead, of which they are examples."""

    text: str
    key: str
    values: tuple[Value, ...]
    drawn: Distribution | None = None

    def value_at(self, u: float) -> str:
        """Return the value that a number above 0 and below 1 stands for: each of a list has the same part of the range."""
        if self.drawn is not None:
            return self.drawn.value(u)
        return self.values[int(u * len(self.values))].text


def read_setting(text: str, unit_at: Callable[[str], str]) -> Setting:
    """Read `KEY=VALUE,VALUE`, `KEY=FROM..TO/COUNT UNIT` or `KEY~NAME(PARAMETER, …)`; `unit_at` returns the unit of a key's value.

    Raises `SettingError`.
    """
    split = re.search("[=~]", text)
    if split is None or not text[: split.start()].strip():
        raise SettingError("write KEY=VALUE,VALUE or KEY~DISTRIBUTION(…)", 0, len(text))
    key, rest = text[: split.start()].strip(), split.end()
    if split[0] == "=":
        values = tuple(_values(text, rest))
        if len(values) > MOST_VALUES:
            raise SettingError(f"{len(values):,} values are more than {MOST_VALUES:,}", rest, len(text))
        return Setting(text, key, values)
    drawn = _DRAWN.fullmatch(text, rest)
    if drawn is None:
        raise SettingError("write a distribution, such as lognormal(12 req/s, 30 %)", rest, len(text))
    try:
        found = read_distribution(drawn[1], drawn[2].split(","), unit_at(key))
    except DistributionError as error:
        raise SettingError(str(error), rest, len(text)) from None
    return Setting(text, key, tuple(Value(value, rest, len(text)) for value in found.typical), found)


def _values(text: str, start: int) -> Iterator[Value]:
    for first, last in _parts(text, start):
        part = text[first:last]
        if not part.strip():
            raise SettingError("a value is missing", first, max(last, first + 1))
        place = first + len(part) - len(part.lstrip()), first + len(part.rstrip())
        steps = _RANGE.fullmatch(part.strip())
        if steps is None:
            yield Value(part.strip(), *place)
        else:
            yield from (Value(value, *place) for value in _steps(steps, place))


def _steps(steps: re.Match[str], place: tuple[int, int]) -> Sequence[str]:
    """Return the values of a range: so many, evenly apart, both ends included."""
    first, unit, last, other, counted, behind = steps.groups()
    units = {" ".join(each.split()) for each in (unit, other, behind)} - {""}
    if len(units) > 1:
        raise SettingError(f"one unit for the whole range, not {' and '.join(sorted(units))}", *place)
    low, high, count = float(first), float(last), int(counted)
    if not 2 <= count <= MOST_VALUES:
        raise SettingError(f"a range has from 2 to {MOST_VALUES:,} values", *place)
    return [written(low + (high - low) * i / (count - 1), next(iter(units), "")) for i in range(count)]


def _parts(text: str, start: int) -> Iterator[tuple[int, int]]:
    """Yield where the parts between commas are that stand outside of brackets and quotes."""
    depth, quote, first = 0, "", start
    for place in range(start, len(text)):
        character = text[place]
        if quote:
            quote = "" if character == quote else quote
        elif character in _QUOTES and not text[first:place].strip():
            quote = character
        elif character in _OPENING:
            depth += 1
        elif character in _CLOSING:
            depth -= 1
        elif character == "," and depth <= 0:
            yield first, place
            first = place + 1
    yield first, len(text)
