"""Rows that were left out, for people and as data: how many for each reason, and where they stand."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from planner.report.figures import count
from planner.validation.skips import Skip, by_reason

MOST_REASONS = 12
MOST_PLACES = 3


def skips_data(skips: Iterable[Skip]) -> list[dict[str, Any]]:
    """Return every row that was left out, in the order of the files."""
    return [{**place_data(s.place), "reason": s.reason, "scorable": s.scorable} for s in skips]


def place_data(place: str) -> dict[str, Any]:
    """Return the file and the line of a place; `line` is None where there is none."""
    path, _, line = place.rpartition(":")
    return {"file": path, "line": int(line) if line.isdigit() else None}


def skips_lines(skips: Sequence[Skip]) -> list[str]:
    """Return one line for each reason, the most frequent first, with the first places; of many reasons the first."""
    places: dict[str, list[str]] = {}
    for skip in skips:
        places.setdefault(skip.reason, []).append(skip.place)
    counts = list(by_reason(skips).items())
    # A line that says "1 more reason" takes the place of the reason itself.
    shown = counts if len(counts) <= MOST_REASONS + 1 else counts[:MOST_REASONS]
    lines = [f"{n:,} x {reason}{_places(places[reason])}" for reason, n in shown]
    more = len(counts) - len(shown)
    return [*lines, *([f"{count(more, 'more reason')}; --format json has all"] if more else [])]


def _places(places: Sequence[str]) -> str:
    """Return the first places in brackets; a file that was just named is not named again."""
    named = [place for place in places if place]
    shown: list[str] = []
    last = None
    # As with reasons: "and 1 more" takes the place of the line itself.
    for place in named if len(named) <= MOST_PLACES + 1 else named[:MOST_PLACES]:
        path, _, line = place.rpartition(":")
        shown.append(place if path != last else line)
        last = path
    more = len(named) - len(shown)
    return f" ({', '.join(shown)}{f' and {more:,} more' if more else ''})" if shown else ""
