"""`planner frontier`: say what a limit costs: the best fleet at every latency, number of GPUs, power or confidence."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from planner.cli.delivery import check_out, format_by_ending, hand_over, save_answer
from planner.cli.options import (
    AsOfOption,
    CatalogOption,
    Color,
    ColorOption,
    GapOption,
    QuietOption,
    StdinNameOption,
    flag,
)
from planner.cli.progress import Progress
from planner.cli.streams import note, usage_error
from planner.cli.sweep import ExecutorOption, ResultsOption, files_read, going_on, sweep_job

if TYPE_CHECKING:
    from planner.sweep.frontier import Frontier
    from planner.sweep.work import Job


class FrontierFormat(StrEnum):
    """How a frontier is printed or drawn."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"
    SVG = "svg"
    PNG = "png"
    HTML = "html"


PICTURES = dict.fromkeys((FrontierFormat.SVG, FrontierFormat.PNG, FrontierFormat.HTML), "a picture")
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
    results: ResultsOption = None,
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

    A step is found to 1 % of a latency or power, one point of confidence, or one GPU.
    """
    chosen = format_by_ending(out, format, FORMAT_BY_ENDING, FrontierFormat.TABLE, PICTURES)
    check_out(out, files_read(spec, results))
    job = sweep_job(spec, stdin_filename, catalog, as_of, gap, quiet)
    found = _found(job, trade, between, executor, results, quiet)
    if chosen in PICTURES:
        save_answer(str(out), _picture(found, chosen), quiet)
    else:
        hand_over(out, color, quiet, lambda colored, width: _text(found, chosen, colored, width))


def _found(job: Job, trade: str, between: str | None, executor: str, file: Path | None, quiet: bool) -> Frontier:
    """Plan the limits that are not finished yet. Leaves with a usage error for what cannot be run, read or written."""
    from planner.sweep.results import opened_results
    from planner.sweep.run import frontier as steps
    from planner.sweep.run import frontier_header, trade_called
    from planner.sweep.trade import RangeError, TradeError

    try:
        with going_on(file, quiet):
            moved = trade_called(job, trade, between)
            with opened_results(file, frontier_header(job, moved)) as results:
                if results.rows and not quiet:
                    note(f"{len(results.rows):,} limits are in {file} already")
                with Progress("limits", None, 0, quiet) as progress:
                    return steps(job, moved, executor, results, progress.finished)
    except TradeError as error:
        usage_error(f"--trade: {error}")
    except RangeError as error:
        usage_error(f"--between: {error}")


def _picture(found: Frontier, chosen: FrontierFormat) -> bytes:
    from planner.report.frontier import picture

    return picture(found, chosen.value)  # type: ignore[arg-type]


def _text(found: Frontier, format: FrontierFormat, color: bool, width: int | None) -> str:
    from planner.plan.io import text_of
    from planner.report.frontier import blocks, csv_text
    from planner.report.table import print_blocks

    if format is FrontierFormat.JSON:
        return text_of(found)
    return csv_text(found) if format is FrontierFormat.CSV else print_blocks(blocks(found), color, width)
