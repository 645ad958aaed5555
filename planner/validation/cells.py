"""Cells of measurements: text from anybody. Blank is blank, a number has to be one that its column can hold.

What is filled in and is no such number is never taken as blank: the row is not scored, with the cell in the reason.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from planner.catalog.canonical import tidy

Row = Mapping[str, str]
"""A row by column; missing cells are empty text. Keys in brackets are what the reader of the file says about the row."""

EXCESS = "(cells beyond the columns)"
"""Key of rows that have more cells than there are columns, so that no cell can be trusted."""
REFUSED = "(why it is not scored)"
"""Key of rows that a reader of result files could not make sense of, with the reason."""
PLACE = "(place)"
"""Key of the file and line of a row."""
MARKS = frozenset({EXCESS, REFUSED, PLACE})
BLANK_WORDS = frozenset(
    {
        "n/a",
        "na",
        "n.a.",
        "#n/a",
        "nan",
        "-",
        "--",
        "–",
        "—",
        "?",
        "unknown",
        "none",
        "null",
        "nil",
        "tbd",
        "not stated",
    }
)
"""What people and tools write into a cell that they leave blank, in lower case."""
LONGEST_QUOTE = 40
_PLAIN = re.compile(r"[+-]?(?:[0-9]{1,40}(?:\.[0-9]{0,40})?|\.[0-9]{1,40})(?:[eE][+-]?[0-9]{1,4})?")


class NotScored(Exception):  # noqa: N818
    """A row that cannot be scored; `scorable` tells whether it states enough and the planner is what is lacking."""

    def __init__(self, reason: str, scorable: bool) -> None:
        self.reason = reason
        self.scorable = scorable
        super().__init__(reason)


@dataclass(frozen=True, slots=True)
class Kind:
    """What a column holds (`noun`), from `least` to `most`; `above` excludes `least` itself, `whole` fractions."""

    noun: str
    least: float
    most: float
    above: bool = False
    whole: bool = False

    def holds(self, value: float) -> bool:
        """Tell whether a number can stand in such a column."""
        low = value > self.least if self.above else value >= self.least
        return low and value <= self.most and (not self.whole or value == int(value))


def filled(text: str) -> str:
    """Return the text of a cell, empty for words that stand for a blank."""
    found = text.strip()
    return "" if found.casefold() in BLANK_WORDS else found


def quoted(text: str) -> str:
    """Return the text of a cell as a reason prints it: on one line, and shortened."""
    clean = tidy(text)
    return f"`{clean if len(clean) <= LONGEST_QUOTE else clean[: LONGEST_QUOTE - 1] + '…'}`"


def parsed(text: str) -> float | None:
    """Return the number in a cell, None for text that is none. Digits, a point and an exponent; no unit, no separator."""
    return float(text) if text and _PLAIN.fullmatch(text) else None


def number(row: Row, column: str, kind: Kind) -> float | None:
    """Return the number in a column, None for a blank. Raises `NotScored` for a cell that holds no such number."""
    text = filled(row.get(column, ""))
    if not text:
        return None
    value = parsed(text)
    if value is None:
        raise NotScored(f"{column} {quoted(text)} is no number", scorable=True)
    if not kind.holds(value):
        most = f" (at most {kind.most:,.0f})" if value > kind.most else ""
        raise NotScored(f"{column} {text} is no {kind.noun}{most}", scorable=True)
    return value


def refuse_unreadable(row: Row) -> None:
    """Raise `NotScored` for a row that its reader already refused."""
    if EXCESS in row:
        raise NotScored("more cells than columns", scorable=True)
    if REFUSED in row:
        raise NotScored(row[REFUSED], scorable=True)
