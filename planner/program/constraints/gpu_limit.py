"""GPU limit: no more GPUs of one type than supply.limits.gpus allows."""

from __future__ import annotations

from typing import Any

from pyomo.environ import quicksum

from planner.program.constraint import Constraint, Key
from planner.program.index import ProgramIndex


def _index(index: ProgramIndex) -> list[Key]:
    limited = [g for g in sorted(index.problem.gpu_limits) if g in index.gpu_types]
    return [(g, period) if period else (g,) for g in limited for period in index.periods]


def _rule(model: Any, index: ProgramIndex, key: Key) -> Any:
    gpu, *period = key
    offers = [o for o in index.problem.offers if o.gpu == gpu and (not period or o.period == period[0])]
    return quicksum(o.gpus_per_node * model.nodes[o.name] for o in offers) <= index.problem.gpu_limits[gpu]


CONSTRAINT = Constraint(
    name="gpu_limit",
    unit="GPUs",
    sentence="No more GPUs of a type are used than supply.limits.gpus allows, in any period.",
    math=r"\sum_{o:\, g(o) = g} G_o y_o \le N_g",
    symbols={"G_o": "GPUs per node", "y_o": "nodes bought", "N_g": "limit of GPU type g"},
    index=_index,
    rule=_rule,
    couples=True,
    key_names=("gpu", "period"),
)
