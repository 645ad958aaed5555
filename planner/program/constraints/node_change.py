"""Node change: how many nodes of an offer come and go, where a fleet that runs is to change little."""

from __future__ import annotations

from typing import Any

from planner.program.constraint import Constraint, Key
from planner.program.index import ProgramIndex


def _index(index: ProgramIndex) -> list[Key]:
    kept = index.problem.kept
    if kept is None:
        return []
    sides = [*(["fewer"] if kept.counts_fewer else []), *(["more"] if kept.counts_more else [])]
    return [(name, side) for name in index.offers for side in sides]


def _rule(model: Any, index: ProgramIndex, key: Key) -> Any:
    kept = index.problem.kept
    assert kept is not None
    paid = kept.nodes.get(key[0], 0)
    if key[1] == "fewer":
        return model.node_changes[key[0]] + model.nodes[key[0]] >= paid if paid else None
    return model.node_changes[key[0]] - model.nodes[key[0]] >= -paid


CONSTRAINT = Constraint(
    name="node_change",
    unit="nodes",
    sentence="Nodes of an offer that are added to those that are paid for, or given back, are changes.",
    math=r"d_o \ge Y_o - y_o, \quad d_o \ge y_o - Y_o",
    symbols={"d_o": "changes of offer o", "Y_o": "nodes that are paid for today", "y_o": "nodes bought"},
    index=_index,
    rule=_rule,
    couples=True,
    key_names=("offer", "side"),
)
