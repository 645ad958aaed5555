"""The program against every fleet there is: random tiny problems with all rules, solved to optimality."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from brute_force import allowed, cheapest, fits, holds, valid
from loss_oracle import carried
from planned import ended
from random_fleets import (
    LOST_NODE_GPUS,
    random_fleet,
    seeds,
    with_failures,
    with_limits,
    with_mixes,
    with_node_losses,
    with_periods,
    with_preferences,
    with_steps,
)

from planner.program.compile import compile_model
from planner.program.constraint import all_constraints
from planner.program.data import FleetProblem
from planner.program.fleet import build
from planner.solve.fleet import SolveLimits
from planner.solve.highs import Effort, minimise
from planner.solve.outcome import Solution, Solved, Unproven

SEEDS = (*range(80), 2094, 6574)
"""The last two have models whose own least cost is on a bound of the whole: a trap for the solver's presolve."""
EXACT = SolveLimits(gap=0.0)
COST_RTOL = 1e-6
TIE_BREAK_USD = 0.01
BUDGET_SHARES = (0.7, 1.0, 1.5)


def solution_of(problem: FleetProblem) -> Solution | None:
    outcome, _ = ended(problem, EXACT)
    return outcome.solution if isinstance(outcome, Solved | Unproven) else None


def assert_agrees(problem: FleetProblem) -> float | None:
    """Compare the least cost, or that there is none; return it."""
    best, found = cheapest(problem), solution_of(problem)
    assert (best is None) == (found is None)
    if best is None or found is None:
        return None
    assert found.cost == pytest.approx(best, rel=COST_RTOL)
    assert found.bound <= best * (1.0 + COST_RTOL)
    assert_meets(problem, found)
    return best


def assert_meets(problem: FleetProblem, solution: Solution) -> None:
    """Check a solution against every rule, without its own rates and without the program."""
    for rule in problem.rules:
        assert holds(problem, rule, {c.name: solution.replicas.get(c.name, 0) for c in problem.columns_of(rule.model)})
        row = [[solution.replicas.get(c.name, 0) for c in problem.columns_of(rule.model)]]
        assert valid(problem, rule, np.array(row)).all()
    used = {c.gpu for c in problem.columns if solution.replicas.get(c.name, 0)}
    assert problem.max_gpu_types is None or len(used) <= problem.max_gpu_types
    assert allowed(problem, solution.nodes)
    assert fits(problem, solution.replicas, solution.nodes)


@pytest.mark.parametrize("seed", SEEDS)
def test_least_cost_is_that_of_brute_force(seed: int) -> None:
    assert_agrees(random_fleet(seed))


@pytest.mark.parametrize("seed", range(0, 80, 4))
def test_with_a_budget(seed: int) -> None:
    problem = random_fleet(seed)
    free = cheapest(replace(problem, objective="cost"))
    for share in BUDGET_SHARES if free else ():
        assert_agrees(replace(problem, budget_usd_per_h=share * free))


@pytest.mark.parametrize("seed", seeds(0, 24))
def test_with_limits_on_nodes(seed: int) -> None:
    assert_agrees(with_limits(random_fleet(seed), seed))


@pytest.mark.parametrize("seed", seeds(0, 20))
def test_with_preferences(seed: int) -> None:
    assert_agrees(with_preferences(random_fleet(seed), seed))


@pytest.mark.parametrize("seed", [*seeds(0, 20), 59])
def test_with_pools_of_one_mix(seed: int) -> None:
    assert_agrees(with_mixes(random_fleet(seed), seed))


def test_mixes_change_some_fleets() -> None:
    """Guards the generator."""
    both = ((random_fleet(s), with_mixes(random_fleet(s), s)) for s in (0, 13, 59))
    assert sum(cheapest(free) != cheapest(mixed) for free, mixed in both if free != mixed) >= 3


@pytest.mark.parametrize("seed", seeds(0, 30))
def test_with_spot_nodes_and_lost_zones(seed: int) -> None:
    assert_agrees(with_failures(random_fleet(seed), seed))


PERIOD_SEEDS = [s for s in seeds(0, 12) if s != 6]  # trying all of its fleets takes as long as those of all others


@pytest.mark.parametrize("seed", PERIOD_SEEDS)
def test_with_periods_and_reserved_nodes(seed: int) -> None:
    assert_agrees(with_periods(random_fleet(seed), seed))


STEP_SEEDS = [0, 1, 2, 5, 10, 12, 13, 14]  # the others take longer: they have many fleets to try


