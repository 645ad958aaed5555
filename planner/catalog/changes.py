"""Values of a catalog that are otherwise than in its files, for planning with them; no file is written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from planner.catalog.loading import FileValues
from planner.units import Price


@dataclass(frozen=True)
class CatalogChanges:
    """Values of files by their path inside the catalog, and prices of nodes by the name of their offer in plans.

    Such prices win over all others.
    """

    files: Mapping[str, FileValues] = field(default_factory=dict)
    prices: Mapping[str, Price] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """What is otherwise, the same text for the same values; empty for nothing."""
        return "\n".join([repr(item) for item in (*sorted(self.files.items()), *sorted(self.prices.items()))])
