"""The arrays that the solver sees against the Pyomo program that is the statement of record."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest
from problems import EVERYTHING, LONG_DEMAND, MIXED, WIDE

from planner.program.compile import CompiledProgram, compile_model, compile_problem
from planner.program.data import Column, FleetProblem, Service, by_model
from planner.program.fleet import build, build_block
from planner.program.index import CAPACITY_ROWS

SEEDS = range(12)
RTOL = 1e-9
MAY_BE_DROPPED = {*CAPACITY_ROWS, "spare_capacity"}

Name = tuple[str, Any]
Sides = tuple[float, float]


def shaken(problem: FleetProblem, rng: np.random.Generator) -> FleetProblem:
    """Return the problem with other services, so that other capacity rows are the tight ones."""

    def service(s: Service) -> Service:
        a, b, c, d, e = rng.lognormal(0.0, 1.0, 5)
        return Service(s.busy_s * a, s.residence_s * b, s.kv_bytes * c, s.streamed_bytes * d, s.flops * e)

    def column(c: Column) -> Column:
        return replace(c, services={w: service(s) for w, s in c.services.items()})

    return replace(problem, columns=tuple(column(c) for c in problem.columns))


def set_point(model: Any, program: CompiledProgram, point: np.ndarray) -> None:
    for (name, key), value in zip(program.columns, point, strict=True):
        model.component(name)[key].set_value(float(value), skip_validation=True)


def pyomo_slacks(model: Any) -> Iterator[tuple[Name, Sides]]:
    """Yield every row of the Pyomo program with how far it is above its lower and below its upper bound."""
    for row in model.component_data_objects(pyo.Constraint, active=True):
        body = pyo.value(row.body)
        low = body - pyo.value(row.lower) if row.lower is not None else math.inf
        high = pyo.value(row.upper) - body if row.upper is not None else math.inf
        yield (row.parent_component().local_name, row.index()), (low, high)


def slacks(model: Any, program: CompiledProgram, point: np.ndarray) -> tuple[dict[Name, Sides], dict[Name, Sides]]:
    """Return how far every row is above its lower and below its upper bound at a point: in Pyomo, and in the arrays."""
    set_point(model, program, point)
    activity = program.matrix @ point
    sides = zip(activity - program.row_lower, program.row_upper - activity, strict=True)
    return dict(pyomo_slacks(model)), dict(zip(program.rows, sides, strict=True))


@pytest.mark.parametrize("seed", SEEDS)
def test_arrays_equal_the_pyomo_rows_at_random_points(seed: int) -> None:
    """Rows may be multiplied by a positive constant each, which the first point shows and the second confirms."""
    rng = np.random.default_rng(seed)
    model = build(shaken(EVERYTHING, rng))
    program = compile_model(model)
    stated, arrays = slacks(model, program, rng.uniform(0.0, 9.0, len(program.columns)))
    scale = {
        name: max(map(abs, filter(math.isfinite, arrays[name]))) / max(map(abs, filter(math.isfinite, stated[name])))
        for name in arrays
    }
    point = rng.uniform(0.0, 9.0, len(program.columns))
    stated, arrays = slacks(model, program, point)
    for name, sides in arrays.items():
        assert scale[name] > 0.0
        assert sides == pytest.approx([scale[name] * side for side in stated[name]], rel=RTOL, abs=RTOL)
    assert {name for name, _ in stated.keys() - arrays.keys()} <= MAY_BE_DROPPED
    assert program.cost @ point == pytest.approx(pyo.value(model.objective), rel=RTOL)


@pytest.mark.parametrize("seed", SEEDS)
def test_dropped_rows_are_implied_by_those_that_are_kept(seed: int) -> None:
    rng = np.random.default_rng(100 + seed)
    model = build(shaken(EVERYTHING, rng))
    program = compile_model(model)
    set_point(model, program, least_point(program, rng))
    dropped = {name: high for name, (_, high) in pyomo_slacks(model) if name not in set(program.rows)}
    assert dropped
    assert min(dropped.values()) >= -RTOL


def least_point(program: CompiledProgram, rng: np.random.Generator) -> np.ndarray:
    """Return random rates with the fewest replicas at which the capacity rows that were kept hold."""
    rates = np.array(
        [rng.exponential(5.0) * (rng.random() < 0.7) if n.endswith("rate") else 0.0 for n, _ in program.columns]
    )
    replicas = {key: 0.0 for name, key in program.columns if name == "replicas"}
    for row, (name, key) in zip(program.matrix.toarray(), program.rows, strict=True):
        if name in MAY_BE_DROPPED:
            candidate = key[1] if name == "spare_capacity" else key
            capacity = -row[program.columns.index(("replicas", candidate))]
            replicas[candidate] = max(replicas[candidate], row @ rates / capacity)
    return np.array(
        [
            replicas[key] if name == "replicas" else rate
            for (name, key), rate in zip(program.columns, rates, strict=True)
        ]
    )


def test_variables_keep_their_bounds_and_kinds() -> None:
    model = build(EVERYTHING)
    program = compile_model(model)
    for (name, key), lower, upper, whole in zip(
        program.columns, program.lower, program.upper, program.is_integer, strict=True
    ):
        variable = model.component(name)[key]
        assert lower == (-math.inf if variable.lb is None else variable.lb)
        assert upper == (math.inf if variable.ub is None else variable.ub)
        assert whole == (name not in ("rate", "reach", "lost", "spare_rate"))


def test_of_equal_rows_one_stays() -> None:
    twin = Service(busy_s=2.0, residence_s=2.0 * WIDE.batch_slots, kv_bytes=0.0, streamed_bytes=0.0, flops=0.0)
    column = replace(WIDE, services={"ask": twin})
    problem = replace(EVERYTHING, columns=tuple(column if c is WIDE else c for c in EVERYTHING.columns))
    kept = [name for name, key in compile_problem(problem).rows if key == "wide" and name in CAPACITY_ROWS]
    assert len(kept) == 1


def test_a_block_holds_one_model_and_none_of_the_supply() -> None:
    block = compile_model(build_block(by_model(EVERYTHING)["chat"]))
    whole = compile_problem(EVERYTHING)
    assert {name for name, _ in block.columns} & {"nodes", "type_used"} == set()
    assert {key for name, key in block.columns if name == "replicas"} == {"pooled", "small", "wide"}
    assert {name for name, _ in block.rows} <= {name for name, _ in whole.rows}
    cost = dict(zip(block.columns, block.cost, strict=True))
    assert [cost["replicas", c] for c in ("pooled", "small", "wide")] == [1.0, 1.0, 1.0]


def test_compiling_twice_gives_the_same_arrays() -> None:
    one, two = compile_problem(EVERYTHING), compile_problem(EVERYTHING)
    assert one.columns == two.columns
    assert one.rows == two.rows
    assert (one.matrix != two.matrix).nnz == 0
    assert one.cost.tobytes() == two.cost.tobytes()


def test_rates_of_small_demands_are_in_units_of_their_own() -> None:
    """So that what a row lets slip is a small share of any demand, and that no coefficient is nearly zero."""
    rare = replace(MIXED, demands=(MIXED.demands[0], replace(MIXED.demands[1], requests_per_s=1e-12), LONG_DEMAND))
    program = compile_problem(rare)
    row = program.rows.index(("demand", "batch"))
    served = dict(zip(program.columns, program.matrix[[row]].toarray().ravel().tolist(), strict=True))

    assert 0.5 <= program.row_lower[row] <= 2.0
    assert all(1e-3 <= share <= 1.0 for share in served.values() if share)
    plain = compile_problem(MIXED)
    assert program.columns == plain.columns
    asked = program.rows.index(("demand", "ask")), plain.rows.index(("demand", "ask"))
    assert program.row_lower[asked[0]] == plain.row_lower[asked[1]]
