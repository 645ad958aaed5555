"""Term: nodes of a long term are paid for from the step in which they are bought until the term ends."""

from __future__ import annotations

from typing import Any

from pyomo.environ import quicksum

from planner.program.constraint import Constraint, Key
from planner.program.index import ProgramIndex


def _index(index: ProgramIndex) -> list[Key]:
    return list(index.purchases)


def _rule(model: Any, index: ProgramIndex, key: Key) -> Any:
    copy = index.purchases[key]
    steps = list(index.problem.steps)
    now = steps.index(copy.step)
    running = steps[max(0, now - copy.term_steps + 1) : now + 1]
    return model.nodes[copy.name] == quicksum(model.bought[key[0], step] for step in running)


CONSTRAINT = Constraint(
    name="term",
    unit="nodes",
    sentence="Nodes that are bought for a year or more are paid for from that month on until their term ends.",
    math=r"y_{ot} = \sum_{t - L_o < s \le t} b_{os}",
    symbols={
        "y_{ot}": "nodes of offer o in step t",
        "b_{os}": "nodes bought of offer o in step s",
        "L_o": "steps that the term of offer o lasts",
    },
    index=_index,
    rule=_rule,
    couples=True,
    key_names=("offer", "step"),
)
