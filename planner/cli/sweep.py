"""`planner sweep`: plan many variants of a spec side by side: other demands, prices, limits, or anything else in it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from planner.cli.delivery import check_out, format_by_ending, hand_over, save_answer
from planner.cli.exits import ExitCode, first_of
from planner.cli.inputs import catalog_folder, catalog_for, read_spec, refuse, report
from planner.cli.options import (
    AsOfOption,
    CatalogOption,
    Color,
    ColorOption,
    GapOption,
    QuietOption,
    StdinNameOption,
    day,
    flag,
    quantity,
)
from planner.cli.progress import Progress
from planner.cli.streams import note, note_lines, usage_error

if TYPE_CHECKING:
    from datetime import date

    from planner.catalog import Catalog
    from planner.spec import LoadedSpec
    from planner.sweep.answer import Sweep
    from planner.sweep.base import Base
    from planner.sweep.scenario import Definition
    from planner.sweep.setting import Setting
    from planner.sweep.work import Job


class SweepFormat(StrEnum):
    """How scenarios are printed."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"
    PARQUET = "parquet"


ResultsOption = Annotated[
    Path | None, flag("--results", "File that what is finished is added to, to go on later.", metavar="FILE")
]
ExecutorOption = Annotated[
    str, flag("--executor", "Where variants are planned: local, local:COUNT or dask://HOST:PORT.", metavar="WHERE")
]
FORMAT_BY_ENDING = {
    ".txt": SweepFormat.TABLE,
    ".csv": SweepFormat.CSV,
    ".json": SweepFormat.JSON,
    ".parquet": SweepFormat.PARQUET,
}


def sweep(
    spec: Annotated[str, typer.Argument(metavar="SPEC", help="A spec, git:REF:PATH, or - for stdin.")],
    settings: Annotated[
        list[str],
        typer.Option("--set", help="A key and its values, or KEY~DISTRIBUTION; repeatable.", metavar="KEY=V1,V2,…"),
    ],
    grid: Annotated[bool, flag("--grid", "Every combination of the values: the default.")] = False,
    zip: Annotated[bool, flag("--zip", "The first values of all keys, then the second ones, …")] = False,
    sample: Annotated[
        int | None, flag("--sample", "So many draws from distributions and lists.", metavar="COUNT", min=1)
    ] = None,
    seed: Annotated[int, flag("--seed", "Seed of what is drawn.", metavar="NUMBER", min=0)] = 1,
    results: ResultsOption = None,
    plans: Annotated[
        Path | None, flag("--plans", "Folder to save the plan of each scenario in.", metavar="DIR")
    ] = None,
    executor: ExecutorOption = "local",
    format: Annotated[
        SweepFormat | None, flag("--format", "How to print scenarios; default: by the ending of --out, else table.")
    ] = None,
    out: Annotated[
        str | None, flag("--out", "Save the answer: .txt, .csv, .json or .parquet.", "-o", metavar="FILE")
    ] = None,
    as_of: AsOfOption = None,
    gap: GapOption = None,
    catalog: CatalogOption = None,
    stdin_filename: StdinNameOption = None,
    color: ColorOption = Color.AUTO,
    quiet: QuietOption = False,
) -> None:
    """Plan variants of a spec: every combination of values of its keys, or draws of uncertain ones.

    Example: planner sweep specs/staging.yaml --set "workloads.editor.traffic.rate=1..4/4 req/s"

    Keys are those of the spec; price.OFFER and catalog.gpus.NAME.KEY change prices and figures of the catalog. A distribution
    is written as --set "workloads.editor.traffic.rate~lognormal(2 req/s, 30 %)"; it takes --sample.
    """
    chosen = format_by_ending(out, format, FORMAT_BY_ENDING, SweepFormat.TABLE, {SweepFormat.PARQUET: "no text"})
    if chosen is SweepFormat.PARQUET and find_spec("pyarrow") is None:
        usage_error("--format parquet: it needs pyarrow: pip install 'llm-fleet-planner[parquet]'")
    check_out(out, files_read(spec, results))
    job = sweep_job(spec, stdin_filename, catalog, as_of, gap, quiet)
    job = replace(job, with_plans=plans is not None)
    found = _swept(job, _definition(settings, job, grid, zip, sample, seed), executor, results, plans, quiet)
    if chosen is SweepFormat.PARQUET:
        save_answer(str(out), _parquet(found), quiet)
    else:
        hand_over(out, color, quiet, lambda colored, width: _text(found, chosen, colored, width))
    statuses = {row.status for row in found.scenarios}
    applies = {ExitCode.BUG: "failed" in statuses, ExitCode.UNPROVEN: "unproven" in statuses}
    raise typer.Exit(first_of(code for code, is_so in applies.items() if is_so))


def files_read(spec: str, results: Path | None) -> list[str]:
    """Return the files that an answer must not be saved over."""
    return [spec] if results is None else [spec, str(results)]


