"""The lines of a text file of any size, read once: unpacked where gzip packed it, hashed, and refused where it is no text."""

from __future__ import annotations

import codecs
import gzip
import hashlib
import io
import zlib
from collections.abc import Iterator
from typing import BinaryIO

from planner.diagnostics import Diagnostic, DiagnosticError, Span

BLOCK_BYTES = 1 << 20
LONGEST_LINE = 4_000_000
"""Characters; a line of JSON that names the blocks of a prompt of a million tokens has fewer."""
_GZIP = b"\x1f\x8b"
_NO_TEXT = {
    b"\xff\xfe": ("UTF-16 text", "save it as UTF-8"),
    b"\xfe\xff": ("UTF-16 text", "save it as UTF-8"),
    b"PK\x03\x04": ("a zip archive or a spreadsheet", "unpack it, or save the table as CSV"),
    b"\x28\xb5\x2f\xfd": ("packed with zstd", "unpack it first, or pack it with gzip"),
    b"BZh": ("packed with bzip2", "unpack it first, or pack it with gzip"),
    b"\xfd7zXZ": ("packed with xz", "unpack it first, or pack it with gzip"),
    b"PAR1": ("a Parquet file", "save the table as CSV"),
}
"""First bytes of files that people keep traces in, what they are, and what to do."""

Block = tuple[int, list[str]]
"""Number of the first line (from 1), and lines without their ends."""


def refused(path: str, message: str, line: int = 1, help: str = "", code: str = "csv/unusable") -> DiagnosticError:
    """Return the error of a trace that cannot be used: what is wrong in which line, and what to do about it."""
    return DiagnosticError([Diagnostic(code, message, Span(path, max(line, 1), 1, 2), help=(help,) if help else ())])


class TraceText:
    """The text of one file. `blocks` may be read once; `sha256` is that of the file when they came to their end."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._digest = hashlib.sha256()

    @property
    def sha256(self) -> str:
        """Hash of the bytes read so far, as they lie in the file."""
        return self._digest.hexdigest()

    def blocks(self) -> Iterator[Block]:
        """Yield the lines in blocks of about a megabyte.

        Raises `DiagnosticError` for a path that cannot be read, damaged gzip, bytes that are no UTF-8 text, NUL and endless
        lines.
        """
        try:
            file = open(self.path, "rb", buffering=0)  # noqa: SIM115 (only what opens it may fail in these words)
        except (OSError, ValueError) as error:
            raise self._unreadable(error) from None
        with file:
            yield from self._lines(self._unpacked(io.BufferedReader(_Hashing(file, self._digest), BLOCK_BYTES)))

    def _unpacked(self, file: io.BufferedReader) -> BinaryIO:
        try:
            head = file.peek(8)
        except OSError as error:
            raise self._unreadable(error) from None
        for mark, (what, remedy) in _NO_TEXT.items():
            if head.startswith(mark):
                raise refused(self.path, f"this file is {what}, not UTF-8 text", help=remedy)
        return gzip.GzipFile(fileobj=file) if head.startswith(_GZIP) else file  # type: ignore[return-value]

    def _lines(self, file: BinaryIO) -> Iterator[Block]:
        utf_8 = codecs.getincrementaldecoder("utf-8-sig")()
        decoder = io.IncrementalNewlineDecoder(utf_8, translate=True)
        number, rest, data = 1, "", b"\n"
        while data:
            data = self._read(file)
            try:
                text = decoder.decode(data, final=not data)
            except UnicodeDecodeError as error:
                line = number + error.object[: error.start].count(b"\n")
                raise refused(self.path, "this file is not UTF-8 text", line, "save it as UTF-8") from None
            if "\0" in text:
                line = number + text.count("\n", 0, text.index("\0"))
                raise refused(self.path, "this file holds a NUL byte, so it is no text", line, "save it as UTF-8 text")
            *lines, rest = (rest + text).split("\n")
            yield number, lines
            number += len(lines)
            if len(rest) > LONGEST_LINE:
                raise refused(self.path, f"a line is longer than {LONGEST_LINE:,} characters", number, "is it a trace?")
        if rest:
            yield number, [rest]

    def _read(self, file: BinaryIO) -> bytes:
        try:
            return file.read(BLOCK_BYTES)
        except (EOFError, zlib.error, gzip.BadGzipFile):
            raise refused(self.path, "this gzip file is damaged or cut short", help="pack or fetch it again") from None
        except OSError as error:
            raise self._unreadable(error) from None

    def _unreadable(self, error: OSError | ValueError) -> DiagnosticError:
        why = "it is a folder, not a file" if isinstance(error, IsADirectoryError) else _reason(error)
        return refused(self.path, f"cannot read {self.path}: {why}")


class _Hashing(io.RawIOBase):
    """Bytes of a file, hashed as they are read."""

    def __init__(self, file: io.FileIO, digest: hashlib._Hash) -> None:
        self._file = file
        self._digest = digest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        count = self._file.readinto(buffer) or 0
        self._digest.update(memoryview(buffer)[:count])
        return count


def _reason(error: OSError | ValueError) -> str:
    said = (error.strerror if isinstance(error, OSError) else None) or str(error)
    return said[:1].lower() + said[1:]
