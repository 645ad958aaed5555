"""Fit the constants of the speed model to published measurements, with priors; leave sources out to see what it is worth.

Huber loss on log residuals, Gaussian priors on the logarithms of all parameters, Gauss-Newton with reweighting. Engine
classes are offsets to their generation, architecture classes offsets to the global constants, all shrunk to zero, so that
what no row covers is the formula alone.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from planner.physics.constants import EngineMultipliers, Offsets, SpeedConstants
from planner.validation.least_squares import Part, derivatives, gauss_newton, robust
from planner.validation.speed_predict import Array, Batch, Index, predict
from planner.validation.speed_rows import SpeedRow

HUBER = 0.15
PRIOR_WEIGHT = 0.005
"""Of 0.005 to 0.04, what predicts sources left out best, whichever source has no say; at 0.0025 GPUs left out go astray."""
GROUP_EXPONENT = 0.3
"""A group of n rows weighs n^0.3, so that two large sources do not decide everything."""
WEIGHTS = {
    "output_tok_s_offline": 1.0, "output_tok_s_closed_loop": 1.0, "tpot_ms": 0.7, "ttft_ms": 0.25, "decode_tok_s_batch1": 0.7,
    "static_latency": 0.8, "prefill": 0.4, "mlperf_offline": 0.5,
}  # fmt: skip
"""Weight of a metric in the fit; metrics without one are only reported."""
OFFSET_SD = {"weights": 0.12, "kv": 0.2, "compute": 0.2, "layer": 0.3}
ENGINE_SD = {"gpu_time": 0.10, "overhead": 0.5, "sequence": 0.7, "prefill": 0.3, "request": 0.6}
GENERATION_SD = {"gpu_time": 0.25, "overhead": 0.6, "sequence": 0.6, "prefill": 0.4}
"""Spread of the priors on the logarithms."""
MOST_ROUNDS = 30
REFINING_ROUNDS = 2
CONVERGED = 2e-4
NEAR = 5e-3
"""Largest first step from a start that is taken to be the optimum but for its printed digits."""
LEFT_OUT_ROUNDS = 4
LARGE_SHARE = 0.05


@dataclass(frozen=True, slots=True)
class Parameter:
    """One fitted number: where it belongs, the logarithm that its prior is centred on, and the spread of that."""

    table: str
    line: str
    name: str
    centre: float
    sd: float


@dataclass(frozen=True)
class Problem:
    """Rows, parameters and, for every parameter, the rows that it can move."""

    batch: Batch
    measured: Array
    weights: Array
    parameters: tuple[Parameter, ...]
    base: SpeedConstants
    generation_of: Mapping[str, str]
    parts: tuple[Part, ...]

    @property
    def centres(self) -> Array:
        """Centres of all priors."""
        return np.array([p.centre for p in self.parameters])

    @property
    def precisions(self) -> Array:
        """Weight of every prior."""
        return np.array([PRIOR_WEIGHT / p.sd**2 for p in self.parameters])

    def constants(self, theta: Array) -> SpeedConstants:
        """Return the constants of a point."""
        return _constants(self, theta)

    def residuals(self, theta: Array) -> Array:
        """Return log(predicted / measured) of all rows."""
        return np.log(predict(self.batch, self.constants(theta)) / self.measured)


@dataclass(frozen=True)
class Fit:
    """The optimum: parameters, residuals there, their derivatives, and posterior over prior spread."""

    problem: Problem
    theta: Array
    residuals: Array
    jacobian: Array
    widths: Array

    @property
    def constants(self) -> SpeedConstants:
        """The fitted constants."""
        return self.problem.constants(self.theta)


def make_problem(rows: Sequence[SpeedRow], base: SpeedConstants, calibration: Mapping[str, Any]) -> Problem:
    """Lay out a fit. `calibration` is the parsed calibration file whose constants state their priors."""
    batch = Batch.of(rows)
    parameters = [*_global_parameters(calibration), *_offset_parameters(rows), *_engine_parameters(rows, base)]
    generation_of = {r.engine.name: base.engine(r.engine.name).generation for r in rows}
    known: dict[tuple[int, ...], Part] = {}
    parts: list[Part] = []
    for parameter in parameters:
        index = np.flatnonzero([_moves(parameter, row, generation_of) for row in rows])
        key = tuple(index.tolist())
        if key not in known:
            known[key] = (index, batch if index.size == len(rows) else batch.take(index))
        parts.append(known[key])
    measured = np.array([row.value for row in rows])
    return Problem(batch, measured, row_weights(rows), tuple(parameters), base, generation_of, tuple(parts))


def row_weights(rows: Sequence[SpeedRow]) -> Array:
    """Return the weight of every row: that of its metric, with each (source, GPU, metric) group of n rows at n^0.3."""
    keys = [(row.source, row.gpu, row.target.name) for row in rows]
    sizes = Counter(keys)
    return np.array([WEIGHTS.get(key[2], 0.0) * group_weight(sizes[key]) for key in keys])


def group_weight(rows: int) -> float:
    """Return the weight of each row of a group, which then weighs `rows` to the power `GROUP_EXPONENT`."""
    return float(rows ** (GROUP_EXPONENT - 1.0))


def point_of(problem: Problem, constants: SpeedConstants) -> Array:
    """Return the point that constants stand for: where a fit may start from, or the file that it wrote."""
    theta = problem.centres
    for index, parameter in enumerate(problem.parameters):
        if parameter.table == "constants":
            theta[index] = math.log(getattr(constants, parameter.name))
        elif parameter.table in ("architectures", "families"):
            table = constants.architectures if parameter.table == "architectures" else constants.families
            theta[index] = getattr(table.get(parameter.line, Offsets()), parameter.name)
        else:
            theta[index] = _engine_log(constants, parameter)
    return theta


def _engine_log(constants: SpeedConstants, parameter: Parameter) -> float:
    if parameter.table == "generations":
        return math.log(getattr(constants.generations[parameter.line], parameter.name))
    line = constants.engine(parameter.line)
    generation = constants.generations[line.generation]
    base = getattr(generation, parameter.name) if parameter.name in GENERATION_SD else 1.0
    return math.log(getattr(line, parameter.name) / base)


def fit(problem: Problem, start: Array | None = None) -> Fit:
    """Return the optimum from the centres of the priors, or a few steps from another `start` that is near it."""
    theta = problem.centres if start is None else start
    residuals = problem.residuals(theta)
    jacobian = _jacobian(problem, theta, residuals)
    for _ in range(MOST_ROUNDS if start is None else REFINING_ROUNDS):
        step = _step(problem, theta, residuals, jacobian, problem.weights)
        theta, residuals, moved = _descend(problem, theta, residuals, step)
        if moved < (CONVERGED if start is None else NEAR):
            break
        jacobian = _jacobian(problem, theta, residuals)
    return Fit(problem, theta, residuals, jacobian, _widths(problem, residuals, jacobian))


def left_out(found: Fit, out: Index) -> Array:
    """Return residuals of all rows with the constants fitted without the rows `out`, starting from the whole fit.

    A source with a large share of the rows is fitted again; for others the derivatives at the whole optimum are kept.
    Parameters that only the rows left out move fall back to their priors.
    """
    problem = found.problem
    weights = problem.weights.copy()
    weights[out] = 0.0
    theta, residuals = found.theta, found.residuals
    if out.size > LARGE_SHARE * weights.size:
        return _refitted(replace(problem, weights=weights), found)
    for _ in range(LEFT_OUT_ROUNDS):
        theta = theta + _step(problem, theta, residuals, found.jacobian, weights)
        residuals = problem.residuals(theta)
    return residuals


def _refitted(problem: Problem, near: Fit) -> Array:
    """Return residuals of all rows after descending from the optimum of another weighting, with fresh derivatives half way."""
    theta, residuals, jacobian = near.theta, near.residuals, near.jacobian
    for part in range(2):
        jacobian = _jacobian(problem, theta, residuals) if part else jacobian
        for _ in range(LEFT_OUT_ROUNDS):
            step = _step(problem, theta, residuals, jacobian, problem.weights)
            theta, residuals, moved = _descend(problem, theta, residuals, step)
            if moved < CONVERGED:
                break
    return residuals


def _global_parameters(calibration: Mapping[str, Any]) -> list[Parameter]:
    constants = calibration["constants"]
    return [
        Parameter("constants", "", name, math.log(row["prior"]), float(row["prior_log_sd"]))
        for name, row in sorted(constants.items())
        if "prior" in row
    ]


def _offset_parameters(rows: Sequence[SpeedRow]) -> list[Parameter]:
    classes = sorted({row.device.architecture_class for row in rows if row.device.architecture_class})
    kinds = sorted({row.family for row in rows} - {"dense"})
    found = [Parameter("architectures", c, name, 0.0, sd) for c in classes for name, sd in OFFSET_SD.items()]
    return found + [Parameter("families", k, name, 0.0, sd) for k in kinds for name, sd in OFFSET_SD.items()]


def _engine_parameters(rows: Sequence[SpeedRow], base: SpeedConstants) -> list[Parameter]:
    engines = sorted({row.engine.name for row in rows})
    generations = sorted({base.engine(name).generation for name in engines})
    found = [Parameter("generations", g, name, 0.0, sd) for g in generations for name, sd in GENERATION_SD.items()]
    return found + [Parameter("engines", e, name, 0.0, sd) for e in engines for name, sd in ENGINE_SD.items()]


def _moves(parameter: Parameter, row: SpeedRow, generation_of: Mapping[str, str]) -> bool:
    match parameter.table:
        case "architectures":
            return row.device.architecture_class == parameter.line
        case "families":
            return row.family == parameter.line
        case "generations":
            return generation_of[row.engine.name] == parameter.line
        case "engines":
            return row.engine.name == parameter.line
    return True


def _constants(problem: Problem, theta: Array) -> SpeedConstants:
    values: dict[str, Any] = {}
    offsets: dict[str, dict[str, float]] = {}
    generations: dict[str, dict[str, float]] = {}
    engines: dict[str, dict[str, float]] = {}
    families: dict[str, dict[str, float]] = {}
    tables = {"architectures": offsets, "families": families, "generations": generations, "engines": engines}
    for parameter, value in zip(problem.parameters, theta.tolist(), strict=True):
        if parameter.table == "constants":
            values[parameter.name] = math.exp(value)
        else:
            tables[parameter.table].setdefault(parameter.line, {})[parameter.name] = value
    base = problem.base
    lines = {g: _line(known, generations[g]) if g in generations else known for g, known in base.generations.items()}
    for name, generation in problem.generation_of.items():
        both = {k: generations[generation].get(k, 0.0) + engines[name].get(k, 0.0) for k in ENGINE_SD}
        lines[name] = _line(base.engine(name), both)
    return replace(
        base,
        **values,
        architectures={c: Offsets(**of) for c, of in offsets.items()},
        gpus={},
        families={k: Offsets(**of) for k, of in families.items()},
        generations={g: lines[g] for g in base.generations},
        engines={name: lines[name] for name in problem.generation_of},
        levels={},
    )


def _line(known: EngineMultipliers, logs: Mapping[str, float]) -> EngineMultipliers:
    changed: dict[str, Any] = {name: math.exp(logs.get(name, 0.0)) for name in ENGINE_SD}
    return replace(known, **changed)


def _jacobian(problem: Problem, theta: Array, residuals: Array) -> Array:
    def at(moved: Array, index: Index, batch: Batch) -> Array:
        return np.log(predict(batch, problem.constants(moved)) / problem.measured[index])

    return derivatives(theta, residuals, problem.parts, at)


def _step(problem: Problem, theta: Array, residuals: Array, jacobian: Array, weights: Array) -> Array:
    counted = robust(residuals, weights, HUBER)
    return gauss_newton(residuals, jacobian, counted, problem.precisions, theta - problem.centres)


def _objective(problem: Problem, theta: Array, residuals: Array) -> float:
    size = np.abs(residuals)
    loss = np.where(size <= HUBER, 0.5 * size**2, HUBER * (size - 0.5 * HUBER))
    prior = 0.5 * problem.precisions * (theta - problem.centres) ** 2
    return float(problem.weights @ loss + prior.sum())


def _descend(problem: Problem, theta: Array, residuals: Array, step: Array) -> tuple[Array, Array, float]:
    """Take the step, halved until the objective falls; returns the largest move."""
    before = _objective(problem, theta, residuals)
    for _ in range(8):
        there = problem.residuals(theta + step)
        if np.all(np.isfinite(there)) and _objective(problem, theta + step, there) < before:
            return theta + step, there, float(np.abs(step).max())
        step = 0.5 * step
    return theta, residuals, 0.0


def _widths(problem: Problem, residuals: Array, jacobian: Array) -> Array:
    """Return posterior over prior spread by the local curvature: near 1 the data say nothing."""
    counted = robust(residuals, problem.weights, HUBER)
    curvature = jacobian.T @ (jacobian * counted[:, None]) + np.diag(problem.precisions)
    posterior = np.sqrt(np.diag(np.linalg.inv(curvature)))
    return np.asarray(posterior * np.sqrt(problem.precisions), dtype=np.float64)
