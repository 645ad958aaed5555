"""What the calculators of `planner size` share: comma lists to axes, axes to rows, rows to text."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import typer

from planner.catalog import Catalog, UnknownName
from planner.cli import grid
from planner.cli.exits import ExitCode
from planner.cli.inputs import open_folder, refuse_catalog
from planner.cli.size_options import Format
from planner.cli.streams import answer, note, usage_error
from planner.diagnostics import DiagnosticError
from planner.physics.footprint import UnknownArchitecture
from planner.physics.format_labels import WEIGHT_LABELS
from planner.physics.formats import KV_FORMATS, WEIGHT_FORMATS
from planner.report.rows import as_csv, as_json
from planner.report.sizing import render
from planner.sizing.grid import as_data, check_size, combinations
from planner.sizing.inputs import Gpu, SizingError, StatedGpu, StatedShape, Subject, Unit, gpu, subject

NATIVE = "native"
WEIGHT_NAMES = (NATIVE, *WEIGHT_FORMATS)
Axes = dict[str, Sequence[object]]


@dataclass(frozen=True)
class Asked:
    """What rows are about: names of models and GPUs, and figures stated for them; `stated` is None without GPUs.

    An `engine` stands beside each row. With `compared`, several GPUs are compared with the first of them.
    """

    model: str | None
    shapes: list[StatedShape]
    gpu: str | None = None
    stated: list[StatedGpu] | None = None
    units: Unit = Unit.GB
    engine: str | None = None
    compared: bool = False


def print_rows(
    calculator: str, calculate: Callable[..., Any], asked: Asked, axes: Axes, catalog: Path | None, output: Format
) -> None:
    """Print a row for every combination. Leaves with one line for what a calculator or the catalog refuses."""
    with _refusals():
        opened = open_folder(catalog) if asked.model or asked.gpu else None
        rows = combinations(calculate, _all_axes(opened, asked, axes))
    data = [as_data(row, asked.units) for row in rows]
    if output is Format.JSON:
        answer(as_json({"rows": data}))
    elif output is Format.CSV:
        answer(as_csv(data))
    else:
        answer("".join(f"{line}\n" for line in render(calculator, data, asked.units)))


def _all_axes(catalog: Catalog | None, asked: Asked, axes: Axes) -> Axes:
    found: Axes = {"subject": _subjects(catalog, asked.model, asked.shapes)}
    gpus: list[Gpu] = []
    if asked.stated is not None:
        gpus = _gpus(catalog, asked.gpu, asked.stated, asked.units)
        found["gpu"] = gpus
    found |= axes
    if asked.engine is not None:
        found["engine"] = (catalog.engine(asked.engine) if catalog is not None else None,)
    if asked.compared:
        found["first"] = (gpus[0] if len(gpus) > 1 else None,)
    return found


def optional(name: str, text: str | None, read: Callable[[str, str], Any]) -> tuple[Any, ...]:
    """Read a list, or one absent value."""
    return grid.items(name, text, read) or (None,)


def formats(weights: str, kv: str) -> Axes:
    """Read the formats of weights and cache."""
    return {
        "weights": grid.items("--weights", weights, grid.format_of(WEIGHT_NAMES, WEIGHT_LABELS)),
        "kv": grid.items("--kv", kv, grid.format_of(KV_FORMATS)),
    }


def native(calculate: Callable[..., Any]) -> Callable[..., Any]:
    """Let a calculator take `native` for the format that its model is published in."""

    def row(*, subject: Subject, weights: str, **others: Any) -> Any:
        return calculate(subject=subject, weights=subject.native_format if weights == NATIVE else weights, **others)

    return row


def shapes_of(
    params: str | None = None,
    layers: str | None = None,
    heads: str | None = None,
    kv_heads: str | None = None,
    head_dim: str | None = None,
    hidden: str | None = None,
) -> list[StatedShape]:
    """Read every combination of the figures of a model that are stated."""
    return _combined(
        StatedShape,
        optional("--params", params, grid.parameters),
        optional("--layers", layers, grid.at_most(grid.MOST_LAYERS)),
        optional("--heads", heads, grid.at_most(grid.MOST_HEADS)),
        optional("--kv-heads", kv_heads, grid.at_most(grid.MOST_HEADS)),
        optional("--head-dim", head_dim, grid.at_most(grid.MOST_WIDTH)),
        optional("--hidden", hidden, grid.at_most(grid.MOST_WIDTH)),
    )


def stated_gpus(
    units: Unit,
    memory: str | None = None,
    bandwidth: str | None = None,
    tflops: str | None = None,
    host_bandwidth: str | None = None,
) -> list[StatedGpu]:
    """Read every combination of the figures of a GPU that are stated."""
    return _combined(
        StatedGpu,
        optional("--memory", memory, grid.memory(units)),
        optional("--bandwidth", bandwidth, grid.bandwidth),
        tuple(t and t * 1e12 for t in optional("--tflops", tflops, grid.factor)),
        optional("--host-bandwidth", host_bandwidth, grid.bandwidth),
    )


def _combined(build: Callable[..., Any], *axes: Sequence[Any]) -> list[Any]:
    with _refusals():
        check_size(map(len, axes))
    return [build(*values) for values in product(*axes)]


def _subjects(catalog: Catalog | None, models: str | None, shapes: list[StatedShape]) -> list[Subject]:
    names = optional("--model", models, grid.name)
    check_size([len(names), len(shapes)])
    return [subject(catalog, name, shape) for name in names for shape in shapes]


def _gpus(catalog: Catalog | None, names: str | None, stated: list[StatedGpu], units: Unit) -> list[Gpu]:
    wanted = optional("--gpu", names, grid.name)
    check_size([len(wanted), len(stated)])
    return [gpu(catalog, name, figures, units) for name in wanted for figures in stated]


@contextmanager
def _refusals() -> Iterator[None]:
    """Leave with one line for what a calculator or the catalog refuses."""
    try:
        yield
    except SizingError as error:
        usage_error(str(error))
    except (UnknownName, DiagnosticError) as error:
        refuse_catalog(error)
    except UnknownArchitecture as error:
        note(f"planner: {error}")
        raise typer.Exit(ExitCode.WRONG_INPUT) from None
