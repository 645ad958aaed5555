"""Own calibrations: files beside the shipped one that say what a user's measurements add to it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, Strict

from planner.catalog.base import Count, Record, Text
from planner.physics.bands import Bands, Coverage
from planner.physics.constants import SpeedConstants

SHIPPED = "default"
Log = Annotated[float, Field(ge=-3.0, le=3.0, strict=False)]
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
        return {
            **data,
            "gpus": {**data.get("gpus", {}), **own["gpus"]},
            "levels": [*data.get("levels", []), *own["levels"]],
            "coverage": [*data.get("coverage", []), *own["coverage"]],
        }
