"""Pool size: a candidate with replicas is in use, and one rated for large pools has at least that many."""

from __future__ import annotations

from typing import Any

from planner.program.constraint import Constraint, Key
from planner.program.index import ProgramIndex


def _index(index: ProgramIndex) -> list[Key]:
    least = [(c, "least") for c in index.switched if index.columns[c].min_replicas > 1]
    return least + [(c, "most") for c in index.switched]


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
