"""Reading a source from a file or from standard input, without ever holding more than the limit."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from planner.diagnostics import STANDARD_INPUT_NAME, Diagnostic
from planner.source.parse import MAX_SOURCE_BYTES, too_large
from planner.source.text import decode, split_lines, without_byte_order_mark

STANDARD_INPUT = "-"


@dataclass(frozen=True, slots=True)
class Source:
    """A file that was read: its name for messages, and its text or why it has none."""

    path: str
    text: str | None
    diagnostics: tuple[Diagnostic, ...] = ()

    @property
    def lines(self) -> tuple[str, ...]:
        """The lines of the file, as spans count them; empty when it could not be read."""
        return split_lines(without_byte_order_mark(self.text or ""))


def read_source(path: str, name: str | None = None) -> Source:
    """Read a file, or standard input for `-`. `name` replaces the path in messages.

    Raises OSError when the path cannot be opened; what is inside only leads to diagnostics.
    """
    shown = name or (STANDARD_INPUT_NAME if path == STANDARD_INPUT else path)
    data = _read_bytes(path)
    if len(data) > MAX_SOURCE_BYTES:
        return Source(shown, None, (too_large(shown),))
    text = decode(data, shown)
    if isinstance(text, Diagnostic):
        return Source(shown, None, (text,))
    return Source(shown, text)


def _read_bytes(path: str) -> bytes:
    if path == STANDARD_INPUT:
        return sys.stdin.buffer.read(MAX_SOURCE_BYTES + 1)
    with Path(path).open("rb") as file:
        return file.read(MAX_SOURCE_BYTES + 1)
