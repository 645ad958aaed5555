"""Make sure that a fleet survives its losses: find what it does not survive, and state rows that cut it off."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from planner.program.data import Column, CoverWeights, FleetProblem, Outage, spares_by_candidate
from planner.solve.routing import Routing, route_outage, route_without, survives

WEIGHT_DIGITS = 3
Failure = Column | Outage
"""The loss of the spares of a pool, or of a zone."""


def fragile_pools(problem: FleetProblem, replicas: Mapping[str, int]) -> list[Failure]:
    """List the losses of spares and of zones that the fleet does not survive although no routed row states them yet."""
    spares = spares_by_candidate(problem)
    pools = [
        c
        for c in problem.columns
        if replicas.get(c.name, 0) > 0
        and spares[c.name] > 0
        and c.name not in problem.losses
        and not survives(problem, c, replicas, spares[c.name])
    ]
    zones = [
        o for o in problem.outages if o not in problem.routed_outages and not route_outage(problem, o, replicas).carries
    ]
    return [*pools, *zones]


def outlasts(problem: FleetProblem, replicas: Mapping[str, int]) -> bool:
    """Tell whether the fleet survives every loss that it is to survive, stated by routed rows or not."""
    return not fragile_pools(replace(problem, losses=(), routed_outages=()), replicas)


def with_losses(problem: FleetProblem, replicas: Mapping[str, int], fragile: Sequence[Failure]) -> FleetProblem:
    """Add rows that the losses `fragile` violate.

    First the weights of the failed routing: as cover weights they cut off this fleet for the loss of anything. Where the
    rows have them already, a routing of its own is stated for the loss.
    """
    spares = spares_by_candidate(problem)
    weights, losses, outages = list(problem.cover_weights), set(problem.losses), list(problem.routed_outages)
    for failure in fragile:
        found = CoverWeights(failure.model, _normal(_failed(problem, failure, replicas, spares).weights))
        if len(found.weights) > 1 and found not in weights:
            weights.append(found)
        elif isinstance(failure, Outage):
            outages.append(failure)
        else:
            losses.add(failure.name)
    return replace(problem, cover_weights=tuple(weights), losses=tuple(sorted(losses)), routed_outages=tuple(outages))


def loss_rows(problem: FleetProblem) -> tuple[object, ...]:
    """Return what is stated of losses besides the rows that every problem has."""
    return problem.cover_weights, problem.losses, problem.routed_outages


def _failed(problem: FleetProblem, failure: Failure, replicas: Mapping[str, int], spares: Mapping[str, int]) -> Routing:
    if isinstance(failure, Outage):
        return route_outage(problem, failure, replicas)
    return route_without(problem, failure, replicas, spares[failure.name])


def _normal(weights: Mapping[str, float]) -> dict[str, float]:
    """Scale weights to a largest of 1 and round them, so that the same weights are recognised again."""
    largest = max(weights.values(), default=1.0)
    scaled = {w: round(value / largest, WEIGHT_DIGITS) for w, value in sorted(weights.items())}
    return {w: value for w, value in scaled.items() if value > 0.0}
