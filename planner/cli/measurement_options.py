"""Flags of commands that read measurements: the files, and what they leave blank."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from planner.catalog import Catalog
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


def open_measurements(
    files: Sequence[str], catalog: Path | None, **flags: str | int | None
) -> tuple[Measurements, Catalog]:
    """Read the files, with the flags that were given as the cells that they leave blank, and the catalog.

    Leaves with a usage error, or with diagnostics.
    """
    from planner.cli.inputs import open_folder, read_measurements

    stated = {name: str(value) for name, value in flags.items() if value is not None}
    opened = open_folder(catalog)
    _check(stated, opened)
    return read_measurements(files, stated), opened


def _check(stated: Mapping[str, str], catalog: Catalog) -> None:
    """Leave with wrong input when the GPU or the model that was stated is not in the catalog."""
    from planner.catalog import UnknownName
    from planner.cli.inputs import refuse_catalog

    try:
        if "gpu" in stated:
            catalog.gpu_label(stated["gpu"])
        if "model" in stated:
            catalog.model_label(stated["model"])
    except UnknownName as error:
        refuse_catalog(error)
