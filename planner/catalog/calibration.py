"""Own calibrations: files beside the shipped one that say what a user's measurements add to it."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field, Strict

from planner.catalog.base import Count, Record, Text
from planner.catalog.canonical import tidy
from planner.physics.bands import FAMILIES, Bands, Coverage
from planner.physics.constants import SpeedConstants
from planner.physics.formats import WEIGHT_FORMATS
from planner.source.nearest import nearest

SHIPPED = "default"
Log = Annotated[float, Field(ge=-3.0, le=3.0, strict=False, allow_inf_nan=False)]
"""Logarithm of a factor; beyond a factor of twenty it corrects nothing."""


def what_is_missing(data: Mapping[str, Any]) -> str:
    """Return what keeps a whole calibration from being used, empty when nothing does."""
    try:
        SpeedConstants.from_mapping(data)
        Coverage.from_mapping(data)
        Bands.from_mapping(data)
    except ValueError as error:
        return str(error)
    return ""


Place = tuple[str | int, ...]


@dataclass(frozen=True)
class Known:
    """Names that mean something in a calibration: GPUs, architecture classes of those in it, engine classes, generations."""

    gpus: Collection[str]
    architecture_classes: Mapping[str, str]
    engine_classes: Collection[str]
    generations: Collection[str]


def not_finite(data: object, place: Place = ()) -> Iterator[tuple[Place, str]]:
    """Yield the place and the description of every number in parsed YAML that is not finite."""
    if isinstance(data, Mapping):
        for key, value in data.items():
            yield from not_finite(value, (*place, key))
    elif isinstance(data, list):
        for index, value in enumerate(data):
            yield from not_finite(value, (*place, index))
    elif isinstance(data, float) and not math.isfinite(data):
        yield place, f"`{'.'.join(map(str, place))}`: must be a finite number, got {data}"


class GpuOffsets(Record):
    """Logarithms to add to the constants of one GPU."""

    weights: Log
    kv: Log
    compute: Log
    layer: Log


class MeasuredLevel(Record):
    """The factor on all step times of a combination, as a logarithm, and the rows behind it."""

    engine_class: Text
    gpu: Text
    family: Text
    weights: Text
    log_time: Log
    rows: Count


class MeasuredRows(Record):
    """A combination that was measured, and how often."""

    gpu: Text
    architecture_class: str
    generation: Text
    engine_class: Text
    family: Text
    weights: Text
    rows: Count
    fitted: bool
    own: bool = True


class OwnCalibration(Record):
    """The content of `calibration/<name>.yaml` for every name but `default`, as `planner calibrate --out` writes it."""

    name: Text
    extends: Literal["default"]
    rows: Count
    digest: Text
    gpus: dict[str, GpuOffsets]
    levels: Annotated[tuple[MeasuredLevel, ...], Strict(False)]
    coverage: Annotated[tuple[MeasuredRows, ...], Strict(False)]

    def over(self, data: Mapping[str, Any]) -> dict[str, Any]:
        """Return a calibration with what was measured put over its own."""
        own = self.model_dump()
        measured = [{**row, "calibration": self.name} for row in own["coverage"]]
        return {
            **data,
            "gpus": {**data.get("gpus", {}), **own["gpus"]},
            "levels": [*data.get("levels", []), *own["levels"]],
            "coverage": [*data.get("coverage", []), *measured],
        }

    def strange_names(self, known: Known) -> Iterator[tuple[Place, str]]:
        """Yield the place and the description of every name that would match no prediction, and so change nothing."""
        legal: dict[str, tuple[str, Collection[str]]] = {
            "gpu": ("GPU", known.gpus),
            "engine_class": ("engine class", known.engine_classes),
            "generation": ("generation", known.generations),
            "family": ("family", FAMILIES),
            "weights": ("weight format", WEIGHT_FORMATS.keys()),
        }
        for gpu in self.gpus:
            yield from _strange(("gpus", gpu), gpu, *legal["gpu"])
        for table, rows in (("levels", self.levels), ("coverage", self.coverage)):
            for index, row in enumerate(rows):
                for key, (kind, names) in legal.items():
                    if hasattr(row, key):
                        yield from _strange((table, index, key), getattr(row, key), kind, names)
        for index, row in enumerate(self.coverage):
            its_class = known.architecture_classes.get(row.gpu, row.architecture_class)
            yield from _strange(
                ("coverage", index, "architecture_class"), row.architecture_class, "architecture class", (its_class,)
            )


def _strange(place: Place, name: str, kind: str, legal: Collection[str]) -> Iterator[tuple[Place, str]]:
    if name not in legal:
        close = nearest(name, legal)
        hint = f"did you mean `{close}`?" if close else f"known: {', '.join(sorted(legal))}"
        yield place, f"no {kind} `{tidy(name)}`; {hint}"
