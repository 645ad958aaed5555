"""Stock: no more nodes of a supply entry than are available."""

from __future__ import annotations

from typing import Any

from pyomo.environ import quicksum

from planner.program.constraint import Constraint, Key
from planner.program.index import ProgramIndex


def _index(index: ProgramIndex) -> list[Key]:
    return [(s.entry,) for s in index.problem.stock if s.available is not None]


def _rule(model: Any, index: ProgramIndex, key: Key) -> Any:
    available = next(s.available for s in index.problem.stock if s.entry == key[0])
    return quicksum(model.nodes[o.name] for o in index.problem.offers if o.entry == key[0]) <= available


CONSTRAINT = Constraint(
    name="stock",
    unit="nodes",
    sentence="No more nodes of a supply entry are used than are available.",
    math=r"\sum_{o \in e} y_o \le S_e",
    symbols={"y_o": "nodes bought of offer o", "S_e": "nodes of supply entry e (nodes:)"},
    index=_index,
    rule=_rule,
    couples=True,
    key_names=("entry",),
)
