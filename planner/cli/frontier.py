"""`planner frontier`: say what a limit costs: the best fleet at every latency, number of GPUs, power or confidence."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from planner.cli.delivery import check_out, hand_over
from planner.cli.options import (
    AsOfOption,
    CatalogOption,
    Color,
    ColorOption,
    GapOption,
    QuietOption,
    StdinNameOption,
    flag,
    is_file,
)
from planner.cli.progress import Progress
from planner.cli.streams import note, save, usage_error
from planner.cli.sweep import ExecutorOption, sweep_job

if TYPE_CHECKING:
    from planner.sweep.frontier import Frontier


class FrontierFormat(StrEnum):
    """How a frontier is printed or drawn."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"
    SVG = "svg"
    PNG = "png"
    HTML = "html"


PICTURES = (FrontierFormat.SVG, FrontierFormat.PNG, FrontierFormat.HTML)
FORMAT_BY_ENDING = {
    ".txt": FrontierFormat.TABLE,
    ".csv": FrontierFormat.CSV,
    ".json": FrontierFormat.JSON,
    ".svg": FrontierFormat.SVG,
    ".png": FrontierFormat.PNG,
    ".html": FrontierFormat.HTML,
}


def frontier(
    spec: Annotated[str, typer.Argument(metavar="SPEC", help="A spec, git:REF:PATH, or - for stdin.")],
    trade: Annotated[
        str,
        flag("--trade", "cost:METRIC@WORKLOAD, cost:gpus, cost:power or cost:confidence.", metavar="TRADE"),
    ],
    between: Annotated[
        str | None, flag("--between", "Limits to look at; default: a quarter of today's to four times.", metavar="A..B")
    ] = None,
    executor: ExecutorOption = "local",
    format: Annotated[
        FrontierFormat | None, flag("--format", "How to print it; default: by the ending of --out, else table.")
    ] = None,
    out: Annotated[
        str | None, flag("--out", "Save it: .svg, .png, .html, .csv, .json or .txt.", "-o", metavar="FILE")
    ] = None,
    as_of: AsOfOption = None,
    gap: GapOption = None,
    catalog: CatalogOption = None,
    stdin_filename: StdinNameOption = None,
    color: ColorOption = Color.AUTO,
    quiet: QuietOption = False,
) -> None:
    """Plan a spec at tighter and looser limits, and print every step that the cost of the best fleet goes up by.

    Example: planner frontier specs/staging.yaml --trade cost:tpot_p95@assistant
    """
    from planner.sweep.executor import ExecutorError
    from planner.sweep.frontier import TradeError
    from planner.sweep.run import frontier as steps

    chosen = _format(format, out)
    check_out(out)
    job = sweep_job(spec, stdin_filename, catalog, as_of, gap, quiet)
    try:
        with Progress("limits", None, 0, quiet) as progress:
            found = steps(job, trade, between, executor, lambda _count: progress.finished())
    except TradeError as error:
        usage_error(f"--trade: {error}")
    except ExecutorError as error:
        usage_error(f"--executor: {error}")
    if chosen in PICTURES:
        _save_picture(str(out), found, chosen, quiet)
    else:
        hand_over(out, color, quiet, lambda colored, width: _text(found, chosen, colored, width))


def _format(chosen: FrontierFormat | None, out: str | None) -> FrontierFormat:
    """Return the format of the answer. Leaves with a usage error where there is none, or nowhere to put it."""
    if chosen is None and out is not None and is_file(out):
        chosen = FORMAT_BY_ENDING.get(Path(out).suffix.lower())
        if chosen is None:
            usage_error(f"cannot tell the format of {out}: end it in {', '.join(FORMAT_BY_ENDING)}, or give --format")
    if chosen in PICTURES and (out is None or not is_file(out)):
        usage_error(f"--format {chosen}: it is a picture; give a file with --out")
    return chosen or FrontierFormat.TABLE


def _save_picture(out: str, found: Frontier, chosen: FrontierFormat, quiet: bool) -> None:
    from planner.report.frontier import picture

    save(Path(out), picture(found, chosen.value))  # type: ignore[arg-type]
    if not quiet:
        note(f"wrote {out}")


def _text(found: Frontier, format: FrontierFormat, color: bool, width: int | None) -> str:
    from planner.plan.io import text_of
    from planner.report.frontier import blocks, csv_text
    from planner.report.table import print_blocks

    if format is FrontierFormat.JSON:
        return text_of(found)
    return csv_text(found) if format is FrontierFormat.CSV else print_blocks(blocks(found), color, width)