def sweep_job(spec: str, name: str | None, folder: Path | None, as_of: str | None, gap: str | None, quiet: bool) -> Job:
    """Return what workers are told about a spec, with paths that mean the same in any folder.

    Leaves with the exit code of wrong input, and all that is wrong with the spec or its catalog.
    """
    from planner.diagnostics import DiagnosticError
    from planner.pipeline import prepare

    loaded = read_spec(spec, name)
    if loaded.spec is None or loaded.document is None:
        refuse(loaded.diagnostics, loaded)
    try:
        opened = catalog_for(loaded, folder)
        prepare(loaded, opened)
    except DiagnosticError as error:
        refuse(error.diagnostics, loaded)
    if not quiet:
        report(loaded.diagnostics, loaded)
    return job_of(loaded, opened, folder, day("--as-of", as_of), quantity("--gap", gap, "share"))


def job_of(
    loaded: LoadedSpec, opened: Catalog, folder: Path | None, as_of: date | None = None, gap: float | None = None
) -> Job:
    """Return what workers are told about a spec and its catalog."""
    from planner.sweep.base import digest_of
    from planner.sweep.work import Job

    file, found = loaded.file or Path(loaded.path), catalog_folder(folder)
    return Job(
        text=loaded.document.text if loaded.document is not None else "",
        path=loaded.path,
        file=file.absolute(),
        folder=None if found is None else found.absolute(),
        catalog_digest=digest_of(opened),
        as_of=as_of,
        gap=gap,
    )


def _definition(
    texts: list[str], job: Job, grid: bool, side_by_side: bool, sample: int | None, seed: int
) -> Definition:
    """Return what is swept. Leaves with what is wrong with the settings."""
    from planner.sweep.scenario import Definition, Mode
    from planner.sweep.work import bench

    if grid + side_by_side + (sample is not None) > 1:
        usage_error("--grid, --zip and --sample: give one of them")
    settings = settings_of(texts, bench(job).base)
    if sample is not None:
        return Definition(settings, Mode.SAMPLE, sample, seed)
    return Definition(settings, Mode.ZIP if side_by_side else Mode.GRID)


def settings_of(texts: list[str], base: Base) -> tuple[Setting, ...]:
    """Read the values of `--set`. Leaves with what is wrong with them."""
    from planner.diagnostics import DiagnosticError
    from planner.report.diagnostics.full import render_full
    from planner.sweep.check import FLAG, read_settings

    try:
        return read_settings(texts, base)
    except DiagnosticError as error:
        note_lines(render_full(error.diagnostics, {FLAG: texts}).rstrip("\n"))
        raise typer.Exit(ExitCode.WRONG_INPUT) from None


def _swept(
    job: Job, definition: Definition, executor: str, file: Path | None, plans: Path | None, quiet: bool
) -> Sweep:
    """Plan what is not finished yet. Leaves with a usage error for what cannot be run, read or written."""
    from planner.sweep.results import opened_results
    from planner.sweep.run import run, sweep_header, sweep_of, unfinished
    from planner.sweep.scenario import DefinitionError

    try:
        scenarios = definition.scenarios()
    except DefinitionError as error:
        usage_error(str(error))
    with going_on(file, quiet):
        if plans is not None:
            plans.mkdir(parents=True, exist_ok=True)
        with opened_results(file, sweep_header(job, definition), scenarios) as results:
            done = len(scenarios) - len(unfinished(scenarios, results, plans))
            if done and not quiet:
                note(f"{done:,} of {len(scenarios):,} scenarios are in {file} already")
            with Progress("scenarios", len(scenarios), done, quiet) as progress:
                rows = run(job, scenarios, executor, results, plans, progress.finished)
        return sweep_of(job, definition, rows)


@contextmanager
def going_on(file: Path | None, quiet: bool) -> Iterator[None]:
    """Say how to go on after an interrupt. Leaves with what is wrong with a results file, and with where it is written or planned."""
    from planner.diagnostics import DiagnosticError
    from planner.sweep.executor import ExecutorError
    from planner.sweep.results import InUseError

    try:
        yield
    except KeyboardInterrupt:
        if file is not None and not quiet:
            note(f"what is finished is in {file}: the same command goes on from there")
        raise
    except DiagnosticError as error:
        refuse(error.diagnostics)
    except InUseError:
        usage_error(f"--results: another command is writing {file}")
    except ExecutorError as error:
        usage_error(f"--executor: {error}")
    except OSError as error:
        usage_error(f"cannot write {error.filename or file}: {error.strerror or error}")


def _parquet(found: Sweep) -> bytes:
    from planner.report.sweep import parquet

    return parquet(found)


def _text(found: Sweep, format: SweepFormat, color: bool, width: int | None) -> str:
    from planner.plan.io import text_of
    from planner.report.sweep import blocks, csv_text
    from planner.report.table import print_blocks

    if format is SweepFormat.JSON:
        return text_of(found)
    return csv_text(found) if format is SweepFormat.CSV else print_blocks(blocks(found), color, width)
