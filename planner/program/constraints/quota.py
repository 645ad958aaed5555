"""Quota: selected nodes together take no more GPUs, nodes, vCPUs or money than a rule of the limits allows."""

from __future__ import annotations

from typing import Any

from pyomo.environ import quicksum

from planner.program.constraint import Constraint, Key
from planner.program.index import ProgramIndex


def _index(index: ProgramIndex) -> list[Key]:
    return [(q.key,) for q in index.problem.quotas]


def _rule(model: Any, index: ProgramIndex, key: Key) -> Any:
    quota = next(q for q in index.problem.quotas if q.key == key[0])
    taken = [(amount, offer) for offer, amount in sorted(quota.amounts.items()) if offer in index.offers]
    if not taken:
        return None
    return quicksum(amount * model.nodes[offer] for amount, offer in taken) <= quota.most


CONSTRAINT = Constraint(
    name="quota",
    unit="that of the rule: GPUs, nodes, vCPUs or USD/h",
    sentence="Nodes that match a rule of supply.limits.rules together take no more than it allows.",
    math=r"\sum_{o \in r} a_{or} y_o \le Q_r",
    symbols={
        "a_{or}": "what one node of offer o takes of rule r: GPUs, 1, vCPUs or USD/h",
        "y_o": "nodes bought",
        "Q_r": "limit of rule r",
    },
    index=_index,
    rule=_rule,
    couples=True,
    key_names=("rule",),
)
