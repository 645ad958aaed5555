"""The results of a sweep: a file of JSON lines that is only ever appended to, so that a killed sweep goes on where it was.

The first line says what is swept. Each other line is a finished scenario, on disk before the next one is taken up.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Literal

from pydantic import ValidationError

from planner.diagnostics import Diagnostic, DiagnosticError, Span
from planner.plan.io import line_of
from planner.plan.record import Record
from planner.sweep.row import Row
from planner.sweep.scenario import Scenario

_OTHERWISE = {
    "spec": "the spec is another one, or was changed",
    "catalog": "the catalog, or a model that the spec brings along, was changed",
    "planner": "another release of the planner wrote it",
    "definition": "the settings are others, or the trade or its range",
    "options": "--as-of or --gap is another one",
}


class Header(Record):
    """What a results file is about: digests of the spec, of the catalog and of the settings, release, and options."""

    sweep: Literal[1] = 1
    spec: str
    catalog: str
    planner: str
    definition: str
    options: str


class InUseError(RuntimeError):
    """Another sweep is writing the file."""


class Results:
    """Finished scenarios by number, in a file or, without one, in memory."""

    def __init__(self, file: IO[bytes] | None = None, rows: Mapping[int, Row] | None = None) -> None:
        """Use `opened_results`."""
        self._file = file
        self.rows = dict(rows or {})

    def add(self, line: str) -> Row:
        """Keep the line of a finished scenario; it is on disk when this returns."""
        row = Row.model_validate_json(line)
        if self._file is not None:
            _append(self._file, line)
        self.rows[row.scenario] = row
        return row


@contextmanager
def opened_results(path: Path | None, header: Header, scenarios: Sequence[Scenario] = ()) -> Iterator[Results]:
    """Open the results at `path`, with the scenarios that are finished; begin them where there is nothing.

    Scenarios that failed are not among them: they are tried again. A last line that was cut off is removed. Rows of those
    `scenarios` that are known must have their values.

    Raises:
        DiagnosticError: the file is none of this sweep.
        InUseError: another sweep is writing it.
        OSError: it cannot be read or written.
    """
    if path is None:
        yield Results()
        return
    numbered = {scenario.number: scenario for scenario in scenarios}
    with path.open("a+b") as file:
        _take(file)
        file.seek(0)
        content = file.read()
        whole = content[: content.rfind(b"\n") + 1]
        lines = whole.splitlines()
        if content and not lines and not content.startswith(b'{"sweep"'):
            raise _refused(path, 1, "this is no results file")
        file.truncate(len(whole))
        if not lines:
            _append(file, line_of(header))
        else:
            _check(path, lines[0], header)
        found = (_row(path, number, line, numbered) for number, line in enumerate(lines[1:], 2))
        yield Results(file, {row.scenario: row for row in found if row.status != "failed"})


def _take(file: IO[bytes]) -> None:
    """Keep other sweeps out, where the system has locks. Workers do not inherit them, so that a killed sweep leaves none."""
    with suppress(ImportError):
        import fcntl

        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise InUseError from None


def _append(file: IO[bytes], line: str) -> None:
    file.write(f"{line}\n".encode())
    file.flush()
    os.fsync(file.fileno())


def _check(path: Path, line: bytes, header: Header) -> None:
    try:
        found = Header.model_validate_json(line)
    except ValidationError:
        raise _refused(path, 1, "this is no results file") from None
    ours = header.model_dump()
    other = [what for what, value in found.model_dump().items() if value != ours[what]]
    if other:
        why = " and ".join(_OTHERWISE[what] for what in other)
        raise _refused(path, 1, f"these are other results: {why}")


def _row(path: Path, number: int, line: bytes, scenarios: Mapping[int, Scenario]) -> Row:
    try:
        row = Row.model_validate_json(line)
    except ValidationError:
        raise _refused(path, number, "this line is no scenario") from None
    known = scenarios.get(row.scenario)
    if known is not None and dict(known.values) != dict(row.values):
        raise _refused(path, number, f"scenario {row.scenario} has other values in this sweep")
    return row


def _refused(path: Path, line: int, message: str) -> DiagnosticError:
    help = ("give another file with --results, or remove this one",)
    return DiagnosticError([Diagnostic("sweep/other-results", message, Span(str(path), line, 1, 2), help=help)])
