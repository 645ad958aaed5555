"""Demand: every workload is served in full, headroom included."""

from __future__ import annotations

from typing import Any

from pyomo.environ import quicksum

from planner.program.capacity import rate_of
from planner.program.constraint import Constraint, Key
from planner.program.index import ProgramIndex


def _index(index: ProgramIndex) -> list[Key]:
    return [(w,) for w in index.demands]


def _rule(model: Any, index: ProgramIndex, key: Key) -> Any:
    demand = index.demands[key[0]]
    serving = [c for c in index.by_model[demand.model] if demand.workload in c.services]
    return quicksum(rate_of(model, c, demand.workload) for c in serving) == demand.planned_requests_per_s


CONSTRAINT = Constraint(
    name="demand",
    unit="requests/s",
    sentence="Every workload is served in full, headroom included.",
    math=r"\sum_c x_{wc} = \lambda_w (1 + h)",
    symbols={
        "x_{wc}": "requests/s of workload w on candidate c",
        r"\lambda_w": "demand, requests/s",
        "h": "reliability.headroom",
    },
    index=_index,
    rule=_rule,
    key_names=("workload",),
)
