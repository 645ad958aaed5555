"""How many replicas of each pool may fail while its model still carries its demand within every limit."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from planner.candidates.types import CandidateTable
from planner.parallel import LEAST_MODELS_SHARED_OUT, in_order
from planner.physics.constants import SpeedConstants
from planner.plan.assess import PoolLoad, missed
from planner.plan.pools import LoadedCandidate, pools_by_model
from planner.program.data import FleetProblem, spares_by_candidate
from planner.solve.outcome import Solution
from planner.solve.routing import Routing, route_at_mix, route_freely, route_without


def spares_of(
    table: CandidateTable,
    problem: FleetProblem,
    solution: Solution,
    pools: Sequence[LoadedCandidate],
    constants: SpeedConstants,
) -> dict[str, int]:
    """Count, by candidate, the replicas that its pool may lose at once, headroom of the demand not counted.

    What the spec asks for is known to hold. Beyond that traffic keeps the mixes that pools are rated for, or takes any mix in
    which every pool turns out to keep its limits.
    """
    asked = spares_by_candidate(problem)

    def of_model(own: Sequence[LoadedCandidate]) -> dict[str, int]:
        return {candidate.name: most(candidate.name, load.replicas, own) for candidate, load in own}

    def most(name: str, replicas: int, own: Sequence[LoadedCandidate]) -> int:
        column = problem.column(name)

        def holds(spares: int) -> bool:
            lost = partial(route_without, problem, column, solution.replicas, spares)
            if lost(route_at_mix).carries:
                return True
            routing = lost(route_freely)
            left = _left(own, name, spares, routing)
            return routing.carries and not any(missed(table.models[column.model], table.workloads, left, constants))

        return _most(holds, min(asked[name], replicas), replicas)

    models = list(pools_by_model(pools).values())
    found = in_order(of_model, models, least_items=LEAST_MODELS_SHARED_OUT)
    return {name: count for each in found for name, count in each.items()}


def _most(holds: Callable[[int], bool], known: int, limit: int) -> int:
    """Return the largest number up to `limit` that holds, where `known` does and what holds of a number does of smaller ones."""
    step = 1
    while known + step <= limit and holds(known + step):
        known, step = known + step, 2 * step
    while step > 1:
        step //= 2
        if known + step <= limit and holds(known + step):
            known += step
    return known


def _left(own: Sequence[LoadedCandidate], lost: str, spares: int, routing: Routing) -> list[PoolLoad]:
    """Return the pools of a model that serve something when one of them has lost replicas."""
    rates: dict[str, dict[str, float]] = defaultdict(dict)
    for (workload, name), rate in routing.rates.items():
        rates[name][workload] = rate
    return [
        replace(load, replicas=load.replicas - (spares if c.name == lost else 0), rates=rates[c.name])
        for c, load in own
        if rates[c.name]
    ]
