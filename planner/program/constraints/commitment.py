"""Commitment: committed nodes of a supply entry are paid for whether used or not."""

from __future__ import annotations

from typing import Any

from pyomo.environ import quicksum

from planner.program.constraint import Constraint, Key
from planner.program.index import ProgramIndex


def _index(index: ProgramIndex) -> list[Key]:
    return [(s.entry,) for s in index.problem.stock if s.committed > 0]


def _rule(model: Any, index: ProgramIndex, key: Key) -> Any:
    committed = next(s.committed for s in index.problem.stock if s.entry == key[0])
    return quicksum(model.nodes[o.name] for o in index.problem.offers if o.entry == key[0]) >= committed


CONSTRAINT = Constraint(
    name="commitment",
    unit="nodes",
    sentence="Committed and owned nodes are paid for whether used or not.",
    math=r"\sum_{o \in e} y_o \ge C_e",
    symbols={"y_o": "nodes paid for of offer o", "C_e": "committed nodes of supply entry e (owned: all of them)"},
    index=_index,
    rule=_rule,
    couples=True,
    key_names=("entry",),
)
