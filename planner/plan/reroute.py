"""Where traffic goes when a pool loses its spares: one routing per pool, for the audit to check."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from planner.plan.pools import LoadedCandidate
from planner.program.data import FleetProblem
from planner.solve.outcome import Solution
from planner.solve.routing import route

Rates = Mapping[str, Mapping[str, float]]


def reroutes(problem: FleetProblem, solution: Solution, pools: Sequence[LoadedCandidate]) -> dict[str, Rates] | None:
    """Return requests/s by pool and workload, for the loss of the spares of each pool whose model has some.

    None when some loss cannot be carried.
    """
    spares = {r.model: r.spare_replicas for r in problem.rules}
    names = {candidate.name: load.name for candidate, load in pools}
    found: dict[str, Rates] = {}
    for lost, load in pools:
        model = lost.shape.model
        if spares[model]:
            left = dict(solution.replicas)
            left[lost.name] = max(0, left[lost.name] - spares[model])
            demand = {d.workload: d.requests_per_s for d in problem.demands_of(model)}
            by_pool: dict[str, dict[str, float]] = {}
            routing = route(problem, model, left, demand)
            if not routing.carries:
                return None
            for (workload, candidate), rate in routing.rates.items():
                by_pool.setdefault(names.get(candidate, candidate), {})[workload] = rate
            found[load.name] = by_pool
    return found
