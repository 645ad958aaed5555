"""`planner sweep`: plan many variants of a spec side by side: other demands, prices, limits, or anything else in it."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from planner.cli.delivery import check_out, hand_over
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
    is_file,
    quantity,
)
from planner.cli.progress import Progress
from planner.cli.streams import note, save, usage_error

if TYPE_CHECKING:
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
    results: Annotated[
        Path | None, flag("--results", "File that finished scenarios are added to, to go on later.", metavar="FILE")
    ] = None,
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
    chosen = _format(format, out)
    check_out(out)
    job = sweep_job(spec, stdin_filename, catalog, as_of, gap, quiet)
    job = replace(job, with_plans=plans is not None)
    found = _swept(job, _definition(settings, job, grid, zip, sample, seed), executor, results, plans, quiet)
    if chosen is SweepFormat.PARQUET:
        _save_parquet(str(out), found, quiet)
    else:
        hand_over(out, color, quiet, lambda colored, width: _text(found, chosen, colored, width))
    statuses = {row.status for row in found.scenarios}
    applies = {ExitCode.BUG: "failed" in statuses, ExitCode.UNPROVEN: "unproven" in statuses}
    raise typer.Exit(first_of(code for code, is_so in applies.items() if is_so))


def _format(chosen: SweepFormat | None, out: str | None) -> SweepFormat:
    """Return the format of the answer. Leaves with a usage error where there is none, or nowhere to put it."""
    if chosen is None and out is not None and is_file(out):
        chosen = FORMAT_BY_ENDING.get(Path(out).suffix.lower())
        if chosen is None:
            usage_error(f"cannot tell the format of {out}: end it in {', '.join(FORMAT_BY_ENDING)}, or give --format")
    if chosen is SweepFormat.PARQUET and (out is None or not is_file(out)):
        usage_error("--format parquet: it is no text; give a file with --out")
    return chosen or SweepFormat.TABLE


def sweep_job(spec: str, name: str | None, folder: Path | None, as_of: str | None, gap: str | None, quiet: bool) -> Job:
    """Return what workers are told about a spec, with paths that mean the same in any folder.

    Leaves with the exit code of wrong input, and all that is wrong with the spec or its catalog.
    """
    from planner.diagnostics import DiagnosticError
    from planner.pipeline import prepare
    from planner.sweep.work import Job

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
    file, found = loaded.file or Path(loaded.path), catalog_folder(folder)
    return Job(
        text=loaded.document.text,
        path=loaded.path,
        file=file.absolute(),
        folder=None if found is None else found.absolute(),
        catalog_digest=opened.digest(),
        as_of=day("--as-of", as_of),
        gap=quantity("--gap", gap, "share"),
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
        note(render_full(error.diagnostics, {FLAG: texts}).rstrip("\n"))
        raise typer.Exit(ExitCode.WRONG_INPUT) from None


def _swept(
    job: Job, definition: Definition, executor: str, file: Path | None, plans: Path | None, quiet: bool
) -> Sweep:
    """Plan what is not finished yet. Leaves with a usage error for what cannot be run, read or written."""
    from planner.diagnostics import DiagnosticError
    from planner.sweep.executor import ExecutorError
    from planner.sweep.results import InUseError, opened_results
    from planner.sweep.run import header_of, run, sweep_of
    from planner.sweep.scenario import DefinitionError

    try:
        scenarios = definition.scenarios()
        if plans is not None:
            plans.mkdir(parents=True, exist_ok=True)
        with opened_results(file, header_of(job, definition), scenarios) as results:
            done = results.count(scenarios)
            if done and not quiet:
                note(f"{done:,} of {len(scenarios):,} scenarios are in {file} already")
            with Progress("scenarios", len(scenarios), done, quiet) as progress:
                rows = run(job, scenarios, executor, results, plans, progress.finished)
        return sweep_of(job, definition, rows)
    except KeyboardInterrupt:
        if file is not None and not quiet:
            note(f"finished scenarios are in {file}: the same command goes on from there")
        raise
    except DefinitionError as error:
        usage_error(str(error))
    except DiagnosticError as error:
        refuse(error.diagnostics)
    except InUseError:
        usage_error(f"--results: another sweep is writing {file}")
    except ExecutorError as error:
        usage_error(f"--executor: {error}")
    except OSError as error:
        usage_error(f"cannot write {error.filename or file}: {error.strerror or error}")


def _save_parquet(out: str, found: Sweep, quiet: bool) -> None:
    from planner.report.sweep import ParquetMissing, parquet

    try:
        save(Path(out), parquet(found))
    except ParquetMissing as error:
        usage_error(f"--format parquet: {error}")
    if not quiet:
        note(f"wrote {out}")


def _text(found: Sweep, format: SweepFormat, color: bool, width: int | None) -> str:
    from planner.plan.io import text_of
    from planner.report.sweep import blocks, csv_text
    from planner.report.table import print_blocks

    if format is SweepFormat.JSON:
        return text_of(found)
    return csv_text(found) if format is SweepFormat.CSV else print_blocks(blocks(found), color, width)
