"""Flags of commands that read measurements: the files, and what they leave blank."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from planner.cli.streams import note, usage_error

if TYPE_CHECKING:
    from planner.catalog import Catalog
    from planner.catalog.labels import Label
    from planner.validation.cells import Row
    from planner.validation.table import Measurements


def _stated(name: str, help: str, metavar: str, least: int | None = None) -> Any:
    return typer.Option(name, help=f"Where blank: {help}", metavar=metavar, show_default=False, min=least)


FilesArgument = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE...",
        help="CSV of start-up logs or speed measurements, or JSON of vllm bench, guidellm, aiperf; - for standard input.",
    ),
]
GpuOption = Annotated[str | None, _stated("--gpu", "GPU that was measured.", "NAME")]
GpusOption = Annotated[int | None, _stated("--gpus", "GPUs of the deployment.", "N", least=1)]
TpOption = Annotated[int | None, _stated("--tp", "tensor-parallel degree.", "N", least=1)]
PpOption = Annotated[int | None, _stated("--pp", "pipeline-parallel degree.", "N", least=1)]
ModelOption = Annotated[str | None, _stated("--model", "model, where the file names a path.", "NAME")]
WeightsOption = Annotated[str | None, _stated("--weights", "weight format.", "FORMAT")]
KvOption = Annotated[str | None, _stated("--kv", "KV format.", "FORMAT")]
EngineOption = Annotated[str | None, _stated("--engine", "engine with its version, as `vLLM 0.19.1`.", "NAME")]
SourceOption = Annotated[str | None, _stated("--source", "how these measurements are called.", "NAME")]


FLAGS = {
    "gpu": "--gpu", "n_gpus": "--gpus", "tp": "--tp", "pp": "--pp", "model": "--model", "weight_dtype": "--weights",
    "kv_dtype": "--kv", "engine": "--engine", "source": "--source",
}  # fmt: skip
"""The flag of each column that a user can state."""


def open_measurements(
    files: Sequence[str], catalog: Path | None, **flags: str | int | None
) -> tuple[Measurements, Catalog]:
    """Read the files, with the flags that were given (by column) in the cells that they leave blank, and the catalog.

    Leaves with a usage error, or with diagnostics.
    """
    from planner.cli.inputs import open_folder, read_measurements
    from planner.validation.stated import Stated

    stated = {column: str(value).strip() for column, value in flags.items() if value is not None}
    opened = open_folder(catalog)
    _check(stated)
    stated = _named(stated, opened)
    measurements = read_measurements(files, Stated(stated, lambda name: _is_model(name, opened)))
    _note_unused(stated, measurements.table.rows)
    return measurements, opened


def _check(stated: Mapping[str, str]) -> None:
    """Leave with a usage error for a word that no row of measurements could have in its column."""
    from planner.validation.speed_engines import ENGINES, engine_class
    from planner.validation.speed_formats import KV_WORDS, WEIGHT_WORDS, is_kv_word, weight_format

    blank = next((FLAGS[column] for column, value in stated.items() if not value), None)
    if blank is not None:
        usage_error(f"{blank}: nothing is stated; leave it out")
    if "weight_dtype" in stated and weight_format(stated["weight_dtype"]) is None:
        _refuse("weight_dtype", "weight format", stated, WEIGHT_WORDS)
    if "kv_dtype" in stated and not is_kv_word(stated["kv_dtype"]):
        _refuse("kv_dtype", "KV format", stated, KV_WORDS)
    if "engine" in stated and engine_class(stated["engine"], "", "", is_moe=False) is None:
        _refuse("engine", "engine", stated, ENGINES)


def _refuse(column: str, kind: str, stated: Mapping[str, str], legal: Sequence[str]) -> NoReturn:
    from planner.cli.grid import quoted
    from planner.source.nearest import nearest

    close = nearest(stated[column], legal)
    hint = f"did you mean `{close}`? Known: " if close else "known: "
    usage_error(f"{FLAGS[column]}: no {kind} {quoted(stated[column])}; {hint}{', '.join(legal)}")


def _named(stated: Mapping[str, str], catalog: Catalog) -> dict[str, str]:
    """Return what is stated with the GPU by its name in the catalog. Leaves with a usage error where a name means nothing."""
    found = dict(stated)
    if "model" in stated:
        _meant("model", stated, catalog.model_label)
    if "gpu" in stated:
        label = _meant("gpu", stated, catalog.gpu_label)
        # A label of several devices says more than the name of one.
        found["gpu"] = label.gpu if label.gpu and label.devices == 1 else stated["gpu"]
    return found


def _meant(column: str, stated: Mapping[str, str], meaning: Callable[[str], Label]) -> Label:
    """Return what a name means. Leaves with a usage error for one that means nothing, which no file is to blame for."""
    from planner.catalog import UnknownName
    from planner.cli.grid import quoted
    from planner.cli.inputs import listing_of

    try:
        label = meaning(stated[column])
    except UnknownName as error:
        usage_error(f"{FLAGS[column]}: {error}{listing_of(error.kind)}")
    if label.absent:
        usage_error(f"{FLAGS[column]}: {quoted(stated[column])}: {label.absent}")
    return label


def _is_model(name: str, catalog: Catalog) -> bool:
    from planner.catalog import UnknownName

    try:
        catalog.model_label(name)
    except UnknownName:
        return False
    return True


def _note_unused(stated: Mapping[str, str], rows: Sequence[Row]) -> None:
    """Tell of each flag that changed nothing, since every row that could be read states its own."""
    from planner.validation.cells import EXCESS, REFUSED

    read = [row for row in rows if not {REFUSED, EXCESS} & row.keys()]
    for column, value in stated.items():
        if read and all(row[column] != value for row in read):
            note(
                f"planner: {FLAGS[column]} is not used: it fills blank cells, and the files state their own in every row"
            )
