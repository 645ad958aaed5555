"""`planner validate`: score predictions against measurements."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from planner.cli.inputs import open_folder, read_measurements
from planner.cli.options import CatalogOption
from planner.cli.streams import answer


class Format(StrEnum):
    """How the answer is printed."""

    TABLE = "table"
    JSON = "json"


def validate(
    file: Annotated[str, typer.Argument(metavar="FILE", help="CSV of start-up logs, or - for standard input.")],
    cross_validate: Annotated[
        bool,
        typer.Option("--cross-validate", help="Score each row also with constants fitted without logs of its model."),
    ] = False,
    catalog: CatalogOption = None,
    format: Annotated[Format, typer.Option("--format", help="How to print the answer.")] = Format.TABLE,
) -> None:
    """Score the memory model against start-up logs of engines: errors by group, and the worst rows named.

    Example: planner validate logs.csv --cross-validate
    """
    from planner.report.rows import as_json
    from planner.report.validation import memory_data, memory_text
    from planner.validation.cross import cross_validate as without_own_model
    from planner.validation.memory import validate_memory

    table = read_measurements(file)
    opened = open_folder(catalog)
    found = validate_memory(table.rows, opened)
    crossed = without_own_model(table.rows, opened) if cross_validate else None
    if format is Format.JSON:
        answer(as_json(memory_data(found, crossed)))
    else:
        answer("\n".join(memory_text(found, crossed)) + "\n")
