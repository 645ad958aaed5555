"""Plan a few models anew, with all their candidates, while the others choose among the plans that are known."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from planner.program.data import FleetProblem
from planner.program.supply import Needs, Size
from planner.solve.highs import Effort
from planner.solve.master import Fleet, Supply, whole_master
from planner.solve.pricing import Block, BlockPlan


def replanned(
    problem: FleetProblem,
    needs: Needs,
    blocks: Sequence[Block],
    plans: Sequence[BlockPlan],
    names: Collection[str],
    caps: Mapping[Size, float],
    effort: Effort,
) -> Fleet | None:
    """Choose replicas of the models of `blocks` freely, a plan for every other model from `plans`, and nodes for all.

    Only the candidates in `names` are considered: the answer is a fleet, but no bound. None: nothing was found.
    """
    alone = [
        replace(
            b.problem,
            columns=tuple(c for c in b.columns if c.name in names),
            losses=tuple(name for name in b.problem.losses if name in names),
        )
        for b in blocks
    ]
    fleet = whole_master(Supply(problem, needs, alone), plans, caps, effort)
    if fleet is None:
        return None
    anew = [b.plan_of({c.name: fleet.replicas.get(c.name, 0) for c in b.columns}) for b in blocks]
    return replace(fleet, plans=(*fleet.plans, *anew), replicas={})
