"""Read a CSV file of measurements: text from anybody, bounded in size, with its columns checked once."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from planner.catalog.canonical import tidy
from planner.diagnostics import Diagnostic, DiagnosticError, Span
from planner.source.nearest import nearest
from planner.validation.cells import EXCESS, PLACE, Row, filled
from planner.validation.result_fields import COLUMNS
from planner.validation.result_run import repeated_key
from planner.validation.stated import Stated

LARGEST_BYTES = 100_000_000
LARGEST_FIELD = 20_000
MEMORY_COLUMNS = ("model", "engine", "weights_gib_per_gpu", "kv_gib_per_gpu", "kv_tokens", "max_concurrency", "outcome")
"""Columns of start-up logs: `model` and `engine`, and at least one of the measured ones."""
MEASURED_COLUMNS = MEMORY_COLUMNS[2:]
SEPARATORS = {";": "`;`", "\t": "tabs", "|": "`|`"}
"""What spreadsheets write between cells where a comma is part of numbers."""
SPEED_COLUMNS = ("model", "gpu", "scenario", "metric", "value")
"""Columns of published speed measurements."""


@dataclass(frozen=True, slots=True)
class Table:
    """The rows of a file, each by column; missing cells are empty text."""

    path: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]

    @property
    def is_memory(self) -> bool:
        """Tell whether these are start-up logs."""
        return set(MEMORY_COLUMNS[:2]) <= set(self.columns) and bool(set(MEASURED_COLUMNS) & set(self.columns))

    @property
    def is_speed(self) -> bool:
        """Tell whether these are speed measurements."""
        return set(SPEED_COLUMNS) <= set(self.columns)


@dataclass(frozen=True, slots=True)
class Measurements:
    """A file of measurements: its bytes, which tell it apart, and its table."""

    data: bytes
    table: Table


def read_measurement_file(data: bytes, path: str, stated: Stated) -> Measurements:
    """Read a table, or a result file of a benchmark tool (JSON), with what is stated. Raises `DiagnosticError`."""
    if not data.lstrip(b"\xef\xbb\xbf \t\r\n").startswith((b"{", b"[")):
        return Measurements(data, _filled(read_table(data, path), stated))
    from planner.validation.results import rows_of

    if len(data) > LARGEST_BYTES:
        raise _not_json(path, f"larger than {LARGEST_BYTES // 1_000_000} MB")
    try:
        text = data.decode("utf-8-sig")
        parsed = json.loads(text, object_pairs_hook=_without_repeats)
    except json.JSONDecodeError as error:
        raise _not_json(path, f"not JSON: {error.msg}", error.lineno, error.colno) from None
    except UnicodeDecodeError as error:
        raise _not_json(path, "this file is not UTF-8 text", data.count(b"\n", 0, error.start) + 1) from None
    except _RepeatedKeyError:
        key, line = repeated_key(text) or ("", 1)
        raise _not_json(path, f"the key `{tidy(key)}` is there twice", line) from None
    except (ValueError, RecursionError) as error:
        raise _not_json(path, f"not JSON: {error}") from None
    rows = tuple(stated.fill_result(row) for row in rows_of(parsed, path, text))
    return Measurements(data, Table(path, COLUMNS, rows))


class _RepeatedKeyError(ValueError):
    """An object of a JSON text has a key twice."""


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise _RepeatedKeyError
    return found


def _filled(table: Table, stated: Stated) -> Table:
    """Return a table of speeds with `stated` in the cells that are blank. Raises `DiagnosticError` for start-up logs."""
    if not stated.cells:
        return table
    if table.is_memory:
        raise _wrong(table.path, "what is stated beside files is for speed measurements; these are start-up logs")
    columns = tuple(dict.fromkeys((*table.columns, *stated.cells)))
    return Table(table.path, columns, tuple(stated.fill(row) for row in table.rows))


def join(files: Sequence[Measurements]) -> Measurements:
    """Return several files as one. Raises `DiagnosticError` when some are start-up logs and some speeds."""
    first = files[0]
    odd = next((f for f in files if f.table.is_memory != first.table.is_memory), None)
    if odd is not None:
        raise _wrong(odd.table.path, "start-up logs and speed measurements are not scored together")
    if len(files) == 1:
        return first
    columns = tuple(dict.fromkeys(column for f in files for column in f.table.columns))
    rows = tuple(row for f in files for row in f.table.rows)
    return Measurements(b"".join(f.data for f in files), Table(first.table.path, columns, rows))


def read_table(data: bytes, path: str) -> Table:
    """Return the table in `data`. Raises `DiagnosticError` for a file that is empty, no text or without known columns."""
    if len(data) > LARGEST_BYTES:
        raise _wrong(path, f"larger than {LARGEST_BYTES // 1_000_000} MB")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise _wrong(path, "this file is not UTF-8 text") from None
    csv.field_size_limit(LARGEST_FIELD)
    reader = csv.reader(io.StringIO(text, newline=""))
    lines: list[tuple[int, list[str]]] = []
    before = 0
    try:
        for line in reader:
            if any(cell.strip() for cell in line):
                lines.append((before + 1, line))
            before = reader.line_num
    except csv.Error as error:
        raise _wrong(path, f"not CSV: {error}", reader.line_num) from None
    if not lines:
        raise _wrong(path, f"the file is empty; {_looked_for()}")
    columns = tuple(cell.strip() for cell in lines[0][1])
    twice = next((name for position, name in enumerate(columns) if name and name in columns[:position]), None)
    if twice is not None:
        raise _wrong(path, f"the column `{tidy(twice)}` is there twice")
    table = Table(path, columns, tuple(_row(columns, line, f"{path}:{number}") for number, line in lines[1:]))
    if not (table.is_memory or table.is_speed):
        raise _wrong(path, _missing_columns(columns), lines[0][0])
    if not table.rows:
        raise _wrong(path, "the table has no rows below its columns")
    return table


def _row(columns: Sequence[str], line: list[str], place: str) -> Row:
    row = dict.fromkeys(columns, "")
    row[PLACE] = place
    if any(cell.strip() for cell in line[len(columns) :]):
        row[EXCESS] = "yes"
    row.update({column: filled(cell) for column, cell in zip(columns, line, strict=False)})
    return row


def _missing_columns(columns: Sequence[str]) -> str:
    """Say what the first line of a table lacks: a comma between its columns, or those of the layout that it is nearest to."""
    joined = ",".join(columns)
    for separator, name in SEPARATORS.items():
        if _known(joined.split(separator)) > _known(columns):
            return f"the columns are separated by {name}, not by commas; save the table as CSV with commas"
    if not _known(columns):
        return f"no known columns in the first line; {_looked_for()}"
    lacking = {
        "speed measurements": [_lacking(name, columns) for name in SPEED_COLUMNS if name not in columns],
        "start-up logs": [
            *(_lacking(name, columns) for name in MEMORY_COLUMNS[:2] if name not in columns),
            *([] if set(MEASURED_COLUMNS) & set(columns) else [f"one of {', '.join(MEASURED_COLUMNS)}"]),
        ],
    }
    marks = {"speed measurements": SPEED_COLUMNS[2:], "start-up logs": MEASURED_COLUMNS}
    meant = [kind for kind, own in marks.items() if set(own) & set(columns)] or list(lacking)
    return "columns are missing: " + "; ".join(f"{kind} need {', '.join(lacking[kind])} too" for kind in meant)


def _known(columns: Sequence[str]) -> int:
    return len({name.strip(' "') for name in columns} & {*SPEED_COLUMNS, *MEMORY_COLUMNS})


def _lacking(name: str, columns: Sequence[str]) -> str:
    """Name a column that is missing, with one that differs in case or by a slip."""
    close = nearest(name, [column for column in columns if not _known([column])])
    return f"`{name}`" + (f" (there is `{tidy(close)}`)" if close else "")


def _looked_for() -> str:
    return (
        f"start-up logs need {', '.join(MEMORY_COLUMNS[:2])} and one of {', '.join(MEASURED_COLUMNS)}; "
        f"speed measurements need {', '.join(SPEED_COLUMNS)}"
    )


def too_little(message: str) -> Diagnostic:
    """Return that nothing can be fitted to files of measurements, of whatever kind they are."""
    return Diagnostic("measurements/too-little", message)


def _not_json(path: str, message: str, line: int = 1, column: int = 1) -> DiagnosticError:
    return DiagnosticError([Diagnostic("json/syntax", message, Span(path, line, column, column + 1))])


def _wrong(path: str, message: str, line: int = 1) -> DiagnosticError:
    return DiagnosticError([Diagnostic("csv/unusable", message, Span(path, max(line, 1), 1, 2))])
