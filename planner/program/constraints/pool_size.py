"""Pool size: a candidate rated for large pools is used with at least that many replicas."""

from __future__ import annotations

from typing import Any

from planner.program.constraint import Constraint, Key
from planner.program.index import ProgramIndex


def _index(index: ProgramIndex) -> list[Key]:
    return [(c, side) for c in index.pooled for side in ("least", "most")]


def _rule(model: Any, index: ProgramIndex, key: Key) -> Any:
    column = index.columns[key[0]]
    if key[1] == "least":
        return model.replicas[column.name] >= column.min_replicas * model.pool_open[column.name]
    return model.replicas[column.name] <= index.most_replicas[column.name] * model.pool_open[column.name]


CONSTRAINT = Constraint(
    name="pool_size",
    unit="replicas",
    sentence="A candidate whose rating counts on pooling over R replicas is used with at least R of them, or not at all.",
    math=r"R_c\, z_c \le n_c \le U_c\, z_c",
    symbols={
        "n_c": "replicas",
        "R_c": "smallest pool for which the rating of c holds (1, 2, 4 or 8)",
        "U_c": "replicas that serve everything alone, with spares: no plan needs more",
        "z_c": "1 if the candidate is used",
    },
    index=_index,
    rule=_rule,
    key_names=("candidate", "side"),
)
