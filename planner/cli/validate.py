"""`planner validate`: score predictions against measurements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from planner.cli.exits import ExitCode
from planner.cli.measurement_options import (
    EngineOption,
    FilesArgument,
    GpuOption,
    GpusOption,
    KvOption,
    ModelOption,
    PpOption,
    SourceOption,
    TpOption,
    WeightsOption,
    open_measurements,
)
from planner.cli.options import AnswerFormat, AnswerFormatOption, CatalogOption
from planner.cli.streams import answer, note

if TYPE_CHECKING:
    from planner.catalog import Catalog
    from planner.validation.cells import Row


def validate(
    files: FilesArgument,
    cross_validate: Annotated[
        bool,
        typer.Option(
            "--cross-validate",
            help="Also score rows with constants fitted without their model (logs) or source (speed).",
        ),
    ] = False,
    gpu: GpuOption = None,
    gpus: GpusOption = None,
    tp: TpOption = None,
    pp: PpOption = None,
    model: ModelOption = None,
    weights: WeightsOption = None,
    kv: KvOption = None,
    engine: EngineOption = None,
    source: SourceOption = None,
    catalog: CatalogOption = None,
    format: AnswerFormatOption = AnswerFormat.TABLE,
) -> None:
    """Score predictions against measurements: start-up logs (memory) or published speeds, by group, the worst named.

    Example: planner validate measurements.csv --cross-validate

    Exit codes: 0 something is scored, 1 nothing could be, or wrong input, 64 wrong usage.
    """
    from planner.report.rows import as_json

    measurements, opened = open_measurements(
        files, catalog,
        gpu=gpu, n_gpus=gpus, tp=tp, pp=pp, model=model, weight_dtype=weights, kv_dtype=kv, engine=engine, source=source,
    )  # fmt: skip
    table = measurements.table
    data, lines, scored = (_memory if table.is_memory else _speed)(table.rows, opened, cross_validate)
    answer(as_json(data) if format is AnswerFormat.JSON else "\n".join(lines) + "\n")
    if not scored:
        note("planner: nothing could be scored; the reasons are listed under `Skipped`, in JSON under `left_out`")
        raise typer.Exit(ExitCode.WRONG_INPUT)


def _memory(rows: Sequence[Row], catalog: Catalog, cross: bool) -> tuple[dict[str, Any], list[str], int]:
    from planner.report.validation import memory_data, memory_text
    from planner.validation.cross import cross_validate as without_own_model
    from planner.validation.memory import validate_memory

    found = validate_memory(rows, catalog)
    crossed = without_own_model(rows, catalog) if cross else None
    return memory_data(found, crossed), memory_text(found, crossed), len(found.scored)


def _speed(rows: Sequence[Row], catalog: Catalog, cross: bool) -> tuple[dict[str, Any], list[str], int]:
    from planner.report.validation import speed_data, speed_text
    from planner.validation.speed import cross_validated, fitted_rows, readable, validate_speed

    read = readable(rows, catalog)
    found = validate_speed(read, catalog)
    crossed = cross_validated(read, catalog) if cross and fitted_rows(read, full=True) else None
    return speed_data(found, crossed), speed_text(found, crossed), found.scored
