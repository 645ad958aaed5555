"""What a user states beside files of measurements: it fills the cells that a file leaves blank, and no other."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from planner.validation.cells import REFUSED
from planner.validation.result_fields import named_weights

_PATH = re.compile(r"[/~\\]|\.{1,2}[/\\]|[A-Za-z]:[/\\]")
"""How a path of a file system begins; names of repositories do not."""


def _none_is_known(name: str) -> bool:  # noqa: ARG001
    return False


@dataclass(frozen=True)
class Stated:
    """Cells by column, and whether a model is known by a name, which decides about paths.

    A path that names no known model counts as blank, and so does an engine without a version beside the same engine with one.
    """

    cells: Mapping[str, str] = field(default_factory=dict)
    is_model: Callable[[str], bool] = _none_is_known

    def fill(self, row: Mapping[str, str]) -> dict[str, str]:
        """Return a row with what is stated in its blank cells. Nothing completes a row that is not scored anyway."""
        if REFUSED in row:
            return dict(row)
        return {**row, **{c: value for c, value in self.cells.items() if self._is_open(c, row.get(c, ""), value)}}

    def fill_result(self, row: Mapping[str, str]) -> dict[str, str]:
        """Return a row of a result file with what is stated; weights that are still blank are those of the build's name."""
        full = self.fill(row)
        named = named_weights(row["model"]) or named_weights(full["model"])
        return full | {"weight_dtype": full["weight_dtype"] or named}

    def _is_open(self, column: str, cell: str, value: str) -> bool:
        if column == "model" and _PATH.match(cell):
            return not self.is_model(cell)
        if column == "engine" and cell:
            return value.casefold().startswith(f"{cell.casefold()} ")
        return not cell
