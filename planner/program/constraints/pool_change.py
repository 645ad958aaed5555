"""Pool change: how many replicas of a shape come and go, where a fleet that runs is to change little."""

from __future__ import annotations

from typing import Any

from pyomo.environ import quicksum

from planner.program.constraint import Constraint, Key
from planner.program.index import ProgramIndex


def _index(index: ProgramIndex) -> list[Key]:
    return [(name, side) for name in index.kept_pools for side in ("fewer", "more")]


def _rule(model: Any, index: ProgramIndex, key: Key) -> Any:
    pool = index.kept_pools[key[0]]
    replicas = quicksum(model.replicas[name] for name in pool.columns)
    if key[1] == "fewer":
        return model.pool_changes[pool.name] + replicas >= pool.replicas
    return model.pool_changes[pool.name] - replicas >= -pool.replicas


CONSTRAINT = Constraint(
    name="pool_change",
    unit="replicas",
    sentence="Replicas of a shape that are added to those that run, or taken from them, are changes.",
    math=r"d_p \ge N_p - \sum_{c \in p} n_c, \quad d_p \ge \sum_{c \in p} n_c - N_p",
    symbols={
        "d_p": "changes of pool p",
        "N_p": "replicas that run, of one shape on nodes that fail alike",
        "n_c": "replicas of a candidate of that kind",
    },
    index=_index,
    rule=_rule,
    couples=True,
    key_names=("pool", "side"),
)
