"""A calibration from a user's own benchmarks: what they say about their GPUs and combinations, on top of the shipped constants.

A maximum a posteriori fit of four offsets for each GPU and one level for each combination of engine class, GPU, model
family and weight format. The priors keep a few rows from bending anything that they do not measure; the shared constants
never move.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from planner.catalog import Catalog
from planner.catalog.calibration import SHIPPED
from planner.physics.constants import Combination, Offsets, SpeedConstants
from planner.validation.calibration_file import coverage_lines, flow, mapping, rounded
from planner.validation.least_squares import derivatives, gauss_newton, robust
from planner.validation.speed_levels import coverage
from planner.validation.speed_predict import Array, Batch, Index, predict
from planner.validation.speed_rows import SpeedRow

OFFSET_SD = {"weights": 0.15, "kv": 0.25, "compute": 0.25, "layer": 0.4}
LEVEL_SD = 0.25
"""Spread of the priors on the logarithms: what GPUs and combinations differ by once a full fit has seen them."""
ROW_SD = 0.2
HUBER = 0.25
"""Spread of the rows of one deployment around the model, and from where on a row counts less."""
ROUNDS = 6
_HEADER = """\
# Own measurements, written by `planner calibrate`. They are put on top of the constants of `{extends}` when this file lies in
# the folder calibration/ of the catalog. gpus: logarithms to add for a GPU. levels: logarithm of the factor on all step times
# of one combination. Both are shrunk to zero where the rows do not ask for more.
"""


@dataclass(frozen=True, slots=True)
class _Knob:
    """One number of the fit: an offset of a GPU, or the level of a combination."""

    gpu: str
    name: str
    combination: Combination | None
    sd: float

    def moves(self, row: SpeedRow) -> bool:
        """Tell whether the prediction of a row depends on this number."""
        return row.device.name == self.gpu if self.combination is None else row.combination == self.combination


def own_calibration(rows: Sequence[SpeedRow], catalog: Catalog, name: str, data: bytes) -> str:
    """Return the text of a calibration file that extends the shipped one by what the rows say about step times."""
    base = SpeedConstants.from_mapping(catalog.shipped_calibration())
    fitted = with_own(base, *fit_own(rows, base))
    lines = [_HEADER.format(extends=SHIPPED)]
    facts = {
        "name": name,
        "extends": SHIPPED,
        "rows": len(rows),
        "digest": f"sha256:{hashlib.sha256(data).hexdigest()}",
    }
    lines += [f"{key}: {flow(value)}\n" for key, value in facts.items()]
    lines += [*_gpu_lines(fitted, rows), *_level_lines(fitted, rows)]
    generations = {row.engine.name: base.engine(row.engine.name).generation for row in rows}
    lines += ["coverage:\n" if rows else "coverage: []\n", *coverage_lines(coverage(rows, generations), own=True)]
    return "".join(lines)


def fit_own(rows: Sequence[SpeedRow], base: SpeedConstants) -> tuple[list[_Knob], Array]:
    """Return the numbers of the fit and their values, on top of `base`."""
    knobs = [_Knob(g, n, None, sd) for g in sorted({r.device.name for r in rows}) for n, sd in OFFSET_SD.items()]
    knobs += [_Knob("", "", c, LEVEL_SD) for c in sorted({r.combination for r in rows})]
    theta = np.zeros(len(knobs))
    if not rows:
        return knobs, theta
    batch = Batch.of(rows)
    measured = np.array([row.value for row in rows])
    everything = np.arange(len(rows))
    indices = [np.flatnonzero([knob.moves(row) for row in rows]) for knob in knobs]
    parts = [(index, batch.take(index)) for index in indices]
    precisions = np.array([1.0 / knob.sd**2 for knob in knobs])

    def at(there: Array, index: Index, part: Batch) -> Array:
        return np.asarray(np.log(predict(part, with_own(base, knobs, there)) / measured[index]), dtype=np.float64)

    for _ in range(ROUNDS):
        residuals = at(theta, everything, batch)
        jacobian = derivatives(theta, residuals, parts, at)
        theta = theta + gauss_newton(residuals, jacobian, robust(residuals, ROW_SD**-2, HUBER), precisions, theta)
    return knobs, theta


def with_own(base: SpeedConstants, knobs: Sequence[_Knob], theta: Array) -> SpeedConstants:
    """Return the constants with the fitted numbers put on top."""
    offsets: dict[str, dict[str, float]] = {}
    levels = dict(base.levels)
    for knob, value in zip(knobs, theta.tolist(), strict=True):
        if knob.combination is None:
            offsets.setdefault(knob.gpu, {})[knob.name] = value
        else:
            levels[knob.combination] = base.levels.get(knob.combination, 0.0) + value
    gpus = {**base.gpus, **{g: base.gpus.get(g, Offsets()) + Offsets(**of) for g, of in offsets.items()}}
    return replace(base, gpus=gpus, levels=levels)


def _gpu_lines(fitted: SpeedConstants, rows: Sequence[SpeedRow]) -> list[str]:
    gpus = {name: fitted.gpus[name] for name in sorted({row.device.name for row in rows})}
    lines = [f"  {g}: {mapping({n: round(getattr(of, n), 4) + 0.0 for n in OFFSET_SD})}\n" for g, of in gpus.items()]
    return ["gpus:\n" if lines else "gpus: {}\n", *lines]


def _level_lines(fitted: SpeedConstants, rows: Sequence[SpeedRow]) -> list[str]:
    lines: list[str] = []
    for combination in sorted({row.combination for row in rows}):
        engine, gpu, family, weights = combination
        entry: dict[str, Any] = {"engine_class": engine, "gpu": gpu, "family": family, "weights": weights}
        entry |= {
            "log_time": rounded(fitted.levels[combination]),
            "rows": sum(r.combination == combination for r in rows),
        }
        lines.append(f"  - {mapping(entry)}\n")
    return ["levels:\n" if lines else "levels: []\n", *lines]
