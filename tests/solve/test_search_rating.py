"""The search by models while pools turn out to bear less than they were rated for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from brute_force import cheapest
from random_fleets import random_fleet, seeds

from planner.program.data import Column, FleetProblem
from planner.program.fleet import TIE_BREAK_USD_PER_GPU_H
from planner.solve.fleet import SolveLimits, solve
from planner.solve.merge import merged_alone
from planner.solve.outcome import Solved
from planner.solve.rating import AsStated
from planner.solve.search import Aim, Search

GAP = 1e-3
RTOL = 1e-5
TIE_BREAKS_USD = 100 * TIE_BREAK_USD_PER_GPU_H
SLOWDOWN = 1.5


class Overrated:
    """Pools of some candidates bear less than they are rated for, which is found out when they are used."""

    def __init__(self, problem: FleetProblem) -> None:
        self._rated = {c.name: c.services for c in problem.columns[::2]}

    def _found_out(self, problem: FleetProblem, replicas: Mapping[str, int]) -> set[str]:
        columns = {c.name: c for c in problem.columns}
        return {name for name in replicas if name in self._rated and columns[name].services == self._rated[name]}

    def holds(self, problem: FleetProblem, replicas: Mapping[str, int]) -> bool:
        return not self._found_out(problem, replicas)

    def lowered(self, problem: FleetProblem, replicas: Mapping[str, int]) -> FleetProblem | None:
        found = self._found_out(problem, replicas)
        if not found:
            return None
        return replace(problem, columns=tuple(_slower(c) if c.name in found else c for c in problem.columns))


def _slower(column: Column) -> Column:
    services = {w: replace(s, busy_s=s.busy_s * SLOWDOWN) for w, s in column.services.items()}
    return replace(column, services=services)


@pytest.mark.parametrize("seed", seeds(400, 20))
def test_a_fleet_that_holds_is_the_cheapest_at_the_ratings_found(seed: int) -> None:
    problem = random_fleet(seed)
    rating = Overrated(problem)
    search = Search.of(problem, rating)
    search.run(Aim(GAP))
    optimum = cheapest(search.problem)
    if search.best is None:
        assert optimum is None
        return
    assert optimum is not None
    for plan in search.best.plans:
        block = search.blocks[plan.model]
        assert block.carries(plan)
        assert rating.holds(block.problem, merged_alone(block.problem, dict(plan.replicas), rating)[0])
    assert search.bound <= optimum * (1.0 + RTOL) + TIE_BREAKS_USD
    assert optimum * (1.0 - RTOL) <= search.best.cost <= optimum * (1.0 + GAP + RTOL) + TIE_BREAKS_USD


@pytest.mark.parametrize("seed", seeds(400, 20))
def test_the_first_bound_holds_before_anything_was_found_out(seed: int) -> None:
    problem = random_fleet(seed)
    answered = solve(problem, SolveLimits(GAP), Overrated(problem))
    optimum = cheapest(problem)
    if isinstance(answered.outcome, Solved):
        assert optimum is not None
        assert answered.first_bound <= optimum * (1.0 + RTOL) + TIE_BREAKS_USD
        assert optimum * (1.0 - RTOL) <= answered.outcome.solution.cost


@pytest.mark.parametrize("seed", seeds(0, 20))
def test_a_model_that_no_nodes_hold_is_named_only_if_there_is_no_fleet(seed: int) -> None:
    problem = random_fleet(seed)
    scarce = replace(problem, gpu_limits={o.gpu: 2 for o in problem.offers}, max_gpu_types=None)
    search = Search.of(scarce, AsStated())
    search.run(Aim(GAP), branches=0)
    if search.unserved:
        assert cheapest(scarce) is None
