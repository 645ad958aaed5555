"""Max shapes: a model uses no more different shapes than its max_shapes."""

from __future__ import annotations

from typing import Any

from pyomo.environ import quicksum

from planner.program.constraint import Constraint, Key
from planner.program.index import ProgramIndex


def _index(index: ProgramIndex) -> list[Key]:
    return sorted({(m,) for m, _ in index.switchable_shapes})


def _rule(model: Any, index: ProgramIndex, key: Key) -> Any:
    used = [model.shape_used[m, s] for m, s in index.switchable_shapes if m == key[0]]
    return quicksum(used) <= index.rules[key[0]].max_shapes


CONSTRAINT = Constraint(
    name="max_shapes",
    unit="shapes",
    sentence="A model runs in no more different shapes than its max_shapes.",
    math=r"\sum_{s \in S_m} u_s \le Z_m",
    symbols={"u_s": "1 if shape s is used", "Z_m": "max_shapes of model m"},
    index=_index,
    rule=_rule,
    key_names=("model",),
)
