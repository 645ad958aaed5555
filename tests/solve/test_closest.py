"""The fleet of fewest changes against every fleet there is, on random tiny problems with all rules."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from brute_force import fits, holds, most_replicas, node_choices, valid
from random_fleets import random_fleet
from test_brute_force import EXACT, assert_meets, solution_of

from planner.program.data import FleetProblem, Kept, KeptPool, node_cost, penalties
from planner.solve.closest import Closest, closest
from planner.solve.outcome import Infeasible, Solution
from planner.solve.rating import AsStated

SEEDS = range(40)
MOST_CHOICES = 20_000  # fleets of more are left out: every one is tried
GROWTH = 1.4
ROOMS = (0.0, 0.1, 0.5)


def running(problem: FleetProblem, solution: Solution, room: float, best: float) -> FleetProblem:
    """Return the problem of changing little of a solution, within a share above the best cost."""
    shapes = sorted({(c.model, c.shape, c.cells) for c in problem.columns if solution.replicas.get(c.name, 0)})
    pools = []
    for key in shapes:
        names = tuple(c.name for c in problem.columns if (c.model, c.shape, c.cells) == key)
        pools.append(KeptPool("/".join((*key[:2], *key[2])), names, sum(solution.replicas.get(n, 0) for n in names)))
    models = frozenset(key[0] for key in shapes)
    most = best * (1.0 + room) + 1e-6
    return replace(problem, kept=Kept(tuple(pools), dict(solution.nodes), models, max(best, 1.0), most))


def choices(problem: FleetProblem) -> list[list[dict[str, int]]] | None:
    """Return every choice of replicas of each model that carries its demand, None where there are too many to try."""
    found = []
    for rule in problem.rules:
        columns = problem.columns_of(rule.model)
        kept = {n: p.replicas for p in problem.kept.pools for n in p.columns} if problem.kept else {}
        most = [max(most_replicas(problem, rule, c), kept.get(c.name, 0)) for c in columns]
        if np.prod([n + 1 for n in most]) > MOST_CHOICES:
            return None
        counts = np.array(list(product(*(range(n + 1) for n in most))), dtype=int)
        named = [dict(zip((c.name for c in columns), row, strict=True)) for row in counts.tolist()]
        fine = valid(problem, rule, counts).tolist()
        found.append(
            [each for each, is_fine in zip(named, fine, strict=True) if is_fine and holds(problem, rule, each)]
        )
    return found


def changes(kept: Kept, replicas: dict[str, int], nodes: dict[str, int]) -> int:
    """Count what comes and goes, read off the two fleets."""
    known = {name for pool in kept.pools for name in pool.columns}
    pools = sum(abs(sum(replicas[n] for n in p.columns) - p.replicas) for p in kept.pools)
    offers = sum(abs(nodes.get(o, 0) - kept.nodes.get(o, 0)) for o in nodes.keys() | kept.nodes.keys())
    return pools + offers + sum(n for name, n in replicas.items() if name not in known)


def fleets(problem: FleetProblem) -> Iterator[tuple[int, dict[str, int], dict[str, int]]] | None:
    """Yield every fleet within the cost allowed, the fewest changes first; whether it packs is not checked."""
    by_model = choices(problem)
    kept = problem.kept
    assert kept is not None
    assert kept.most is not None
    if by_model is None or np.prod([len(each) for each in by_model]) > MOST_CHOICES:
        return None
    whole = [{k: v for part in parts for k, v in part.items()} for parts in product(*by_model)]
    gpus = {c.name: c.gpu for c in problem.columns}
    whole = [
        each
        for each in whole
        if problem.max_gpu_types is None or len({gpus[n] for n, k in each.items() if k}) <= problem.max_gpu_types
    ]
    most = max((sum(each.values()) for each in whole), default=0)
    bought = [dict(nodes) for cost, nodes in node_choices(problem, most) if cost <= kept.most]
    if len(whole) * len(bought) > 10 * MOST_CHOICES:
        return None
    pairs = [
        (changes(kept, replicas, nodes), replicas, nodes)
        for replicas in whole
        for nodes in bought
        if sum(node_cost(problem, o) * nodes[o.name] for o in problem.offers) + penalties(problem, replicas)
        <= kept.most
    ]
    return iter(sorted(pairs, key=lambda each: each[0]))


@pytest.mark.parametrize("seed", SEEDS)
def test_no_fleet_changes_less(seed: int) -> None:
    today = random_fleet(seed)
    before = solution_of(today)
    grown = replace(today, demands=tuple(replace(d, requests_per_s=GROWTH * d.requests_per_s) for d in today.demands))
    best = solution_of(grown)
    if before is None or best is None:
        pytest.skip("one of the two has no fleet")
    for room in ROOMS:
        problem = running(grown, before, room, best.cost)
        found, every = closest(problem, best.bound, EXACT, AsStated()), fleets(problem)
        assert isinstance(found, Closest)
        assert_meets(grown, found.solution)
        assert found.solution.cost <= best.cost * (1.0 + room) + 1e-5
        if every is None:
            continue
        fewest = next(count for count, replicas, nodes in every if fits(problem, replicas, nodes))
        assert (found.changes, found.is_fewest) == (fewest, True)


@pytest.mark.parametrize("seed", [0, 1, 2, 3])
def test_what_still_holds_needs_no_change(seed: int) -> None:
    problem = random_fleet(seed)
    before = solution_of(problem)
    if before is None:
        pytest.skip("there is no fleet")
    kept = running(problem, before, 0.0, before.cost)
    found = closest(kept, before.bound, EXACT, AsStated())

    assert isinstance(found, Closest)
    assert (found.changes, found.solution.nodes) == (0, before.nodes)
    assert isinstance(closest(kept, before.bound, EXACT, AsStated(), fewer_than=0), Infeasible)
