"""Models of a fleet that other workers price: all that travels pickles, and the answer is the same."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence

import pytest
from random_fleets import random_fleet

from planner import parallel
from planner.parallel import Item, Result, alone, elsewhere
from planner.solve import threads
from planner.solve.rating import AsStated
from planner.solve.search import Aim, Search


class Far:
    """Workers that see nothing but what travels to them."""

    def __init__(self) -> None:
        self.items = 0

    def in_order(self, function: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
        self.items += len(items)
        there = [pickle.loads(pickle.dumps((function, item))) for item in items]
        return [pickle.loads(pickle.dumps(own(item))) for own, item in there]


@pytest.mark.parametrize("seed", [1, 7, 23])
def test_the_answer_is_the_same(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def found() -> tuple[object, ...]:
        search = Search.of(random_fleet(seed), AsStated())
        search.run(Aim(1e-3))
        return search.bound, search.unserved, search.best and (search.best.cost, search.best.replicas)

    here, far = found(), Far()
    monkeypatch.setattr(threads, "LEAST_MODELS_SHARED_OUT", 1)
    monkeypatch.setattr(parallel.by_others, "__defaults__", (1,))
    with elsewhere(far):
        assert found() == here
        with alone():
            asked = far.items
            assert found() == here
            assert far.items == asked
    assert far.items > 0
