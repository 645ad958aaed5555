"""From the bytes of a source to its text."""

from __future__ import annotations

from dataclasses import dataclass

from planner.diagnostics import Diagnostic
from planner.source.files import FilePath
from planner.source.parse import MAX_SOURCE_BYTES, too_large
from planner.source.text import decode, split_lines, without_byte_order_mark


@dataclass(frozen=True, slots=True)
class Source:
    """A file that was read: its name for messages, and its text or why it has none.

    `file` is where it lies, None where that is at `path` on disk, or nowhere.
    """

    path: str
    text: str | None
    diagnostics: tuple[Diagnostic, ...] = ()
    file: FilePath | None = None

    @property
    def lines(self) -> tuple[str, ...]:
        """The lines of the file, as spans count them; empty when it could not be read."""
        return split_lines(without_byte_order_mark(self.text or ""))


def source_of(data: bytes, path: str, file: FilePath | None = None) -> Source:
    """Return the source with these bytes, which messages call `path`. What is wrong with them only leads to diagnostics."""
    if len(data) > MAX_SOURCE_BYTES:
        return Source(path, None, (too_large(path),), file)
    text = decode(data, path)
    if isinstance(text, Diagnostic):
        return Source(path, None, (text,), file)
    return Source(path, text, (), file)
