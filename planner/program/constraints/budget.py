"""Budget: the fleet costs no more than supply.budget."""

from __future__ import annotations

from typing import Any

from pyomo.environ import quicksum

from planner.program.constraint import Constraint, Key
from planner.program.index import ProgramIndex


def _index(index: ProgramIndex) -> list[Key]:
    return [()] if index.problem.budget_usd_per_h is not None else []


def _rule(model: Any, index: ProgramIndex, key: Key) -> Any:
    cost = quicksum(o.usd_per_node_h * model.nodes[o.name] for o in index.problem.offers)
    return cost <= index.problem.budget_usd_per_h


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
