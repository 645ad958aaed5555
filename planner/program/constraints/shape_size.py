"""Shape size: all pools of a shape together are no larger than one pool that serves everything alone."""

from __future__ import annotations

from typing import Any

from pyomo.environ import quicksum

from planner.program.constraint import Constraint, Key
from planner.program.index import ProgramIndex


def _index(index: ProgramIndex) -> list[Key]:
    if index.problem.cost_shares:  # more replicas may then be what nodes are bought for
        return []
    return [key for key in index.switchable_shapes if key in index.most_of_shape]


def _rule(model: Any, index: ProgramIndex, key: Key) -> Any:
    replicas = quicksum(model.replicas[c.name] for c in index.shapes[key])
    return replicas <= index.most_of_shape[key] * model.shape_used[key]


CONSTRAINT = Constraint(
    name="shape_size",
    unit="replicas",
    sentence="A model has no more replicas of a shape than would serve all its workloads alone, with spares.",
    math=r"\sum_{c \in s} n_c \le U_s\, u_s",
    symbols={
        "n_c": "replicas",
        "U_s": "replicas of shape s that serve all workloads of the model alone, with spares: no plan needs more",
        "u_s": "1 if shape s is used",
    },
    index=_index,
    rule=_rule,
    key_names=("model", "shape"),
    strengthens=True,
)
