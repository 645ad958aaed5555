"""Spare capacity: when a pool has lost its spares, or a zone is lost, the rerouted traffic fits what remains."""

from __future__ import annotations

from typing import Any

from pyomo.environ import quicksum

from planner.program.capacity import lost_replicas
from planner.program.constraint import Constraint, Key
from planner.program.index import CAPACITY_ROWS, ProgramIndex, row_needs


def _index(index: ProgramIndex) -> list[Key]:
    return [
        (loss.name, c.name, row)
        for loss in index.losses.values()
        for c in index.by_model[loss.model]
        if not loss.takes(c)
        for row in CAPACITY_ROWS
    ]


def _rule(model: Any, index: ProgramIndex, key: Key) -> Any:
    loss, name, row = index.losses[key[0]], key[1], key[2]
    column = index.columns[name]
    place = CAPACITY_ROWS.index(row)
    used = quicksum(
        row_needs(column, s)[place] * model.spare_rate[loss.name, w, name] for w, s in sorted(column.services.items())
    )
    left = model.replicas[name] - (lost_replicas(model, index, column) if name == loss.lost else 0)
    return used <= left


CONSTRAINT = Constraint(
    name="spare_capacity",
    unit="replicas",
    sentence="With the spares of one pool gone, or a zone, rerouted traffic fits every capacity row of the replicas that remain.",
    math=r"\sum_w x^l_{wc'}\, \rho^r_{wc'} \le n_{c'} \ (c' \ne c), \quad \le n_c - l_c \ (c' = c)",
    symbols={
        "x^l_{wc'}": "requests/s of w on c' in loss l: the spares of pool c, or a zone, whose replicas are left out",
        r"\rho^r_{wc'}": "replicas of c' needed per request/s of w by row r (HBM, batch, bandwidth, compute, step time)",
        "n_{c'}": "replicas",
        "l_c": "replicas of pool c that are lost",
    },
    index=_index,
    rule=_rule,
    key_names=("loss", "serving candidate", "row"),
)
