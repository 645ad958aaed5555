"""One solve with HiGHS: the right outcome for every kind of program, and no wrong answer accepted."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

import planner.solve.highs as highs
from planner.program.compile import CompiledProgram
from planner.solve.highs import Effort, Status, minimise
from planner.solve.quiet import new_solver
from planner.solve.tolerance import INTEGRALITY_ATOL, to_count

INF = np.inf


def program(
    cost: Sequence[float],
    rows: Sequence[Sequence[float]],
    least: Sequence[float],
    most: Sequence[float],
    whole: bool = True,
) -> CompiledProgram:
    """Return minimise cost.x over least <= rows.x <= most and 0 <= x <= 100."""
    size = len(cost)
    return CompiledProgram(
        columns=tuple(("x", i) for i in range(size)),
        rows=tuple(("row", i) for i in range(len(rows))),
        cost=np.array(cost, dtype=float),
        matrix=csr_array(np.array(rows, dtype=float)),
        row_lower=np.array(least, dtype=float),
        row_upper=np.array(most, dtype=float),
        lower=np.zeros(size),
        upper=np.full(size, 100.0),
        is_integer=np.full(size, whole),
    )


KNAPSACK = program([7.0, 5.0], [[3.0, 2.0]], [7.0], [INF])
"""Cover 7 with pieces of 3 (for 7) and of 2 (for 5): best is 3 + 2 + 2 for 17; the relaxation costs 7/3 x 7."""


def market_split(size: int = 30) -> CompiledProgram:
    """Return a program with a loose relaxation and many near-equal answers, which takes a search."""
    rng = np.random.default_rng(7)
    rows = rng.integers(20, 100, (3, size)).astype(float)
    cost = rng.integers(20, 100, size).astype(float)
    return program(cost.tolist(), rows.tolist(), (rows.sum(axis=1) * 0.417).tolist(), [INF] * 3)


def test_whole_numbers() -> None:
    answer = minimise(KNAPSACK, Effort())
    assert answer.status is Status.OPTIMAL
    assert answer.point is not None
    assert answer.point.tolist() == [1.0, 2.0]
    assert answer.objective == 17.0
    assert answer.bound == pytest.approx(17.0)


def test_relaxed() -> None:
    answer = minimise(KNAPSACK, Effort(), relaxed=True)
    assert answer.status is Status.OPTIMAL
    assert answer.objective == answer.bound == pytest.approx(49.0 / 3.0)


def test_a_linear_program_is_solved_as_one() -> None:
    answer = minimise(program([7.0, 5.0], [[3.0, 2.0]], [7.0], [INF], whole=False), Effort())
    assert answer.objective == answer.bound == pytest.approx(49.0 / 3.0)


@pytest.mark.parametrize("relaxed", [False, True])
def test_rows_that_contradict_are_infeasible(relaxed: bool) -> None:
    answer = minimise(program([1.0, 1.0], [[1.0, 1.0], [1.0, 1.0]], [5.0, -INF], [INF, 4.0]), Effort(), relaxed)
    assert answer.status is Status.INFEASIBLE
    assert answer.point is None
    assert answer.objective == INF


def test_infeasible_only_in_whole_numbers() -> None:
    odd = program([1.0, 1.0], [[2.0, 2.0]], [3.0], [3.0])
    assert minimise(odd, Effort(), relaxed=True).status is Status.OPTIMAL
    assert minimise(odd, Effort()).status is Status.INFEASIBLE


def test_a_node_limit_ends_with_a_point_and_an_honest_bound() -> None:
    exact = minimise(market_split(), Effort())
    cut = minimise(market_split(), Effort(max_nodes=1))
    assert exact.status is Status.OPTIMAL
    assert cut.status is Status.LIMIT
    assert cut.point is not None
    assert cut.bound <= exact.objective <= cut.objective
    assert cut.bound < cut.objective


def test_a_limit_before_any_point_gives_none() -> None:
    answer = minimise(market_split(), Effort(time_limit_s=0.0))
    assert answer.status is Status.LIMIT
    assert answer.point is None
    assert answer.objective == INF


def test_the_search_stops_at_its_target() -> None:
    exact = minimise(market_split(), Effort())
    early = minimise(market_split(), Effort(target=exact.objective * 1.2))
    assert early.status is Status.OPTIMAL
    assert exact.objective <= early.objective <= exact.objective * 1.2
    assert early.bound <= exact.objective


def test_the_gap_is_kept() -> None:
    answer = minimise(market_split(), Effort(relative_gap=0.05))
    assert answer.status is Status.OPTIMAL
    assert answer.objective - answer.bound <= 0.05 * answer.objective + 1e-9


def test_same_program_same_answer() -> None:
    one, two = minimise(market_split(), Effort()), minimise(market_split(), Effort())
    assert one.point is not None
    assert two.point is not None
    assert one.point.tobytes() == two.point.tobytes()


class Lying:
    """A solver that solves, then reports something else."""

    def __init__(self, solver: Any, shift: Sequence[float], reported: float | None) -> None:
        self._solver, self._shift, self._reported = solver, np.array(shift), reported

    def __getattr__(self, name: str) -> Any:
        return getattr(self._solver, name)

    def getSolution(self) -> Any:  # noqa: N802
        solution = self._solver.getSolution()
        solution.col_value = (np.array(solution.col_value) + self._shift).tolist()
        return solution

    def getInfo(self) -> Any:  # noqa: N802
        info = self._solver.getInfo()
        if self._reported is not None:
            info.objective_function_value = self._reported
        return info


@pytest.mark.parametrize(
    ("shift", "reported", "complaint"),
    [
        ([-1.0, 0.0], 10.0, r"violates rows \[\('row', 0\)\]"),
        ([0.0, 200.0], 1017.0, "and 1 bounds"),
        ([0.0, 0.0], 12.0, "reports objective 12.0, recomputed 17.0"),
        ([1.0, 0.0], None, "recomputed 24.0"),
    ],
)
def test_a_wrong_answer_is_refused(
    monkeypatch: pytest.MonkeyPatch, shift: list[float], reported: float | None, complaint: str
) -> None:
    monkeypatch.setattr(highs, "new_solver", lambda: Lying(new_solver(), shift, reported))
    with pytest.raises(ArithmeticError, match=complaint):
        minimise(KNAPSACK, Effort())


def test_a_fraction_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(highs, "new_solver", lambda: Lying(new_solver(), [-0.6, 0.0], None))
    with pytest.raises(ArithmeticError, match="fractions"):
        minimise(KNAPSACK, Effort())


@pytest.mark.parametrize("value", [3.0, 3.0 - 0.9 * INTEGRALITY_ATOL, 3.0 + 0.9 * INTEGRALITY_ATOL])
def test_counts_are_whole(value: float) -> None:
    assert to_count(value) == 3


@pytest.mark.parametrize("value", [3.5, 3.0 + 2 * INTEGRALITY_ATOL])
def test_other_counts_are_refused(value: float) -> None:
    with pytest.raises(ArithmeticError, match="whole number"):
        to_count(value)


def test_the_solver_prints_nothing() -> None:
    code = "from planner.solve.quiet import new_solver; h = new_solver(); h.setOptionValue('output_flag', False); h.run(); print('done')"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": ""}
    )
    assert done.stdout == "done\n"
