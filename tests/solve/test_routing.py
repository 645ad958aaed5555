"""Traffic over a fixed fleet: the routing that is found is the best there is, and losing replicas never helps."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from brute_force import carries
from hypothesis import given, settings
from hypothesis import strategies as st
from random_fleets import random_fleet

from planner.program.data import Column, FleetProblem
from planner.program.index import row_needs
from planner.solve.merge import merged
from planner.solve.rating import AsStated
from planner.solve.routing import FULL_LOAD, most_rate, route, survives

GRID = 60
FLEETS = [seed for seed in range(40) if len(random_fleet(seed).columns_of("m")) > 1]

seeds = st.sampled_from(FLEETS)
counts = st.lists(st.integers(0, 4), min_size=4, max_size=4)


def fleet(seed: int, numbers: list[int]) -> tuple[FleetProblem, dict[str, int], dict[str, float]]:
    """Return a problem, replicas of its first model and its planned demand."""
    problem = random_fleet(seed)
    replicas = dict(zip((c.name for c in problem.columns_of("m")), numbers, strict=False))
    return problem, replicas, {d.workload: d.planned_requests_per_s for d in problem.demands_of("m")}


def load_of(columns: tuple[Column, ...], replicas: dict[str, int], rates: dict[tuple[str, str], float]) -> float:
    """Return the load of the fullest pool."""
    loads = [0.0]
    for c in columns:
        rows = [np.array(row_needs(c, s)) * rates.get((w, c.name), 0.0) for w, s in c.services.items()]
        if any(row.any() for row in rows):
            loads.append(float(sum(rows).max()) / replicas[c.name])
    return max(loads)


@given(seeds, counts)
@settings(max_examples=80, derandomize=True, deadline=None)
def test_a_routing_serves_everything_at_the_load_it_says(seed: int, numbers: list[int]) -> None:
    problem, replicas, demand = fleet(seed, numbers)
    found = route(problem, "m", replicas, demand)
    if found.load == FULL_LOAD:
        assert any(not any(w in c.services and replicas[c.name] for c in problem.columns_of("m")) for w in demand)
        return
    for workload, due in demand.items():
        assert sum(r for (w, _), r in found.rates.items() if w == workload) == pytest.approx(due)
    assert load_of(problem.columns_of("m"), replicas, dict(found.rates)) == pytest.approx(found.load)


@given(seeds, counts)
@settings(max_examples=80, derandomize=True, deadline=None)
def test_carrying_agrees_with_the_closed_form(seed: int, numbers: list[int]) -> None:
    problem, replicas, demand = fleet(seed, numbers)
    row = np.array([[replicas[c.name] for c in problem.columns_of("m")]])
    expected = carries(problem.columns_of("m"), problem.demands_of("m"), row, headroom=True)
    assert route(problem, "m", replicas, demand).carries == bool(expected[0])


@pytest.mark.parametrize("seed", FLEETS[:8])
def test_no_grid_point_beats_the_routing(seed: int) -> None:
    """Two pools, one workload after the other split over a grid: none loads the fullest pool less."""
    problem, replicas, demand = fleet(seed, [2, 3, 0, 0])
    one, two = problem.columns_of("m")[:2]
    best = route(problem, "m", replicas, demand).load
    shares = np.linspace(0.0, 1.0, GRID + 1)
    splits = [
        [s for s in shares if (s == 0.0 or w in one.services) and (s == 1.0 or w in two.services)] for w in demand
    ]
    found = FULL_LOAD
    for split in np.array(np.meshgrid(*splits)).reshape(len(demand), -1).T if all(splits) else ():
        rates = {
            (w, c.name): due * part
            for (w, due), s in zip(demand.items(), split, strict=True)
            for c, part in ((one, s), (two, 1.0 - s))
            if part
        }
        found = min(found, load_of((one, two), replicas, rates))
    assert best <= found * (1.0 + 1e-9)
    assert found == FULL_LOAD == best or found <= best * (1.0 + 4.0 / GRID)


@given(seeds, counts, st.integers(0, 3))
@settings(max_examples=60, derandomize=True, deadline=None)
def test_surviving_is_monotone(seed: int, numbers: list[int], spares: int) -> None:
    """What survives a loss survives a smaller one, and also with one replica more of anything."""
    problem, replicas, _ = fleet(seed, numbers)
    columns = problem.columns_of("m")
    lost = columns[0]
    if not survives(problem, lost, replicas, spares + 1):
        return
    assert survives(problem, lost, replicas, spares)
    for column in columns:
        assert survives(problem, lost, replicas | {column.name: replicas[column.name] + 1}, spares + 1)


@given(seeds, counts)
@settings(max_examples=60, derandomize=True, deadline=None)
def test_most_rate_is_carried_and_no_more_is(seed: int, numbers: list[int]) -> None:
    problem, replicas, demand = fleet(seed, numbers)
    workload = min(demand)
    most = most_rate(problem, "m", replicas, demand, workload)
    others = {w: r for w, r in demand.items() if w != workload}
    if most == 0.0:
        tried = demand
        assert not route(problem, "m", replicas, tried).carries
        return
    assert route(problem, "m", replicas, others | {workload: most}).carries
    assert not route(problem, "m", replicas, others | {workload: most * 1.001 + 1e-3}).carries


@given(seeds, counts, st.sampled_from([1e-15, 1e-12, 1e-9, 1e-6, 1e-3]))
@settings(max_examples=80, derandomize=True, deadline=None)
def test_a_demand_of_next_to_nothing_is_served_as_any_other(seed: int, numbers: list[int], share: float) -> None:
    problem, replicas, demand = fleet(seed, numbers)
    found = route(problem, "m", replicas, demand)
    if found.load == FULL_LOAD:
        return
    less = route(problem, "m", replicas, {w: share * rate for w, rate in demand.items()})
    assert less.load == pytest.approx(share * found.load, rel=1e-6)
    for workload, rate in demand.items():
        assert sum(r for (w, _), r in less.rates.items() if w == workload) == pytest.approx(share * rate, rel=1e-6)
    rare = min(demand)
    mixed = route(problem, "m", replicas, demand | {rare: share * demand[rare]})
    assert sum(r for (w, _), r in mixed.rates.items() if w == rare) == pytest.approx(share * demand[rare], rel=1e-6)
    assert load_of(problem.columns_of("m"), replicas, dict(mixed.rates)) == pytest.approx(mixed.load, rel=1e-6)


def test_nothing_to_serve_with_carries_nothing() -> None:
    problem, replicas, demand = fleet(FLEETS[0], [0, 0, 0, 0])
    found = route(problem, "m", replicas, demand)
    assert (found.rates, found.load, found.carries) == ({}, FULL_LOAD, False)
    assert most_rate(problem, "m", replicas, demand, min(demand)) == 0.0


def twins(problem: FleetProblem) -> FleetProblem:
    """Return the problem with two candidates of one shape: the first as it is, the other for larger pools and faster."""
    base = replace(problem.columns_of("m")[0], min_replicas=1)
    faster = replace(
        base,
        name=f"{base.name}|r4",
        min_replicas=4,
        services={w: replace(s, busy_s=0.9 * s.busy_s) for w, s in base.services.items()},
    )
    rules = tuple(replace(r, spare_replicas=0) for r in problem.rules)
    return replace(problem, columns=(base, faster), rules=rules)


def test_pools_of_one_shape_become_one() -> None:
    problem = twins(random_fleet(FLEETS[0]))
    base, faster = problem.columns
    cell = base.cells[0]
    placed = {(base.name, cell): 20, (faster.name, cell): 20}
    replicas, where = merged(problem, {base.name: 20, faster.name: 20}, placed, AsStated())
    assert replicas == {faster.name: 40}
    assert where == {(faster.name, cell): 40}


def test_a_pool_too_small_for_its_class_becomes_the_other() -> None:
    problem = twins(random_fleet(FLEETS[0]))
    problem = replace(
        problem, demands=tuple(replace(d, requests_per_s=d.requests_per_s / 100) for d in problem.demands)
    )
    base, faster = problem.columns
    cell = base.cells[0]
    replicas, _ = merged(
        problem, {base.name: 2, faster.name: 1}, {(base.name, cell): 2, (faster.name, cell): 1}, AsStated()
    )
    assert replicas == {base.name: 3}
