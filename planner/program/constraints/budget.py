"""Budget: the fleet costs no more than supply.budget, in every step where demand grows."""

from __future__ import annotations

from typing import Any

from pyomo.environ import quicksum

from planner.program.constraint import Constraint, Key
from planner.program.index import ProgramIndex


def _index(index: ProgramIndex) -> list[Key]:
    if index.problem.budget_usd_per_h is None:
        return []
    return [(step,) if step else () for step in index.problem.steps]


def _rule(model: Any, index: ProgramIndex, key: Key) -> Any:
    step, budget = key[0] if key else "", index.problem.budget_usd_per_h or 0.0
    cost = quicksum(o.usd_per_node_h * model.nodes[o.name] for o in index.problem.offers if not step or o.step == step)
    return cost <= budget * index.problem.steps[step]


CONSTRAINT = Constraint(
    name="budget",
    unit="USD/h",
    sentence="All nodes together cost no more than supply.budget.",
    math=r"\sum_o p_o y_o \le B",
    symbols={"p_o": "price of a node, USD/h", "y_o": "nodes bought", "B": "supply.budget / planning.hours_per_month"},
    index=_index,
    rule=_rule,
    couples=True,
)
