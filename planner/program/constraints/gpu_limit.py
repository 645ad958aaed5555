"""GPU limit: no more GPUs of one type than supply.limits.gpus allows."""

from __future__ import annotations

from typing import Any

from pyomo.environ import quicksum

from planner.program.constraint import Constraint, Key
from planner.program.index import ProgramIndex


def _index(index: ProgramIndex) -> list[Key]:
    return [(g,) for g in sorted(index.problem.gpu_limits) if g in index.gpu_types]


def _rule(model: Any, index: ProgramIndex, key: Key) -> Any:
    bought = quicksum(o.gpus_per_node * model.nodes[o.name] for o in index.problem.offers if o.gpu == key[0])
    return bought <= index.problem.gpu_limits[key[0]]


CONSTRAINT = Constraint(
    name="gpu_limit",
    unit="GPUs",
    sentence="No more GPUs of a type are used than supply.limits.gpus allows.",
    math=r"\sum_{o:\, g(o) = g} G_o y_o \le N_g",
    symbols={"G_o": "GPUs per node", "y_o": "nodes bought", "N_g": "limit of GPU type g"},
    index=_index,
    rule=_rule,
    couples=True,
    key_names=("gpu",),
)
