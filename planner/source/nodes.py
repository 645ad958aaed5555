"""Located YAML nodes: what a document is made of before it is anything else."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Mark:
    """Where a node lies: first line and column, last line and column (all from 0, the last column exclusive)."""

    line: int
    column: int
    end_line: int
    end_column: int


@dataclass(slots=True)
class Node:
    """A value of the document with its place. `data` is the plain value; aliases share the node of their anchor.

    `size` counts nodes with every alias written out, `depth` levels of nesting. `entries` holds the children of a
    mapping with the mark of their key, `items` those of a sequence. `text` is a scalar as written, without quotes.
    """

    data: Any
    mark: Mark
    size: int = 1
    depth: int = 0
    text: str | None = None
    entries: dict[str, tuple[Mark, Node]] | None = None
    items: list[Node] | None = field(default=None)

    def child(self, segment: str | int) -> Node | None:
        """Return the child under a key or at an index, None when there is none."""
        if self.entries is not None and isinstance(segment, str):
            entry = self.entries.get(segment)
            return entry[1] if entry else None
        if self.items is not None and isinstance(segment, int) and 0 <= segment < len(self.items):
            return self.items[segment]
        return None

    def key_mark(self, segment: str | int) -> Mark | None:
        """Return the mark of a key of this mapping, None for sequences and unknown keys."""
        entry = self.entries.get(segment) if self.entries is not None and isinstance(segment, str) else None
        return entry[0] if entry else None

    @property
    def is_on_one_line(self) -> bool:
        """Tell whether the value starts and ends on the same line and is not empty."""
        return self.mark.line == self.mark.end_line and self.mark.end_column > self.mark.column
