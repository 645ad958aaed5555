"""`planner calibrate`: fit constants to measurements."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from planner.cli.inputs import refuse
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
from planner.cli.options import AnswerFormat, CatalogOption
from planner.cli.streams import STANDARD, answer, check_writable, note, save, usage_error

if TYPE_CHECKING:
    from planner.catalog import Catalog
    from planner.validation.table import Measurements


NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def calibrate(
    files: FilesArgument,
    full: Annotated[
        bool, typer.Option("--full", help="Speed: fit all constants anew from their priors, instead of levels only.")
    ] = False,
    name: Annotated[
        str | None,
        typer.Option("--name", help="Name of the calibration; its file's name when absent.", metavar="NAME"),
    ] = None,
    out: Annotated[
        str | None, typer.Option("--out", "-o", help="File to write the calibration to; - is standard output.")
    ] = None,
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
    format: Annotated[
        AnswerFormat, typer.Option("--format", help="How to print what was fitted.")
    ] = AnswerFormat.TABLE,
) -> None:
    """Fit constants to measurements: memory constants to start-up logs, levels or all constants of speed to benchmarks.

    A speed calibration is read once it lies in the folder calibration/ of the catalog. Memory constants are printed beside
    those of the catalog; nothing is changed without --out.

    Example: planner calibrate benchmarks.csv --name own --out catalog/calibration/own.yaml
    """
    from planner.report.rows import as_json

    named = _name(name, out, full)
    if out is not None and out != STANDARD:
        _check_target(Path(out), named, full, files)
    measurements, opened = open_measurements(
        files, catalog,
        gpu=gpu, n_gpus=gpus, tp=tp, pp=pp, model=model, weight_dtype=weights, kv_dtype=kv, engine=engine, source=source,
    )  # fmt: skip
    if measurements.table.is_memory:
        if full or out or name:
            usage_error("--full, --name and --out are for speed measurements; memory constants are printed only")
        data, lines, text = (*_memory(measurements, opened), "")
    else:
        data, lines, text = _speed(measurements, opened, named, full)
    if out == STANDARD:
        answer(text)
        return
    if out is not None:
        save(Path(out), text)
        note(f"wrote {out}")
    answer(as_json(data) if format is AnswerFormat.JSON else "".join(f"{line}\n" for line in lines))


def _name(name: str | None, out: str | None, full: bool) -> str:
    """Return the name of the calibration: the one given, else that of the file. Only a full one is the shipped one."""
    from planner.catalog.calibration import SHIPPED

    found = name if name is not None else "own" if out in (None, STANDARD) else Path(out or "").stem
    if not NAME.fullmatch(found):
        usage_error("--name: up to 64 letters, digits, dots, dashes and underscores")
    if found == SHIPPED and not full:
        usage_error(f"--name: `{SHIPPED}` is the shipped calibration, which only --full fits anew; choose another name")
    return found


def _check_target(path: Path, name: str, full: bool, files: Sequence[str]) -> None:
    """Leave with a usage error when a calibration at `path` would destroy something, or could not be read there."""
    from planner.catalog.calibration import SHIPPED
    from planner.catalog.store import INDEX_FILE

    check_writable(path, files)
    if path.suffix != ".yaml":
        usage_error(f"--out: a calibration is a file that ends in .yaml, not {path}")
    in_catalog = path.parent.name == "calibration" and (path.parent.parent / INDEX_FILE).is_file()
    if in_catalog and path.stem != name:
        usage_error(f"--out: in a catalog the file of `{name}` is {name}.yaml, not {path.name}")
    if in_catalog and full and name != SHIPPED:
        usage_error(f"--out: in a catalog a full calibration is {SHIPPED}.yaml, the only one that stands alone")


def _memory(measurements: Measurements, catalog: Catalog) -> tuple[dict[str, Any], list[str]]:
    from planner.report.figures import count
    from planner.report.rows import table
    from planner.report.skips import skips_data, skips_lines
    from planner.report.validation import fitted_rows, left_out_text
    from planner.validation.fit import fit, read_logs
    from planner.validation.skips import by_reason
    from planner.validation.table import too_little

    rows = measurements.table.rows
    logs, skipped = read_logs(rows, catalog)
    if not logs:
        refuse([too_little(f"no log can be used: {'; '.join(skips_lines(skipped))}")])
    fitted = fitted_rows(fit(logs))
    data = {
        "kind": "memory", "rows": len(rows), "used": len(logs), "skipped": by_reason(skipped),
        "left_out": skips_data(skipped), "constants": fitted,
    }  # fmt: skip
    used = f"{len(logs):,} of {count(len(rows), 'log')} used"
    return data, [
        *(table(fitted, digits=3) if fitted else ["no constant fitted"]),
        "",
        used,
        *left_out_text(skipped, "log"),
    ]


def _speed(
    measurements: Measurements, catalog: Catalog, name: str, full: bool
) -> tuple[dict[str, Any], list[str], str]:
    from planner.report.skips import skips_lines
    from planner.report.validation import calibration_data, calibration_text
    from planner.validation.own import own_calibration
    from planner.validation.speed import (
        LEAST_ROWS,
        LEAST_SOURCES,
        calibration_of,
        compared,
        fitted_rows,
        not_fitted,
        readable,
        without_far_rows,
    )
    from planner.validation.table import too_little

    read, far = without_far_rows(readable(measurements.table.rows, catalog), catalog, full)
    used, left = fitted_rows(read, full), [*far, *not_fitted(read, full)]
    if not used:
        why = "; ".join(skips_lines([*read.skips, *left]))
        refuse([too_little(f"no row can be fitted: {why}")])
    if full and (len(used) < LEAST_ROWS or len({row.source for row in used}) < LEAST_SOURCES):
        refuse([too_little(f"--full needs {LEAST_ROWS} rows of {LEAST_SOURCES} sources; leave it out")])
    if full:
        text = calibration_of(read, catalog, name, measurements.data)
    else:
        text = own_calibration(used, catalog, name, measurements.data)
    fitted = replace(read, rows=tuple(used))
    change = compared(fitted, catalog, text, full)
    return calibration_data(name, full, fitted, left, change), calibration_text(name, full, fitted, left, change), text
