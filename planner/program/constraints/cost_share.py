"""Cost share: selected nodes cost no more than a share of what all nodes cost."""

from __future__ import annotations

from typing import Any

from pyomo.environ import quicksum

from planner.program.constraint import Constraint, Key
from planner.program.index import ProgramIndex


def _index(index: ProgramIndex) -> list[Key]:
    return [(each.key,) for each in index.problem.cost_shares]


def _rule(model: Any, index: ProgramIndex, key: Key) -> Any:
    limit = next(each for each in index.problem.cost_shares if each.key == key[0])
    offers = [o for o in index.problem.offers if o.step == limit.step or not limit.step]
    selected = quicksum(o.usd_per_node_h * model.nodes[o.name] for o in offers if o.name in limit.offers)
    return selected <= limit.share * quicksum(o.usd_per_node_h * model.nodes[o.name] for o in offers)


CONSTRAINT = Constraint(
    name="cost_share",
    unit="USD/h",
    sentence="Nodes that match a rule of supply.limits.rules cost no more than its share of the cost of all nodes.",
    math=r"\sum_{o \in r} p_o y_o \le s_r \sum_o p_o y_o",
    symbols={"p_o": "price of a node, USD/h", "y_o": "nodes bought", "s_r": "share that rule r allows"},
    index=_index,
    rule=_rule,
    couples=True,
    key_names=("rule",),
)
