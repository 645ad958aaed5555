"""Power limit: all nodes together draw no more than supply.limits.power."""

from __future__ import annotations

from typing import Any

from pyomo.environ import quicksum

from planner.program.constraint import Constraint, Key
from planner.program.index import ProgramIndex


def _index(index: ProgramIndex) -> list[Key]:
    if index.problem.max_power_w is None:
        return []
    return [(period,) if period else () for period in index.periods]


def _rule(model: Any, index: ProgramIndex, key: Key) -> Any:
    offers = [o for o in index.problem.offers if not key or o.period == key[0]]
    return quicksum(o.power_w * model.nodes[o.name] for o in offers) <= index.problem.max_power_w


CONSTRAINT = Constraint(
    name="power_limit",
    unit="W",
    sentence="All nodes together draw no more power, their GPUs at TDP, than supply.limits.power, in any period.",
    math=r"\sum_o w_o y_o \le W",
    symbols={"w_o": "power of a node, W", "y_o": "nodes bought", "W": "supply.limits.power"},
    index=_index,
    rule=_rule,
    couples=True,
    key_names=("period",),
)
