"""GPU type use: replicas on a GPU type count that type as used."""

from __future__ import annotations

from typing import Any

from planner.program.constraint import Constraint, Key
from planner.program.index import ProgramIndex


def _index(index: ProgramIndex) -> list[Key]:
    return [(c,) for c in index.columns] if index.problem.max_gpu_types is not None else []


def _rule(model: Any, index: ProgramIndex, key: Key) -> Any:
    column = index.columns[key[0]]
    return model.replicas[column.name] <= index.most_replicas[column.name] * model.type_used[column.gpu]


CONSTRAINT = Constraint(
    name="gpu_type_use",
    unit="replicas",
    sentence="A GPU type with replicas on it counts as used.",
    math=r"n_c \le U_c\, u_{g(c)}",
    symbols={
        "n_c": "replicas",
        "U_c": "replicas that serve everything alone, with spares: no plan needs more",
        "u_g": "1 if GPU type g is used",
    },
    index=_index,
    rule=_rule,
    couples=True,
    key_names=("candidate",),
)
