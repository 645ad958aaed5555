"""`planner calibrate`: fit constants to measurements."""

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


def calibrate(
    file: Annotated[str, typer.Argument(metavar="FILE", help="CSV of start-up logs, or - for standard input.")],
    catalog: CatalogOption = None,
    format: Annotated[Format, typer.Option("--format", help="How to print the answer.")] = Format.TABLE,
) -> None:
    """Fit the memory constants of engines to start-up logs, and print them beside those of the catalog.

    Nothing is written: put values that you trust into engines/NAME.yaml of the catalog, with their source.

    Example: planner calibrate logs.csv
    """
    from planner.report.rows import as_json, table
    from planner.report.validation import fitted_rows
    from planner.validation.fit import fit, usable_logs

    measurements = read_measurements(file)
    logs = usable_logs(measurements.rows, open_folder(catalog))
    rows = fitted_rows(fit(logs))
    if format is Format.JSON:
        answer(as_json({"kind": "memory", "rows": len(measurements.rows), "used": len(logs), "constants": rows}))
    else:
        answer(
            "".join(
                f"{line}\n"
                for line in [*table(rows, digits=3), "", f"{len(logs)} of {len(measurements.rows)} logs used"]
            )
        )
