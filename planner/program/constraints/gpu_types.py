"""GPU types: no more distinct GPU types than supply.limits.gpu_types allows."""

from __future__ import annotations

from typing import Any

from pyomo.environ import quicksum

from planner.program.constraint import Constraint, Key
from planner.program.index import ProgramIndex


def _index(index: ProgramIndex) -> list[Key]:
    return [()] if index.problem.max_gpu_types is not None else []


def _rule(model: Any, index: ProgramIndex, key: Key) -> Any:
    return quicksum(model.type_used[g] for g in index.gpu_types) <= index.problem.max_gpu_types


CONSTRAINT = Constraint(
    name="gpu_types",
    unit="GPU types",
    sentence="The fleet uses no more distinct GPU types than supply.limits.gpu_types allows.",
    math=r"\sum_g u_g \le T",
    symbols={"u_g": "1 if GPU type g is used", "T": "supply.limits.gpu_types"},
    index=_index,
    rule=_rule,
    couples=True,
)
