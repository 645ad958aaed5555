"""From the Pyomo program to plain arrays, once: what the solver sees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyomo.environ as pyo
from numpy.typing import NDArray
from pyomo.repn.plugins.standard_form import LinearStandardFormCompiler
from scipy.sparse import csr_array, diags_array

from planner.program.data import FleetProblem
from planner.program.fleet import build
from planner.program.index import CAPACITY_ROWS
from planner.program.scale import unit_of

Floats = NDArray[np.float64]
TINY = 1e-300
DEMAND_ROWS = ("demand", "spare_demand")


@dataclass(frozen=True)
class CompiledProgram:
    """A mixed-integer linear program: minimise cost.x with row_lower <= A x <= row_upper and bounds on x.

    `columns` are (variable, key) and `rows` (constraint, key). Each row is divided by its largest coefficient, so that one
    tolerance suits GB, GPUs and shares alike; rates of small demands are in units of `planner.program.scale`.
    """

    columns: tuple[tuple[str, Any], ...]
    rows: tuple[tuple[str, Any], ...]
    cost: Floats
    matrix: csr_array
    row_lower: Floats
    row_upper: Floats
    lower: Floats
    upper: Floats
    is_integer: NDArray[np.bool_]


def compile_problem(problem: FleetProblem) -> CompiledProgram:
    """State the program in Pyomo and compile it to arrays, without the capacity rows that another one implies."""
    return compile_model(build(problem))


def compile_model(model: Any) -> CompiledProgram:
    """Compile a Pyomo model of this package to arrays, without the capacity rows that another one implies."""
    form = LinearStandardFormCompiler().write(model, mixed_form=True, set_sense=pyo.minimize)
    rows = tuple(_name(row.constraint) for row in form.rows)
    matrix = _in_units(csr_array(form.A), np.asarray(form.rhs, dtype=float), rows)
    bound = np.asarray([row.bound_type for row in form.rows], dtype=float)
    largest = np.maximum(abs(matrix).max(axis=1).toarray().ravel(), TINY)
    matrix = csr_array(diags_array(1.0 / largest) @ matrix)
    rhs = np.asarray(form.rhs, dtype=float) / largest
    program = CompiledProgram(
        columns=tuple(_name(v) for v in form.columns),
        rows=rows,
        cost=np.asarray(form.c.todense(), dtype=float).ravel(),
        matrix=matrix,
        row_lower=np.where(bound <= 0, rhs, -np.inf),
        row_upper=np.where(bound >= 0, rhs, np.inf),
        lower=np.asarray([_or(v.lb, -np.inf) for v in form.columns]),
        upper=np.asarray([_or(v.ub, np.inf) for v in form.columns]),
        is_integer=np.asarray([not v.is_continuous() for v in form.columns]),
    )
    return _without_implied_rows(program)


def _in_units(matrix: csr_array, due: Floats, rows: Sequence[tuple[str, Any]]) -> csr_array:
    """Return the matrix with the rates that serve small demands in their units; they cost nothing and have no bounds."""
    small = [i for i, (name, _) in enumerate(rows) if name in DEMAND_ROWS and unit_of(due[i]) < 1.0]
    if not small:
        return matrix
    units = np.ones(matrix.shape[1])
    for i in small:
        own = slice(matrix.indptr[i], matrix.indptr[i + 1])
        for column, share in zip(matrix.indices[own].tolist(), matrix.data[own].tolist(), strict=True):
            units[column] = min(units[column], unit_of(unit_of(due[i]) / share))
    return csr_array(matrix @ diags_array(units))


def _or(value: float | None, default: float) -> float:
    return default if value is None else float(value)


def _name(component: Any) -> tuple[str, Any]:
    return component.parent_component().local_name, component.index()


def _without_implied_rows(program: CompiledProgram) -> CompiledProgram:
    """Drop a capacity row when another row of the same candidate is at least as tight for every workload.

    Rows read needs.x <= n after division by the capacity of a replica; with x >= 0 the componentwise larger one implies
    the smaller.
    """
    groups: dict[Any, list[int]] = {}
    for i, (name, key) in enumerate(program.rows):
        if name in CAPACITY_ROWS:
            groups.setdefault(key, []).append(i)
        elif name == "spare_capacity":
            groups.setdefault(key[:2], []).append(i)
    keep = np.ones(len(program.rows), dtype=bool)
    for members in groups.values():
        keep[_implied(program, members)] = False
    rows = tuple(r for r, kept in zip(program.rows, keep, strict=True) if kept)
    return CompiledProgram(
        program.columns,
        rows,
        program.cost,
        csr_array(program.matrix[keep]),
        program.row_lower[keep],
        program.row_upper[keep],
        program.lower,
        program.upper,
        program.is_integer,
    )


def _implied(program: CompiledProgram, members: list[int]) -> list[int]:
    needs = [_need(program, i) for i in members]
    implied: list[int] = []
    for i, need in enumerate(needs):
        for j, other in enumerate(needs):
            tie_goes_first = j < i if need == other else True
            if i != j and members[j] not in implied and tie_goes_first and _covers(other, need):
                implied.append(members[i])
                break
    return implied


def _need(program: CompiledProgram, row: int) -> dict[int, float]:
    start, end = program.matrix.indptr[row], program.matrix.indptr[row + 1]
    entries = dict(
        zip(program.matrix.indices[start:end].tolist(), program.matrix.data[start:end].tolist(), strict=True)
    )
    capacity = -next(v for v in entries.values() if v < 0.0)
    return {k: v / capacity for k, v in entries.items() if v > 0.0}


def _covers(other: dict[int, float], need: dict[int, float]) -> bool:
    return all(other.get(k, 0.0) >= v for k, v in need.items())
