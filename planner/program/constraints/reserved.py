"""Reserved: nodes bought for a year or more, committed or owned, are the same in all periods."""

from __future__ import annotations

from typing import Any

from planner.program.constraint import Constraint, Key
from planner.program.index import ProgramIndex


def _index(index: ProgramIndex) -> list[Key]:
    return [(name, copy.period) for name, copies in index.reserved.items() for copy in copies[1:]]


def _rule(model: Any, index: ProgramIndex, key: Key) -> Any:
    first, *others = index.reserved[key[0]]
    copy = next(o for o in others if o.period == key[1])
    return model.nodes[copy.name] == model.nodes[first.name]


CONSTRAINT = Constraint(
    name="reserved",
    unit="nodes",
    sentence="Nodes that are bought for a year or more, or owned, are paid for in every period alike.",
    math=r"y_{op} = y_{oq}",
    symbols={
        "y_{op}": "nodes bought of offer o in period p",
        "p, q": "periods that hours of demand are put together into",
    },
    index=_index,
    rule=_rule,
    couples=True,
    key_names=("offer", "period"),
)