@pytest.mark.parametrize("seed", STEP_SEEDS)
def test_with_steps_of_growth_and_terms(seed: int) -> None:
    problem = with_steps(random_fleet(seed), seed)
    best = assert_agrees(problem)
    if best is not None and seed % 3 == 0:
        assert_agrees(replace(problem, objective="cost", budget_usd_per_h=1.05 * best))


@pytest.mark.parametrize("seed", seeds(0, 20))
def test_with_nodes_that_are_lost(seed: int) -> None:
    """The least cost is right, and any mix of replicas that a node can hold may be lost, not only those of one pool."""
    problem = with_node_losses(random_fleet(seed), seed)
    assert_agrees(problem)
    found = solution_of(problem)
    for rule in problem.rules if found is not None else ():
        assert found is not None
        assert_survives_mixed_nodes(problem, rule.model, found.replicas)


def assert_survives_mixed_nodes(problem: FleetProblem, model: str, replicas: Mapping[str, int]) -> None:
    own = {c.name: c for c in problem.columns_of(model) if c.node_replicas and replicas.get(c.name, 0)}
    counts = [range(min(replicas[name], c.node_replicas) + 1) for name, c in own.items()]
    for lost in product(*counts):
        taken = [n * c.node_gpus for n, c in zip(lost, own.values(), strict=True)]
        if sum(taken) <= LOST_NODE_GPUS:
            left = dict(replicas) | {name: replicas[name] - n for name, n in zip(own, lost, strict=True)}
            assert carried(problem, model, left, in_loss=True), lost


def test_failures_are_met_and_not_met() -> None:
    """Guards the generator: both answers must occur often, and failures must raise the cost of some fleets."""
    costs = [(cheapest(random_fleet(s)), cheapest(with_failures(random_fleet(s), s))) for s in range(0, 80, 4)]
    assert sum(failing is not None for _, failing in costs) >= 5
    assert any(free is not None and failing is None for free, failing in costs)
    assert any(free is not None and failing is not None and failing > free for free, failing in costs)


def test_the_problems_cover_every_rule() -> None:
    """Guards the generator: what it never draws is never tested."""
    problems = [random_fleet(seed) for seed in SEEDS]
    columns = [c for p in problems for c in p.columns]
    rules = [r for p in problems for r in p.rules]
    assert {r.spare_replicas for r in rules} == {0, 1, 2}
    assert {r.max_shapes for r in rules} == {1, 2, 9}
    assert {r.uniform_format for r in rules} == {True, False}
    assert {r.min_replicas for r in rules} == {1, 2, 3}
    assert {c.nodes_spanned for c in columns} == {1, 2}
    assert {len(c.cells) for c in columns} == {1, 2}
    assert max(c.min_replicas for c in columns) > 4
    assert {len(p.rules) for p in problems} == {1, 2}
    assert {p.max_gpu_types for p in problems} == {None, 1}
    assert any(p.gpu_limits for p in problems)
    assert any(s.committed for p in problems for s in p.stock)
    outcomes = [cheapest(p) for p in problems]
    assert 50 <= sum(cost is not None for cost in outcomes) < len(outcomes)


@pytest.mark.parametrize("seed", range(0, 80, 8))
def test_rows_that_strengthen_change_no_optimum(seed: int) -> None:
    """Rows said to follow from the others, for whole replicas, do: without them the program's optimum is the same."""
    problem = with_failures(replace(random_fleet(seed), losses=()), seed)
    all_rows = all_constraints()
    needed = tuple(c for c in all_rows if not c.strengthens)
    costs = [minimise(compile_model(build(problem, rows)), Effort()).objective for rows in (all_rows, needed)]
    assert costs[1] == pytest.approx(costs[0], rel=COST_RTOL)


@pytest.mark.parametrize("seed", range(1, 80, 8))
def test_losses_stated_for_every_pool_change_nothing_that_the_search_had_to_add(seed: int) -> None:
    """The search adds routed losses only where they bind; stating all of them from the start gives the same cost."""
    problem = random_fleet(seed)
    spares = {r.model for r in problem.rules if r.spare_replicas}
    stated = replace(problem, losses=tuple(c.name for c in problem.columns if c.model in spares))
    one, two = solution_of(problem), solution_of(stated)
    assert (one is None) == (two is None)
    if one is not None and two is not None:
        assert two.cost == pytest.approx(one.cost, rel=COST_RTOL)
