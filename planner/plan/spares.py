"""How many replicas of each pool may fail while its model still carries its demand within every limit."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from planner.candidates.types import CandidateTable
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
    asked, replicas = spares_by_candidate(problem), solution.replicas
    found: dict[str, int] = {}
    for model, own in pools_by_model(pools).items():
        for candidate, _ in own:
            column, size = problem.column(candidate.name), replicas[candidate.name]
            spares = min(asked[candidate.name], size)
            while spares < size:
                if not route_without(problem, column, replicas, spares + 1, route_at_mix).carries:
                    routing = route_without(problem, column, replicas, spares + 1, route_freely)
                    left = _left(own, candidate.name, spares + 1, routing)
                    if not routing.carries or any(missed(table.models[model], table.workloads, left, constants)):
                        break
                spares += 1
            found[candidate.name] = spares
    return found


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
