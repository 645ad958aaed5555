"""Result files of benchmark tools as rows of speed measurements, one format per module, found by listing this folder.

A module follows `Format`. Files come from anybody: what is unusable in them is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, Protocol, cast

from planner.diagnostics import Diagnostic, DiagnosticError, Span
from planner.validation.cells import PLACE, REFUSED
from planner.validation.result_fields import COLUMNS, ResultRow
from planner.validation.result_run import Path, Run, Unusable, lines_of


class Format(Protocol):
    """Reads one format: `NAME` for users, `NEEDS`, what a run must hold to yield a row, `RUNS`, the key of several runs."""

    NAME: str
    NEEDS: str
    RUNS: str

    def matches(self, data: Mapping[str, Any]) -> bool:
        """Tell whether an object of a file is of this format."""
        ...

    def rows(self, file: Run, run: Run) -> list[ResultRow]:
        """Return the rows of a run of this format, with blank cells for what the tool does not write.

        Raises:
            Unusable: nothing in the run can be scored, for a reason that is told.
        """
        ...


@cache
def formats() -> tuple[Format, ...]:
    """List the readers by the names of their modules."""
    return tuple(
        cast(Format, import_module(f"{__name__}.{name}")) for name in sorted(m.name for m in iter_modules(__path__))
    )


def rows_of(data: Any, path: str, text: str = "") -> list[dict[str, str]]:
    """Return the rows of a parsed result file, or of a list of such. `text` is the file, which tells lines.

    What cannot be scored is a row as well, with the reason: no run and no metric is left out without a word. Raises
    `DiagnosticError` where no format matches.
    """
    parts = (
        [Run(fields_of(part), (n,)) for n, part in enumerate(data)]
        if isinstance(data, list)
        else [Run(fields_of(data))]
    )
    known = ", ".join(reader.NAME for reader in formats())
    if not any(reader.matches(part.data) for part in parts for reader in formats()):
        message = f"no known benchmark result; looked for: {known}"
        raise DiagnosticError([Diagnostic("json/unusable", message, Span(path, 1, 1, 2))])
    found = [row for part in parts for row in _rows_of_part(part, known)]
    lines = lines_of(text, {at for _, at in found}) if text else {}
    return [cells | ({PLACE: f"{path}:{lines[at]}"} if text else {}) for cells, at in found]


def fields_of(data: object) -> Mapping[str, Any]:
    """Return an object of the file, or an empty one where the file has something else."""
    return data if isinstance(data, Mapping) else {}


def _rows_of_part(part: Run, known: str) -> Iterator[tuple[dict[str, str], Path]]:
    readers = [reader for reader in formats() if reader.matches(part.data)]
    if not readers:
        yield _refused(Unusable(part.path, f"no known benchmark result; looked for: {known}"))
    for reader in readers:
        for run in part.runs(reader.RUNS) if reader.RUNS else [part]:
            yield from _rows_of_run(reader, part, run)


def _rows_of_run(reader: Format, part: Run, run: Run) -> Iterator[tuple[dict[str, str], Path]]:
    try:
        rows = reader.rows(part, run)
    except Unusable as error:
        yield _refused(error)
        return
    if not rows:
        yield _refused(Unusable(run.path, f"no usable measurement: {reader.NAME} needs {reader.NEEDS}"))
    for row in rows:
        yield _refused(row.wrong, row.cells, run.path) if row.wrong else (row.cells, run.path)


def _refused(why: Unusable, cells: Mapping[str, str] | None = None, run: Path = ()) -> tuple[dict[str, str], Path]:
    return {**(cells or dict.fromkeys(COLUMNS, "")), REFUSED: why.reason}, why.path or run
