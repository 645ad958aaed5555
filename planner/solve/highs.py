"""One solve with HiGHS: arrays in, a checked point and a bound out."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import highspy
import numpy as np
from numpy.typing import NDArray

from planner.program.compile import CompiledProgram
from planner.solve.brake import current_brake
from planner.solve.quiet import new_solver
from planner.solve.tolerance import COST_RTOL, FEASIBILITY_RTOL, INTEGRALITY_ATOL

Floats = NDArray[np.float64]


class Status(StrEnum):
    """Why a solve ended, as far as callers need to know."""

    OPTIMAL = "optimal"
    LIMIT = "limit"
    INFEASIBLE = "infeasible"


@dataclass(frozen=True)
class Answer:
    """Point (None if there is none), its recomputed objective, the proven lower bound, and why the solve ended.

    `row_prices` are the duals of the rows, for relaxed solves only.
    """

    status: Status
    point: Floats | None
    objective: float
    bound: float
    row_prices: Floats | None = None


@dataclass(frozen=True)
class Effort:
    """Limits of one solve. Nodes bound the work the same way on every machine; seconds are the emergency brake.

    A search also stops at a point whose objective is at most `target`. Programs of one model do better where they are said to be small (`is_small`).
    Points that cost more than `cutoff` are not looked for: a point is known that costs less. With `keeps_sums`, columns that
    are sums of others stay in the program, so that the search can branch on them.
    """

    relative_gap: float = 0.0
    absolute_gap: float = 0.0
    max_nodes: int | None = None
    time_limit_s: float | None = None
    target: float | None = None
    cutoff: float | None = None
    is_small: bool = False
    keeps_sums: bool = False


HEURISTIC_EFFORT = 0.05
SUBSTITUTIONS = (1 << 8) | (1 << 9) | (1 << 12)  # presolve rules of HiGHS: free columns, equations of two, aggregator
SEARCH_OPTIONS: dict[str, Any] = {
    "mip_heuristic_run_feasibility_jump": False,
    "mip_heuristic_run_rins": False,
    "mip_heuristic_run_root_reduced_cost": False,
    "mip_detect_symmetry": False,
    "mip_allow_restart": False,
    "mip_allow_cut_separation_at_nodes": False,
}
"""What costs more than it brings on these programs (measured, see planner/manual/decisions.md)."""
SMALL_OPTIONS: dict[str, Any] = {
    "mip_heuristic_effort": 0.0,
    "mip_heuristic_run_rens": False,
    "mip_pscost_minreliable": 0,
    "mip_pool_soft_limit": 20,
}
"""The same for programs of one model: no heuristics, no strong branching, few cuts."""


def minimise(program: CompiledProgram, effort: Effort, relaxed: bool = False) -> Answer:
    """Minimise a compiled program with one thread and a fixed seed.

    The returned point is checked: every row and bound within `FEASIBILITY_RTOL`, every whole number whole, and the objective
    recomputed. No start is ever handed over: HiGHS 1.16 returned wrong answers from partial starts. A brake stops searches
    over whole numbers; linear programs are short, and half-solved ones prove nothing.

    Raises:
        ArithmeticError: the solver's answer fails the check.
    """
    solver = new_solver()
    for name, value in _options(effort).items():
        solver.setOptionValue(name, value)
    is_lp = relaxed or not bool(program.is_integer.any())
    brake = None if is_lp else current_brake()
    if brake is not None:
        solver.cbMipInterrupt.subscribe(lambda event: event.interrupt(brake()))
    solver.passModel(_highs_lp(program, relaxed))
    solver.run()
    status = _status(solver.getModelStatus())
    if status is Status.INFEASIBLE:
        # Presolve has called feasible programs infeasible within its tolerances: ask again without it.
        solver.setOptionValue("presolve", "off")
        solver.clearSolver()
        solver.run()
        status = _status(solver.getModelStatus())
    if status is Status.INFEASIBLE:
        return Answer(status, None, np.inf, np.inf)
    info = solver.getInfo()
    bound = float(info.objective_function_value if is_lp else info.mip_dual_bound)
    if info.primal_solution_status != highspy.SolutionStatus.kSolutionStatusFeasible:
        return Answer(Status.LIMIT, None, np.inf, bound)
    point = np.asarray(solver.getSolution().col_value, dtype=float)
    if not relaxed:
        whole = np.round(point[program.is_integer])
        if np.abs(point[program.is_integer] - whole).max(initial=0.0) > INTEGRALITY_ATOL:
            raise ArithmeticError("solver answer has fractions where whole numbers are due")
        point[program.is_integer] = whole
    objective = float(program.cost @ point)
    _check(program, point, objective, float(info.objective_function_value))
    prices = np.asarray(solver.getSolution().row_dual, dtype=float) if is_lp else None
    return Answer(status, point, objective, min(bound, objective), prices)


def _options(effort: Effort) -> dict[str, Any]:
    options: dict[str, Any] = {
        "output_flag": False,
        "threads": 1,
        "parallel": "off",
        "random_seed": 0,
        "mip_rel_gap": effort.relative_gap,
        "mip_abs_gap": effort.absolute_gap,
        "mip_heuristic_effort": HEURISTIC_EFFORT,
    }
    options |= SEARCH_OPTIONS
    if effort.is_small:
        options |= SMALL_OPTIONS
    if effort.keeps_sums:
        options["presolve_rule_off"] = SUBSTITUTIONS
    if effort.target is not None:
        options["objective_target"] = effort.target
    if effort.cutoff is not None:
        options["objective_bound"] = effort.cutoff
    if effort.max_nodes is not None:
        options["mip_max_nodes"] = effort.max_nodes
    if effort.time_limit_s is not None:
        options["time_limit"] = effort.time_limit_s
    return options


def _highs_lp(program: CompiledProgram, relaxed: bool) -> Any:
    lp = highspy.HighsLp()
    lp.num_col_ = len(program.columns)
    lp.num_row_ = len(program.rows)
    lp.col_cost_ = program.cost
    lp.col_lower_ = program.lower
    lp.col_upper_ = np.where(np.isinf(program.upper), highspy.kHighsInf, program.upper)
    lp.row_lower_ = program.row_lower
    lp.row_upper_ = program.row_upper
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_ = program.matrix.indptr
    lp.a_matrix_.index_ = program.matrix.indices
    lp.a_matrix_.value_ = program.matrix.data
    if not relaxed and program.is_integer.any():
        kinds = (highspy.HighsVarType.kContinuous, highspy.HighsVarType.kInteger)
        lp.integrality_ = [kinds[int(flag)] for flag in program.is_integer]
    return lp


def _status(status: Any) -> Status:
    if status in (highspy.HighsModelStatus.kOptimal, highspy.HighsModelStatus.kObjectiveTarget):
        return Status.OPTIMAL
    if status in (highspy.HighsModelStatus.kInfeasible, highspy.HighsModelStatus.kUnboundedOrInfeasible):
        return Status.INFEASIBLE
    return Status.LIMIT


def _check(program: CompiledProgram, point: Floats, objective: float, reported: float) -> None:
    """Refuse an answer whose rows, bounds or objective do not hold when recomputed."""
    activity = program.matrix @ point
    scale = 1.0 + abs(program.matrix) @ np.abs(point)
    slack = FEASIBILITY_RTOL * scale
    bad_rows = (activity > program.row_upper + slack) | (activity < program.row_lower - slack)
    bad_bounds = (point > program.upper + FEASIBILITY_RTOL) | (point < program.lower - FEASIBILITY_RTOL)
    if bad_rows.any() or bad_bounds.any():
        names = [program.rows[i] for i in np.flatnonzero(bad_rows)[:3]]
        raise ArithmeticError(f"solver answer violates rows {names} and {int(bad_bounds.sum())} bounds")
    if abs(objective - reported) > COST_RTOL * max(1.0, abs(objective)):
        raise ArithmeticError(f"solver reports objective {reported}, recomputed {objective}")
