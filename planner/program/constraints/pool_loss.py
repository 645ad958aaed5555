"""Pool loss: a pool that loses k replicas keeps the rest of them."""

from __future__ import annotations

from typing import Any

from planner.program.constraint import Constraint, Key
from planner.program.index import ProgramIndex


def _index(index: ProgramIndex) -> list[Key]:
    return [(c, side) for c in index.spared for side in ("rest", "none")]


def _rule(model: Any, index: ProgramIndex, key: Key) -> Any:
    column = index.columns[key[0]]
    spares = index.rules[column.model].spare_replicas
    outlasts = model.outlasts[column.name]
    if key[1] == "rest":
        return model.surviving[column.name] <= model.replicas[column.name] - spares * outlasts
    return model.surviving[column.name] <= max(index.most_replicas[column.name] - spares, 0) * outlasts


CONSTRAINT = Constraint(
    name="pool_loss",
    unit="replicas",
    sentence="A pool that loses k replicas keeps the rest: nothing, or its replicas less k.",
    math=r"q_c \le n_c - k\, a_c, \quad q_c \le (U_c - k)\, a_c",
    symbols={
        "q_c": "replicas of pool c that survive",
        "n_c": "replicas",
        "k": "reliability.spare_replicas",
        "a_c": "1 if the pool outlasts the loss",
        "U_c": "replicas that serve everything alone, with spares: no plan needs more",
    },
    index=_index,
    rule=_rule,
    key_names=("candidate", "side"),
)
