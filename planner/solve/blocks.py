"""Solve every model alone: a bound for the whole, and a fleet to start from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from planner.program.compile import CompiledProgram, compile_model
from planner.program.data import BlockBound, FleetProblem
from planner.program.fleet import build_block
from planner.program.index import ProgramIndex
from planner.solve.highs import Answer, Effort, Status, minimise
from planner.solve.tolerance import to_count

BLOCK_GAP = 1e-3
SAFE_SHARE = 1.0 - 1e-7  # bounds are used this much below what the solver proves, for its own tolerances


@dataclass(frozen=True)
class Blocks:
    """Bounds of the models alone, and the replicas by candidate that reach them. `infeasible` names models without any."""

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
        block = compile_model(build_block(problem, rule.model, own))
        answer = minimise(block, Effort(relative_gap=BLOCK_GAP, heuristics=False))
        if answer.status is Status.INFEASIBLE or answer.point is None:
            infeasible.append(rule.model)
            continue
        bounds.append(BlockBound(rule.model, own, answer.bound * SAFE_SHARE))
        replicas.update(_replicas(block, answer))
    return Blocks(tuple(bounds), replicas, tuple(infeasible))


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
