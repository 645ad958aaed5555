"""`planner catalog`: list what the catalog knows, show one entry with its sources, check the files."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from planner.catalog import Catalog, UnknownName, find_catalog
from planner.cli.commands import CONTEXT_SETTINGS, help_when_alone
from planner.cli.exits import ExitCode
from planner.cli.options import CatalogOption
from planner.cli.streams import answer
from planner.diagnostics import Diagnostic, DiagnosticError, has_errors

SCHEMA_VERSION = 1


class Kind(StrEnum):
    """What can be listed."""

    GPUS = "gpus"
    MODELS = "models"
    OFFERS = "offers"


class Format(StrEnum):
    """How the answer is printed."""

    TABLE = "table"
    JSON = "json"


FormatOption = Annotated[Format, typer.Option("--format", help="How to print the answer.")]

app = typer.Typer(
    name="catalog",
    help="GPUs, models, prices and their sources.\n\nExample: planner catalog show h100-sxm",
    context_settings=CONTEXT_SETTINGS,
    invoke_without_command=True,
    add_completion=False,
    rich_markup_mode=None,
)
app.callback()(help_when_alone)


@app.command("list")
def list_entries(
    kind: Annotated[Kind, typer.Argument(help="What to list.", metavar="KIND", show_default=False)],
    provider: Annotated[
        str | None, typer.Option(help="Only offers of this provider.", metavar="NAME", show_default=False)
    ] = None,
    gpu: Annotated[
        str | None, typer.Option(help="Only offers of this GPU.", metavar="NAME", show_default=False)
    ] = None,
    catalog: CatalogOption = None,
    output: FormatOption = Format.TABLE,
) -> None:
    """List all GPUs, models or priced offers.

    Example: planner catalog list offers --provider aws --gpu l40s
    """
    from planner.catalog.listing import gpu_rows, model_rows, offer_rows

    opened = _opened(catalog)
    try:
        if kind is Kind.OFFERS:
            rows = offer_rows(opened, provider, gpu)
        else:
            rows = gpu_rows(opened) if kind is Kind.GPUS else model_rows(opened)
    except (UnknownName, DiagnosticError) as error:
        _refuse(error)
    if output is Format.JSON:
        _print_json({kind.value: rows})
    else:
        _print(table(rows))
        if kind is Kind.GPUS:
            _print(["", *(f"not modelled: {n.name}: {n.reason}" for n in opened.not_modelled())])


@app.command("show")
def show_entry(
    name: Annotated[
        str, typer.Argument(help="GPU, model, engine, provider or instance type.", metavar="NAME", show_default=False)
    ],
    catalog: CatalogOption = None,
    output: FormatOption = Format.TABLE,
) -> None:
    """Show one entry with its sources, notes and doubts.

    Example: planner catalog show h100-sxm
    """
    from planner.catalog.listing import describe

    try:
        kind, data = describe(_opened(catalog), name)
    except (UnknownName, DiagnosticError) as error:
        _refuse(error)
    if output is Format.JSON:
        _print_json({"kind": kind, kind: data})
    else:
        _print(outline(data))


@app.command("check")
def check_files(
    as_of: Annotated[
        datetime | None,
        typer.Option(formats=["%Y-%m-%d"], metavar="DATE", help="Day to age prices at.", show_default=False),
    ] = None,
    catalog: CatalogOption = None,
    output: FormatOption = Format.TABLE,
) -> None:
    """Check all files: schema, references, parameter counts, ages of prices, stated doubts.

    Example: planner catalog check --as-of 2026-12-01
    """
    from planner.catalog.checks import check_catalog

    opened = _opened(catalog)
    try:
        found = check_catalog(opened, as_of.date() if as_of else None)
    except DiagnosticError as error:
        _refuse(error)
    errors = sum(has_errors([d]) for d in found)
    if output is Format.JSON:
        _print_json({"errors": errors, "warnings": len(found) - errors, "diagnostics": [_as_data(d) for d in found]})
    else:
        _print(_one_line(d) for d in found)
        _print([f"{len(opened.files())} files: {errors} errors, {len(found) - errors} warnings"])
    if errors:
        raise typer.Exit(ExitCode.WRONG_INPUT)


def table(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Lay out rows of the same keys in aligned columns, numbers to the right, empty cells as `-`."""
    if not rows:
        return ["nothing to list"]
    cells = [[key.replace("_", " ") for key in rows[0]], *([_cell(v) for v in row.values()] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    right = [all(not isinstance(row[key], str) for row in rows) for key in rows[0]]
    return ["  ".join(_padded(*cell) for cell in zip(line, widths, right, strict=True)).rstrip() for line in cells]


def outline(data: Mapping[str, Any], indent: int = 0) -> list[str]:
    """Write nested data as indented `key: value` lines; lists of text and numbers stay on one line where short."""
    lines: list[str] = []
    margin = " " * indent
    for key, value in data.items():
        if isinstance(value, Mapping) and value:
            lines += [f"{margin}{key}:", *outline(value, indent + 2)]
        elif isinstance(value, list | tuple) and any(isinstance(v, Mapping) or len(str(v)) > 40 for v in value):
            lines += [f"{margin}{key}:", *(line for v in value for line in _item(v, indent + 2))]
        elif isinstance(value, list | tuple):
            lines.append(f"{margin}{key}: {', '.join(_cell(v) for v in value) or '-'}")
        else:
            lines.append(f"{margin}{key}: {_cell(value)}")
    return lines


def _item(value: object, indent: int) -> list[str]:
    if not isinstance(value, Mapping):
        return [f"{' ' * indent}- {value}"]
    first, *rest = outline(value, indent + 2)
    return [f"{' ' * indent}- {first.strip()}", *rest]


def _cell(value: object) -> str:
    if value is None or value == "" or value == {}:
        return "-"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:,.6g}" if value < 1e6 else f"{value:,.0f}"
    return str(value)


def _padded(text: str, width: int, right: bool) -> str:
    return text.rjust(width) if right else text.ljust(width)


def _opened(path: Path | None) -> Catalog:
    try:
        return Catalog.open(path or find_catalog(Path.cwd()))
    except DiagnosticError as error:
        _refuse(error)


def _refuse(error: UnknownName | DiagnosticError) -> NoReturn:
    if isinstance(error, DiagnosticError):
        lines = [_one_line(d) for d in error.diagnostics]
    else:
        lines = [f"error[catalog/unknown-name]: {error}"]
    sys.stderr.write("".join(f"{line}\n" for line in lines))
    raise typer.Exit(ExitCode.WRONG_INPUT)


def _one_line(diagnostic: Diagnostic) -> str:
    span = diagnostic.span
    where = f"{span.path}:{span.line}:{span.column}: " if span else ""
    return f"{where}{diagnostic.severity}[{diagnostic.code}]: {diagnostic.message}"


def _as_data(diagnostic: Diagnostic) -> dict[str, Any]:
    span = diagnostic.span
    return {
        "code": diagnostic.code,
        "severity": diagnostic.severity.value,
        "message": diagnostic.message,
        "path": span.path if span else None,
        "line": span.line if span else None,
        "column": span.column if span else None,
    }


def _print(lines: Iterable[str]) -> None:
    answer("".join(f"{line}\n" for line in lines))


def _print_json(answer: Mapping[str, Any]) -> None:
    _print([json.dumps({"schema_version": SCHEMA_VERSION, **answer}, indent=2, ensure_ascii=False)])
