"""Minimise the whole program of a small fleet, when the search by models leaves a gap."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from planner.program.compile import compile_problem
from planner.program.data import BlockBound, FleetProblem
from planner.solve.counts import with_gpu_counts
from planner.solve.highs import Effort, Status, minimise
from planner.solve.master import Fleet
from planner.solve.spares import fragile_pools, with_losses
from planner.solve.tolerance import to_count

if TYPE_CHECKING:
    from planner.solve.fleet import SolveLimits

CUTOFF_ROOM = 1e-6  # a search looks for fleets up to this much above the best that is known


@dataclass(frozen=True)
class Found:
    """Replicas by candidate of a fleet that meets every row, and its cost, tie-breaks included."""

    replicas: Mapping[str, int]
    cost: float

    @classmethod
    def of(cls, fleet: Fleet) -> Found:
        """Return the replicas of a fleet put together from plans."""
        return cls({name: n for plan in fleet.plans for name, n in plan.replicas}, fleet.cost)


@dataclass(frozen=True)
class Whole:
    """The best fleet known (None: none), the bound (infinite: there is none), and the problem with the rows added on the way."""

    found: Found | None
    bound: float
    problem: FleetProblem


def solve_whole(
    problem: FleetProblem,
    block_bounds: tuple[BlockBound, ...],
    found: Found | None,
    bound: float,
    gap: float,
    limits: SolveLimits,
) -> Whole:
    """Minimise, and add rows about the loss of spares until the fleet survives each of them.

    Starts from the projected `spare` rows, which hold for every candidate: each round solves a relaxation, so its bound
    holds for the next. `found` and `bound` are what is known before.
    """
    problem = replace(problem, block_bounds=block_bounds)
    while True:
        program = with_gpu_counts(compile_problem(problem), problem.columns)
        cutoff = None if found is None else found.cost * (1.0 + CUTOFF_ROOM)
        target = bound / (1.0 - gap)
        effort = Effort(gap, 0.0, limits.max_nodes, limits.time_left_s, target=target, cutoff=cutoff, keeps_sums=True)
        answer = minimise(program, effort)
        if answer.status is Status.INFEASIBLE:
            return Whole(found, np.inf if found is None else max(bound, found.cost), problem)
        if answer.point is None:
            return Whole(found, max(bound, answer.bound if answer.bound < np.inf else bound), problem)
        bound = max(bound, min(answer.bound, answer.objective))
        replicas = {
            str(key): to_count(value)
            for (name, key), value in zip(program.columns, answer.point.tolist(), strict=True)
            if name == "replicas" and value > 0.5
        }
        fragile = fragile_pools(problem, replicas)
        if not fragile:
            if found is None or answer.objective < found.cost:
                found = Found(replicas, answer.objective)
            return Whole(found, min(bound, found.cost), problem)
        problem = with_losses(problem, replicas, fragile)
