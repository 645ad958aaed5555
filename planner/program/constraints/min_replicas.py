"""Min replicas: a model runs at least reliability.min_replicas replicas."""

from __future__ import annotations

from typing import Any

from pyomo.environ import quicksum

from planner.program.constraint import Constraint, Key
from planner.program.index import ProgramIndex


def _index(index: ProgramIndex) -> list[Key]:
    return [(m,) for m, r in index.rules.items() if r.min_replicas > 1]


def _rule(model: Any, index: ProgramIndex, key: Key) -> Any:
    replicas = [model.replicas[c.name] for c in index.by_model[key[0]]]
    return quicksum(replicas) >= index.rules[key[0]].min_replicas


CONSTRAINT = Constraint(
    name="min_replicas",
    unit="replicas",
    sentence="A model runs at least reliability.min_replicas replicas.",
    math=r"\sum_c n_c \ge R_m",
    symbols={"n_c": "replicas", "R_m": "reliability.min_replicas of model m"},
    index=_index,
    rule=_rule,
    key_names=("model",),
)
