"""Pool loss: a pool that may be smaller than the loss loses k replicas, or all of them if it has fewer."""

from __future__ import annotations

from typing import Any

from planner.program.constraint import Constraint, Key
from planner.program.index import ProgramIndex


def _index(index: ProgramIndex) -> list[Key]:
    return [(c, side) for c in index.small_pools for side in ("at least", "unless small")]


def _rule(model: Any, index: ProgramIndex, key: Key) -> Any:
    column = index.columns[key[0]]
    spares = index.spares[column.name]
    large = model.outlasts[column.name]
    if key[1] == "at least":
        return model.lost[column.name] >= spares * large
    rest = max(index.most_replicas[column.name] - spares, 0)
    return model.replicas[column.name] - model.lost[column.name] <= rest * large


CONSTRAINT = Constraint(
    name="pool_loss",
    unit="replicas",
    sentence="A pool that fails loses k replicas; only a pool of at least k keeps any.",
    math=r"l_c \ge k\, a_c, \quad n_c - l_c \le (U_c - k)\, a_c",
    symbols={
        "l_c": "replicas of pool c that are lost",
        "n_c": "replicas",
        "k": "reliability.spare_replicas, or the replicas that a node may hold",
        "a_c": "1 if the pool is larger than the loss",
        "U_c": "replicas that serve everything alone, with spares: no plan needs more",
    },
    index=_index,
    rule=_rule,
    key_names=("candidate", "side"),
)
