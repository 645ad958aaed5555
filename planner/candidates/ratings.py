"""What plans share that are made one after the other: constants, and the ratings of models that are as before."""

from __future__ import annotations

from typing import Any

from planner.candidates.knowledge import Knowledge
from planner.candidates.table import Memo
from planner.catalog import Catalog

MOST_RATINGS = 256
"""Ratings of models that are kept per catalog and confidence: the latest ones."""
MOST_GROUNDS = 8


class Ratings:
    """Constants and ratings by catalog and confidence; prices change neither. Not for several threads at once."""

    def __init__(self) -> None:
        self._grounds: dict[str, tuple[Knowledge, Memo]] = {}

    def of(self, catalog: Catalog, confidence: float) -> tuple[Knowledge, Memo]:
        """Return what is known of a catalog, read as it was first. Raises `DiagnosticError` as `Knowledge.of`."""
        key = repr((catalog.root, sorted(catalog.changes.files.items()), list(catalog.added), confidence))
        if key not in self._grounds:
            self._grounds[key] = Knowledge.of(catalog, confidence), {}
            _trim(self._grounds, MOST_GROUNDS)
        knowledge, memo = self._grounds[key]
        _trim(memo, MOST_RATINGS)
        return knowledge, memo


def _trim(kept: dict[str, Any], most: int) -> None:
    """Forget the oldest entries."""
    for key in list(kept)[:-most]:
        del kept[key]
