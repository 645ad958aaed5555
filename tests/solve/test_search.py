"""The search by models alone against the optimum: its bound never exceeds it, and it closes the gap without the whole."""

from __future__ import annotations

import pytest
from brute_force import cheapest
from random_fleets import random_fleet, seeds

from planner.program.fleet import TIE_BREAK_USD_PER_GPU_H
from planner.solve.rating import AsStated
from planner.solve.search import Aim, Search

GAP = 1e-3
RTOL = 1e-5
TIE_BREAKS_USD = 100 * TIE_BREAK_USD_PER_GPU_H


@pytest.mark.parametrize("seed", seeds(200, 100))
def test_the_bound_and_the_fleet_enclose_the_optimum(seed: int) -> None:
    problem = random_fleet(seed)
    optimum = cheapest(problem)
    search = Search.of(problem, AsStated())
    search.run(Aim(GAP))
    if optimum is None:
        assert search.best is None
        return
    assert not search.unserved
    assert search.best is not None
    assert search.bound <= optimum * (1.0 + RTOL) + TIE_BREAKS_USD
    assert optimum * (1.0 - RTOL) <= search.best.cost <= optimum * (1.0 + GAP + RTOL) + TIE_BREAKS_USD
