"""Rows of the same keys as a table, JSON or CSV. Keys carry the units; nothing here knows what a row is about."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from planner.report.figures import number, share, visible

SCHEMA_VERSION = 1
TABLE_DIGITS = 6
DATA_DIGITS = 12
"""Significant digits of JSON and CSV: enough for any figure here, and below the noise of the last bits."""

FORMULA_STARTS = (*"=+-@\t\r\n", *"\uff1d\uff0b\uff0d\uff20")
"""Spreadsheets take cells that start so for formulas, some also where the signs are the full-width ones."""

SHARE = "_share"
"""End of a key whose value is a share of one; people read it in percent."""

Row = Mapping[str, Any]
Shown = Mapping[str, Callable[[Any], str]]
"""How the values of some keys are written, where not as `cell` and `share` write them."""
AS_USUAL: Shown = MappingProxyType({})


def table(rows: Sequence[Row], digits: int = TABLE_DIGITS, shown: Shown = AS_USUAL) -> list[str]:
    """Lay out rows of the same keys in aligned columns, numbers to the right, empty cells as `-`."""
    if not rows:
        return ["nothing to list"]
    cells = [[title(key) for key in rows[0]], *([_shown(k, v, digits, shown) for k, v in row.items()] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    right = [all(not isinstance(row[key], str) for row in rows) for key in rows[0]]
    return ["  ".join(_padded(*each) for each in zip(line, widths, right, strict=True)).rstrip() for line in cells]


def listing(row: Row, digits: int = TABLE_DIGITS, shown: Shown = AS_USUAL) -> list[str]:
    """Lay out one row as two columns: a line for each key."""
    width = max((len(title(key)) for key in row), default=0)
    return [f"{title(key):<{width}}  {_shown(key, value, digits, shown)}" for key, value in row.items()]


def as_json(answer: Mapping[str, Any]) -> str:
    """Return one JSON object with its `schema_version`, keys in the order given. Raises `ValueError` for inf and nan."""
    data = {"schema_version": SCHEMA_VERSION, **answer}
    return json.dumps(_rounded(data), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def as_csv(rows: Sequence[Row], columns: Sequence[str] = ()) -> str:
    """Return rows of the same keys as CSV with a header, of `columns` also without rows; what is absent is an empty field."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    if rows or columns:
        writer.writerow(columns or rows[0])
    writer.writerows([_field(value) for value in row.values()] for row in rows)
    return file.getvalue()


def safe_cell(cell: str) -> str:
    """Return a cell on one line that no spreadsheet runs as a formula."""
    return visible(f"'{cell}" if cell.startswith(FORMULA_STARTS) else cell)


def title(key: str) -> str:
    """Return a key as the head of its column."""
    return key.replace("_", " ")


def cell(value: object, digits: int = TABLE_DIGITS) -> str:
    """Return a value as people read it: so many significant digits, thousands marked, `-` for what is absent."""
    if value is None or value == "" or value == {}:
        return "-"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 10.0**digits else number(value, digits)
    return str(value)


def _shown(key: str, value: object, digits: int, shown: Shown) -> str:
    """Return a value as its key asks for: shares of one in percent."""
    if key in shown and value is not None:
        return shown[key](value)
    return share(value) if key.endswith(SHARE) and isinstance(value, float) else cell(value, digits)


def _padded(text: str, width: int, right: bool) -> str:
    return text.rjust(width) if right else text.ljust(width)


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.{DATA_DIGITS}g}")
    if isinstance(value, Mapping):
        return {key: _rounded(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(item) for item in value]
    return value


def _field(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:.{DATA_DIGITS}g}" if isinstance(value, float) else str(value)
