"""Result files of benchmark tools as rows of speed measurements, one format per module, found by listing this folder.

A module follows `Format`. Files come from anybody: what is unusable in them is left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, Protocol, cast

from planner.diagnostics import Diagnostic, DiagnosticError, Span


class Format(Protocol):
    """Reads one format: `NAME` for users, and `NEEDS`, what a file must hold to yield a row."""

    NAME: str
    NEEDS: str

    def matches(self, data: Mapping[str, Any]) -> bool:
        """Tell whether an object of a file is of this format."""
        ...

    def rows(self, data: Mapping[str, Any]) -> list[dict[str, str]]:
        """Return the rows of an object of this format, with blank cells for what the tool does not write."""
        ...


@cache
def formats() -> tuple[Format, ...]:
    """List the readers by the names of their modules."""
    return tuple(
        cast(Format, import_module(f"{__name__}.{name}")) for name in sorted(m.name for m in iter_modules(__path__))
    )


def rows_of(data: Any, path: str) -> tuple[str, list[dict[str, str]]]:
    """Return the format of a parsed result file, or of a list of such, and its rows.

    Raises `DiagnosticError` where no format matches or nothing in the file is usable.
    """
    results = [part for part in (data if isinstance(data, list) else [data]) if isinstance(part, Mapping)]
    read = [(reader, part) for part in results for reader in formats() if reader.matches(part)]
    if not read:
        known = ", ".join(reader.NAME for reader in formats())
        raise _wrong(path, f"no known benchmark result; looked for: {known}")
    found = {reader.NAME: reader for reader, _ in read}
    rows = [row for reader, part in read for row in reader.rows(part)]
    if not rows:
        needs = "; ".join(f"{name} needs {reader.NEEDS}" for name, reader in found.items())
        raise _wrong(path, f"no usable measurement in this file; {needs}")
    return ", ".join(found), rows


def _wrong(path: str, message: str) -> DiagnosticError:
    return DiagnosticError([Diagnostic("csv/unusable", message, Span(path, 1, 1, 2))])
