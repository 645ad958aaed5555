"""Where traffic goes when a pool loses its spares, or a zone is lost: one routing for each, for the audit to check."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from planner.plan.pools import LoadedCandidate
from planner.program.data import FleetProblem, spares_by_candidate
from planner.solve.outcome import Solution
from planner.solve.routing import Routing, route_outage, route_without

Rates = Mapping[str, Mapping[str, float]]


def reroutes(problem: FleetProblem, solution: Solution, pools: Sequence[LoadedCandidate]) -> dict[str, Rates] | None:
    """Return requests/s by pool and workload, for the loss of the spares of each pool whose model has some, and of zones.

    Keys are pools, and `outage_key` for zones that hold some of a model. None when some loss cannot be carried.
    """
    spares = spares_by_candidate(problem)
    columns = {c.name: c for c in problem.columns}
    names = {candidate.name: load.name for candidate, load in pools}
    routings: dict[str, Routing] = {}
    for lost, load in pools:
        if spares[lost.name]:
            routings[load.name] = route_without(problem, columns[lost.name], solution.replicas, spares[lost.name])
    used = {(c.shape.model, c.domain.zone) for c, _ in pools}
    for outage in problem.outages:
        if (outage.model, outage.zone) in used:
            routings[outage_key(outage.model, outage.zone)] = route_outage(problem, outage, solution.replicas)
    if not all(routing.carries for routing in routings.values()):
        return None
    return {key: _by_pool(routing, names) for key, routing in routings.items()}


def outage_key(model: str, zone: str) -> str:
    """Return the key of the loss of a zone: no pool has such a name."""
    return f"{model}@{zone}"


def _by_pool(routing: Routing, names: Mapping[str, str]) -> Rates:
    by_pool: dict[str, dict[str, float]] = {}
    for (workload, candidate), rate in routing.rates.items():
        by_pool.setdefault(names.get(candidate, candidate), {})[workload] = rate
    return by_pool
