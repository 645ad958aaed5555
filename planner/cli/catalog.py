"""`planner catalog`: list what the catalog knows, show one entry with its sources, check the files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from planner.catalog import UnknownName
from planner.catalog.model import BILLION
from planner.cli.commands import CONTEXT_SETTINGS, help_when_alone
from planner.cli.exits import ExitCode
from planner.cli.inputs import one_line, open_folder, refuse_catalog
from planner.cli.options import AnswerFormat, AnswerFormatOption, CatalogOption
from planner.cli.streams import STANDARD, answer, check_writable, note, save, usage_error
from planner.diagnostics import Diagnostic, DiagnosticError, has_errors
from planner.report.figures import count, visible
from planner.report.rows import as_json, cell, table


class Kind(StrEnum):
    """What can be listed."""

    GPUS = "gpus"
    MODELS = "models"
    OFFERS = "offers"


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
    output: AnswerFormatOption = AnswerFormat.TABLE,
) -> None:
    """List all GPUs, models or priced offers.

    Example: planner catalog list offers --provider aws --gpu l40s
    """
    from planner.catalog.listing import gpu_rows, model_rows, offer_rows

    opened = open_folder(catalog)
    try:
        if kind is Kind.OFFERS:
            rows = offer_rows(opened, provider, gpu)
        else:
            rows = gpu_rows(opened) if kind is Kind.GPUS else model_rows(opened)
    except (UnknownName, DiagnosticError) as error:
        refuse_catalog(error)
    if output is AnswerFormat.JSON:
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
    output: AnswerFormatOption = AnswerFormat.TABLE,
) -> None:
    """Show one entry with its sources, notes and doubts.

    Example: planner catalog show h100-sxm
    """
    from planner.catalog.listing import describe

    try:
        kind, data = describe(open_folder(catalog), name)
    except (UnknownName, DiagnosticError) as error:
        refuse_catalog(error)
    if output is AnswerFormat.JSON:
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
    output: AnswerFormatOption = AnswerFormat.TABLE,
) -> None:
    """Check all files: schema, references, parameter counts, ages of prices, stated doubts.

    Example: planner catalog check --as-of 2026-12-01
    """
    from planner.catalog.checks import check_catalog

    opened = open_folder(catalog)
    try:
        found = check_catalog(opened, as_of.date() if as_of else None)
    except DiagnosticError as error:
        refuse_catalog(error)
    errors = sum(has_errors([d]) for d in found)
    if output is AnswerFormat.JSON:
        _print_json({"errors": errors, "warnings": len(found) - errors, "diagnostics": [_as_data(d) for d in found]})
    else:
        _print(one_line(d) for d in found)
        counts = (count(len(opened.files()), "file"), count(errors, "error"), count(len(found) - errors, "warning"))
        _print([f"{counts[0]}: {counts[1]}, {counts[2]}"])
    if errors:
        raise typer.Exit(ExitCode.WRONG_INPUT)


@app.command("import-model")
def import_model(
    config: Annotated[str, typer.Argument(help="config.json of a Hugging Face repository.", metavar="CONFIG")],
    name: Annotated[
        str | None, typer.Option("--name", help="Name in the catalog.", metavar="ORG/NAME", show_default=False)
    ] = None,
    out: Annotated[
        str | None,
        typer.Option(
            "--out", "-o", help="File to write; - is standard output. Default: models/ORG/NAME.yaml of the catalog."
        ),
    ] = None,
    read: Annotated[
        datetime | None,
        typer.Option("--read", formats=["%Y-%m-%d"], metavar="DATE", help="Day the file was read; default: today."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an entry that is there.")] = False,
    catalog: CatalogOption = None,
) -> None:
    """Write a catalog entry from the config.json of a model: its shape, parameter count and stored formats.

    Example: planner catalog import-model Qwen3-8B/config.json --name Qwen/Qwen3-8B
    """
    from planner.catalog.huggingface import entry_yaml
    from planner.cli.models import entry_name, import_config, model_file, name_there

    wanted = entry_name(name, config)
    if out is None:
        wanted = name_there(catalog, wanted)
    entry = import_config(config, wanted, read.date() if read else None)
    text = entry_yaml(entry)
    if out == STANDARD:
        answer(text)
        return
    path = Path(out) if out else model_file(catalog, wanted)
    if path.exists() and not force:
        usage_error(f"{path} is there already; --force replaces it")
    if out is None:
        path.parent.mkdir(parents=True, exist_ok=True)
    check_writable(path, [config])
    save(path, text)
    note(
        f"wrote {path}: {entry.parameters.total / BILLION:.3f}B parameters, {entry.attention.kind}, {entry.native_format}"
    )


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
            lines.append(f"{margin}{key}: {', '.join(cell(v) for v in value) or '-'}")
        else:
            lines.append(f"{margin}{key}: {cell(value)}")
    return lines


def _item(value: object, indent: int) -> list[str]:
    if not isinstance(value, Mapping):
        return [f"{' ' * indent}- {value}"]
    first, *rest = outline(value, indent + 2)
    return [f"{' ' * indent}- {first.strip()}", *rest]


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
    answer("".join(f"{visible(line)}\n" for line in lines))


def _print_json(data: Mapping[str, Any]) -> None:
    answer(as_json(data))
