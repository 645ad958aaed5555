"""Shape use: a shape with replicas counts as used by its model."""

from __future__ import annotations

from typing import Any

from planner.program.constraint import Constraint, Key
from planner.program.index import ProgramIndex


def _index(index: ProgramIndex) -> list[Key]:
    switchable = set(index.switchable_shapes)
    return [(c.name,) for c in index.problem.columns if (c.model, c.shape) in switchable]


def _rule(model: Any, index: ProgramIndex, key: Key) -> Any:
    column = index.columns[key[0]]
    return (
        model.replicas[column.name] <= index.most_replicas[column.name] * model.shape_used[column.model, column.shape]
    )


CONSTRAINT = Constraint(
    name="shape_use",
    unit="replicas",
    sentence="A shape with replicas counts as used by its model.",
    math=r"n_c \le U_c\, u_{s(c)}, \quad z_c \le u_{s(c)}",
    symbols={
        "n_c": "replicas",
        "U_c": "replicas that serve everything alone, with spares: no plan needs more",
        "u_s": "1 if shape s is used",
        "z_c": "1 if candidate c is used, where it has a switch",
    },
    index=_index,
    rule=_rule,
    key_names=("candidate",),
)
