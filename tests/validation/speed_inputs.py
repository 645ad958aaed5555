"""Published speeds of the suite, read once, and rows made by hand."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np
from validation_inputs import catalog

from planner.physics.constants import SpeedConstants
from planner.validation.speed import REPORTED_ONLY, Readable, SpeedValidation, readable, validate_speed
from planner.validation.speed_predict import Array, Batch, predict
from planner.validation.speed_rows import SpeedRow, speed_row
from planner.validation.table import Row, Table, read_table

MEASUREMENTS = Path(__file__).parents[1] / "data" / "speed" / "measurements.csv"
PLAIN_SPEED = {
    "source": "by hand",
    "date": "2025-11",
    "engine": "vLLM 0.11.0",
    "gpu": "H100 SXM 80GB",
    "n_gpus": "1",
    "tp": "1",
    "pp": "1",
    "parallel_extra": "",
    "model": "meta-llama/Llama-3.1-8B-Instruct",
    "weight_dtype": "bf16",
    "kv_dtype": "",
    "isl": "1000",
    "osl": "200",
    "scenario": "closed_loop",
    "concurrency": "16",
    "batch": "",
    "request_rate": "",
    "metric": "output_tok_s_total",
    "value": "1500",
    "notes": "",
}


def speed_cells(**changes: str) -> Row:
    return {**PLAIN_SPEED, **changes}


def speed(**changes: str) -> SpeedRow:
    return speed_row(speed_cells(**changes), catalog(), 2)


@cache
def table() -> Table:
    return read_table(MEASUREMENTS.read_bytes(), str(MEASUREMENTS))


@cache
def read() -> Readable:
    return readable(table().rows, catalog())


@cache
def scored() -> SpeedValidation:
    return validate_speed(read(), catalog())


@cache
def shipped() -> SpeedConstants:
    return SpeedConstants.from_mapping(catalog().calibration())


def rows_of_gpu(*gpus: str) -> tuple[SpeedRow, ...]:
    """Rows that a fit uses, of some GPUs."""
    return tuple(row for row in read().rows if row.device.name in gpus and row.target.name not in REPORTED_ONLY)


def residuals(rows: Sequence[SpeedRow], constants: SpeedConstants) -> Array:
    """log(predicted / measured)."""
    return np.asarray(np.log(predict(Batch.of(rows), constants) / np.array([row.value for row in rows])))


def median_error(rows: Sequence[SpeedRow], constants: SpeedConstants) -> float:
    return float(np.median(np.abs(np.expm1(residuals(rows, constants)))))
