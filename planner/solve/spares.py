"""Make sure that a fleet survives the loss of spares: find what it does not survive, and state rows that cut it off."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from planner.program.data import Column, CoverWeights, FleetProblem
from planner.solve.routing import route_without, survives

WEIGHT_DIGITS = 3


def fragile_pools(problem: FleetProblem, replicas: Mapping[str, int]) -> list[Column]:
    """List the pools whose loss of spares the fleet does not survive although no routed row states it yet."""
    spares = {r.model: r.spare_replicas for r in problem.rules}
    return [
        c
        for c in problem.columns
        if replicas.get(c.name, 0) > 0
        and spares[c.model] > 0
        and c.name not in problem.losses
        and not survives(problem, c, replicas, spares[c.model])
    ]


def with_losses(problem: FleetProblem, replicas: Mapping[str, int], fragile: Sequence[Column]) -> FleetProblem:
    """Add rows that the losses of spares of `fragile` pools violate.

    First the weights of the failed routing: as cover weights they cut off this fleet for the loss of any pool. Where the
    rows have them already, a routing of its own is stated for the loss.
    """
    spares = {r.model: r.spare_replicas for r in problem.rules}
    weights, losses = list(problem.cover_weights), set(problem.losses)
    for pool in fragile:
        found = CoverWeights(pool.model, _normal(route_without(problem, pool, replicas, spares[pool.model]).weights))
        if len(found.weights) > 1 and found not in weights:
            weights.append(found)
        else:
            losses.add(pool.name)
    return replace(problem, cover_weights=tuple(weights), losses=tuple(sorted(losses)))


def _normal(weights: Mapping[str, float]) -> dict[str, float]:
    """Scale weights to a largest of 1 and round them, so that the same weights are recognised again."""
    largest = max(weights.values(), default=1.0)
    scaled = {w: round(value / largest, WEIGHT_DIGITS) for w, value in sorted(weights.items())}
    return {w: value for w, value in scaled.items() if value > 0.0}
