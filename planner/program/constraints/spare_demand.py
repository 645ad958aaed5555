"""Spare demand: when one pool has lost its spares, every workload is still served in full, by a routing of its own."""

from __future__ import annotations

from typing import Any

from pyomo.environ import quicksum

from planner.program.constraint import Constraint, Key
from planner.program.index import ProgramIndex


def _index(index: ProgramIndex) -> list[Key]:
    return [(lost, d.workload) for lost in index.problem.losses for d in index.demands_of[index.columns[lost].model]]


def _rule(model: Any, index: ProgramIndex, key: Key) -> Any:
    lost, workload = key
    serving = [c.name for c in index.by_model[index.columns[lost].model] if workload in c.services]
    rerouted = quicksum(model.spare_rate[lost, workload, c] for c in serving)
    return rerouted == index.demands[workload].requests_per_s


CONSTRAINT = Constraint(
    name="spare_demand",
    unit="requests/s",
    sentence="With the spares of one pool gone, every workload is still served in full, headroom not counted.",
    math=r"\sum_{c'} x^c_{wc'} = \lambda_w",
    symbols={"x^c_{wc'}": "requests/s of w on c' while c has lost its spares", r"\lambda_w": "demand, requests/s"},
    index=_index,
    rule=_rule,
    key_names=("candidate", "workload"),
)
