"""Spare capacity: when one pool has lost its spares, the rerouted traffic fits every capacity row of what remains."""

from __future__ import annotations

from typing import Any

from pyomo.environ import quicksum

from planner.program.capacity import lost_replicas
from planner.program.constraint import Constraint, Key
from planner.program.index import CAPACITY_ROWS, ProgramIndex, row_needs


def _index(index: ProgramIndex) -> list[Key]:
    return [
        (lost, c.name, row)
        for lost in index.problem.losses
        for c in index.by_model[index.columns[lost].model]
        for row in CAPACITY_ROWS
    ]


def _rule(model: Any, index: ProgramIndex, key: Key) -> Any:
    lost, name, row = key
    column = index.columns[name]
    place = CAPACITY_ROWS.index(row)
    used = quicksum(
        row_needs(column, s)[place] * model.spare_rate[lost, w, name] for w, s in sorted(column.services.items())
    )
    left = model.replicas[name] - (lost_replicas(model, index, column) if name == lost else 0)
    return used <= left


CONSTRAINT = Constraint(
    name="spare_capacity",
    unit="replicas",
    sentence="With the spares of one pool gone, the rerouted traffic fits every capacity row of the replicas that remain.",
    math=r"\sum_w x^c_{wc'}\, \rho^r_{wc'} \le n_{c'} \ (c' \ne c), \quad \le n_c - l_c \ (c' = c)",
    symbols={
        "x^c_{wc'}": "requests/s of w on c' while c has lost its spares",
        r"\rho^r_{wc'}": "replicas of c' needed per request/s of w by row r (HBM, batch, bandwidth, compute, step time)",
        "n_{c'}": "replicas",
        "l_c": "replicas of pool c that are lost",
    },
    index=_index,
    rule=_rule,
    key_names=("candidate", "serving candidate", "row"),
)
