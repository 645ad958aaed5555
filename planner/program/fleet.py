"""The program of record in Pyomo: variables, the named constraints, the objective."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyomo.environ as pyo

from planner.program.capacity import flow_key
from planner.program.constraint import Constraint, all_constraints
from planner.program.data import FleetProblem, Kept, node_cost
from planner.program.index import Loss, ProgramIndex

TIE_BREAK_USD_PER_GPU_H = 1e-6  # equal cost prefers fewer GPUs; far below any price and any gap
TIE_BREAK_PER_RANK = 1e-9  # then the offer that sorts first
COST_IN_CHANGES = 0.5  # a whole fleet weighs less than one change, so that among equally few changes the cheapest count
SETTINGS_IN_CHANGES = 0.1  # so do the settings of all replicas


def build(problem: FleetProblem, constraints: tuple[Constraint, ...] | None = None) -> Any:
    """State the program of a fleet problem as a Pyomo model, with every constraint or only the given ones."""
    index = ProgramIndex(problem)
    model = pyo.ConcreteModel(name="fleet")
    _add_variables(model, index)
    for constraint in constraints if constraints is not None else all_constraints():
        _add_rows(model, index, constraint)
    goal = objective(model, problem) if problem.kept is None else changes(model, index, problem.kept)
    model.objective = pyo.Objective(expr=goal, sense=pyo.minimize)
    return model


def build_block(alone: FleetProblem) -> Any:
    """State the part of the program that is about models alone: nothing about nodes and supply, and no price.

    At any prices per replica its optimum bounds from below what these replicas cost at those prices in any fleet, since
    the models may have any number of GPUs at those prices.
    """
    index = ProgramIndex(alone)
    block = pyo.ConcreteModel(name="block")
    _add_variables(block, index)
    for constraint in all_constraints():
        if not constraint.couples:
            _add_rows(block, index, constraint)
    block.objective = pyo.Objective(expr=pyo.quicksum(block.replicas[c.name] for c in alone.columns))
    return block


def build_supply(problem: FleetProblem) -> Any:
    """State the rows that couple models over all candidates, and every other row only for models that serve something.

    What it costs is the nodes, as in the whole program.
    """
    index = ProgramIndex(problem)
    serving = ProgramIndex(_serving(problem))
    supply = pyo.ConcreteModel(name="supply")
    _add_variables(supply, index)
    for constraint in all_constraints():
        _add_rows(supply, index if constraint.couples else serving, constraint)
    supply.objective = pyo.Objective(expr=objective(supply, problem), sense=pyo.minimize)
    return supply


def _serving(problem: FleetProblem) -> FleetProblem:
    models = {d.model for d in problem.demands}
    return replace(
        problem,
        columns=tuple(c for c in problem.columns if c.model in models),
        rules=tuple(r for r in problem.rules if r.model in models),
    )


def write_lp(problem: FleetProblem, path: Path) -> None:
    """Write the program to a file in LP format, with readable names."""
    build(problem).write(str(path), io_options={"symbolic_solver_labels": True})


def objective(model: Any, problem: FleetProblem) -> Any:
    """Return the cost of all nodes (or their GPUs, or their power) and the penalties of replicas, with a small tie-break.

    The tie-break prefers fewer GPUs, then the offer that sorts first.
    """
    penalties = pyo.quicksum(c.penalty * model.replicas[c.name] for c in problem.columns if c.penalty > 0.0)
    return penalties + pyo.quicksum(
        (node_cost(problem, offer) + TIE_BREAK_USD_PER_GPU_H * offer.gpus_per_node + TIE_BREAK_PER_RANK * rank)
        * model.nodes[offer.name]
        for rank, offer in enumerate(problem.offers)
    )


def changes(model: Any, index: ProgramIndex, kept: Kept) -> Any:
    """Return how much of a fleet that runs changes: replicas and nodes, then cost, then settings."""
    running = max(1, sum(pool.replicas for pool in kept.pools))
    other = pyo.quicksum(model.replicas[name] for pool in kept.pools for name in pool.columns if name not in pool.same)
    return (
        pyo.quicksum(model.pool_changes[name] for name in index.kept_pools)
        + pyo.quicksum(model.node_changes[name] for name in index.offers)
        + pyo.quicksum(model.replicas[name] for name in index.added)
        + COST_IN_CHANGES / kept.scale * objective(model, index.problem)
        + SETTINGS_IN_CHANGES / running * other
    )


def _add_variables(model: Any, index: ProgramIndex) -> None:
    """Add the variables: whole replicas and nodes, rates, and the switches that the problem's rules need."""
    problem = index.problem
    most = index.most_replicas
    model.replicas = pyo.Var(list(index.columns), domain=pyo.NonNegativeIntegers, bounds=lambda _m, c: (0, most[c]))
    model.rate = pyo.Var([flow_key(c, f) for c in problem.columns for f in c.flows], domain=pyo.NonNegativeReals)
    model.nodes = pyo.Var(list(index.offers), domain=pyo.NonNegativeIntegers)
    model.bought = pyo.Var(list(index.purchases), domain=pyo.NonNegativeReals)
    model.shape_used = pyo.Var(index.switchable_shapes, domain=pyo.Binary)
    model.weights = pyo.Var([(m, f) for m in index.by_model for f in index.formats(m)], domain=pyo.Binary)
    model.kv_cache = pyo.Var([(m, f) for m in index.by_model for f in index.kv_formats(m)], domain=pyo.Binary)
    model.pool_open = pyo.Var(index.switched, domain=pyo.Binary)
    model.reach = pyo.Var(list(index.spare_shares), domain=pyo.NonNegativeReals)
    model.lost = pyo.Var(index.small_pools, domain=pyo.NonNegativeReals)
    model.outlasts = pyo.Var(index.small_pools, domain=pyo.Binary)
    model.placed = pyo.Var(index.placements, domain=pyo.NonNegativeIntegers)
    most_changes = 0 if problem.kept is not None and problem.kept.is_fixed else None
    changing = list(index.offers) if problem.kept is not None else []
    model.pool_changes = pyo.Var(list(index.kept_pools), domain=pyo.NonNegativeReals, bounds=(0, most_changes))
    model.node_changes = pyo.Var(changing, domain=pyo.NonNegativeReals, bounds=(0, most_changes))
    model.type_used = pyo.Var(index.gpu_types if problem.max_gpu_types is not None else (), domain=pyo.Binary)
    model.spare_rate = pyo.Var(
        [(loss.name, w, c) for loss in index.losses.values() for w, c in index.arcs if _is_left(index, loss, c)],
        domain=pyo.NonNegativeReals,
    )


def _is_left(index: ProgramIndex, loss: Loss, candidate: str) -> bool:
    column = index.columns[candidate]
    return column.model == loss.model and not loss.takes(column)


def _add_rows(model: Any, index: ProgramIndex, constraint: Constraint) -> None:
    """Add the rows of one constraint under its own name."""
    rows = pyo.Constraint(pyo.Any)
    model.add_component(constraint.name, rows)
    for key in constraint.index(index):
        row = constraint.rule(model, index, key)
        if row is not None and row is not True:
            rows[key[0] if len(key) == 1 else key] = row
