"""Solve every model alone: a bound for the whole, and a fleet to start from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from planner.program.compile import CompiledProgram, compile_model
from planner.program.data import BlockBound, FleetProblem
from planner.program.fleet import build_block
from planner.program.index import ProgramIndex
from planner.solve.highs import Answer, Effort, minimise
from planner.solve.spares import fragile_pools, with_losses
from planner.solve.tolerance import to_count

BLOCK_GAP = 1e-3
MOST_LOSS_ROUNDS = 6  # what a block does not settle by then is left to the whole program
SAFE_SHARE = 1.0 - 1e-5  # bounds are used this much below what the solver proves: nearer, its presolve sees conflicts


@dataclass(frozen=True)
class Blocks:
    """Bounds of the models alone, the replicas by candidate that reach them, and the problem with the rows found there.

    `infeasible` names models that no number of replicas serves.
    """

    problem: FleetProblem
    bounds: tuple[BlockBound, ...]
    replicas: Mapping[str, int]
    infeasible: tuple[str, ...]


def solve_blocks(problem: FleetProblem) -> Blocks:
    """Solve each model alone at the lowest price per GPU of nodes that hold its replicas, other models left out."""
    index = ProgramIndex(problem)
    prices = {c.name: index.price_of(c) for c in problem.columns}
    bounds: list[BlockBound] = []
    replicas: dict[str, int] = {}
    infeasible: list[str] = []
    for rule in problem.rules:
        own = {c.name: prices[c.name] for c in problem.columns_of(rule.model)}
        problem, found, bound = _solve_block(problem, rule.model, own)
        if found is None:
            infeasible.append(rule.model)
        else:
            replicas.update(found)
        bounds.append(BlockBound(rule.model, own, bound * SAFE_SHARE))
    return Blocks(problem, tuple(bounds), replicas, tuple(infeasible))


def _solve_block(
    problem: FleetProblem, model: str, prices: Mapping[str, float]
) -> tuple[FleetProblem, dict[str, int] | None, float]:
    """Return the problem with what was found about losses of spares, replicas (None if there are none) and the bound."""
    for _ in range(MOST_LOSS_ROUNDS):
        block = compile_model(build_block(problem, model, prices))
        answer = minimise(block, Effort(relative_gap=BLOCK_GAP, heuristics=False))
        if answer.point is None:
            return problem, None, 0.0
        replicas = _replicas(block, answer)
        fragile = fragile_pools(problem, replicas)
        stronger = with_losses(problem, replicas, fragile)
        if stronger.cover_weights == problem.cover_weights:
            break
        problem = replace(stronger, losses=problem.losses)
    return problem, replicas, answer.bound


def _replicas(block: CompiledProgram, answer: Answer) -> dict[str, int]:
    assert answer.point is not None
    values = zip(block.columns, answer.point.tolist(), strict=True)
    return {str(key): to_count(value) for (name, key), value in values if name == "replicas"}


def with_replicas(program: CompiledProgram, replicas: Mapping[str, int]) -> CompiledProgram:
    """Return the program with the replicas of the candidates in `replicas` fixed to those counts."""
    fixed = np.array([name == "replicas" and key in replicas for name, key in program.columns])
    values = np.array([float(replicas.get(str(key), 0)) for _, key in program.columns])
    return replace(
        program,
        lower=np.where(fixed, values, program.lower),
        upper=np.where(fixed, values, program.upper),
    )
