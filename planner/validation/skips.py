"""Rows that are left out: each with its place and its reason, so that none vanishes from the counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from planner.catalog import UnknownName
from planner.catalog.canonical import tidy
from planner.validation.cells import MARKS, PLACE, NotScored, Row

REPEATED = "counted once: the same row, cell by cell, stands before"
"""Why a row is left out that says nothing new."""


@dataclass(frozen=True, slots=True)
class Skip:
    """One row that is left out: its file and line, why, and whether the row states enough (see `NotScored`)."""

    place: str
    reason: str
    scorable: bool


def skip(row: Row, why: Exception) -> Skip:
    """Return a row as left out. What the physics cannot compute is a lack of the planner, not of the row."""
    return Skip(row.get(PLACE, ""), str(why), why.scorable if isinstance(why, NotScored) else True)


class Repeats:
    """Tells rows that are equal in every cell, whatever file they stand in: they are one measurement, not two."""

    def __init__(self) -> None:
        self._known: set[frozenset[tuple[str, str]]] = set()

    def refuse(self, row: Row) -> None:
        """Raise `NotScored` for a row that was there before."""
        cells = frozenset((column, cell) for column, cell in row.items() if cell and column not in MARKS)
        if cells in self._known:
            raise NotScored(REPEATED, scorable=False)
        self._known.add(cells)


def by_reason(skips: Iterable[Skip]) -> dict[str, int]:
    """Count rows by reason, the most frequent first."""
    return most_first(Counter(s.reason for s in skips))


def most_first(counts: Mapping[str, int]) -> dict[str, int]:
    """Return counts by reason, the most frequent first."""
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


@dataclass(frozen=True, slots=True)
class CountedRows:
    """How many rows there were, and why some of them were not scored."""

    rows: int
    skips: tuple[Skip, ...]

    @property
    def scorable(self) -> int:
        """Number of rows that state enough."""
        return self.rows - len(self.skips) + self.skipped_scorable

    @property
    def skipped(self) -> dict[str, int]:
        """Rows that were not scored, by reason."""
        return by_reason(self.skips)

    @property
    def skipped_scorable(self) -> int:
        """Number of rows that state enough and were not scored all the same."""
        return sum(s.scorable for s in self.skips)


def name_reason(kind: str, named: str, error: UnknownName) -> str:
    """Return why a label of a measurement means nothing in the catalog, with the names that it could stand for."""
    candidates = ", ".join(error.suggestions)
    if error.reason:
        return f"{kind} {tidy(named)}: not modelled: {error.reason}"
    if error.ambiguous:
        return f"{kind} {tidy(named)} is not one of the catalog: it could mean {candidates}"
    return f"{kind} {tidy(named)}: not in the catalog" + (f"; did you mean {candidates}?" if candidates else "")
