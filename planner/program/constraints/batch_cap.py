"""Batch cap: requests in flight fit the batch slots of the replicas."""

from __future__ import annotations

from typing import Any

from planner.program.capacity import each_candidate, served_sum
from planner.program.constraint import Constraint, Key
from planner.program.index import ProgramIndex


def _rule(model: Any, index: ProgramIndex, key: Key) -> Any:
    column = index.columns[key[0]]
    used = served_sum(model, column, lambda s: s.residence_s)
    return used <= column.batch_slots * model.replicas[column.name]


CONSTRAINT = Constraint(
    name="batch_cap",
    unit="requests",
    sentence="Requests in flight fit the batch slots (max_num_seqs) of the replicas.",
    math=r"\sum_w x_{wc}\, \tau_{wc} \le b_c\, n_c",
    symbols={
        "x_{wc}": "requests/s of workload w on candidate c",
        "\\tau_{wc}": "residence of a request, s",
        "b_c": "batch slots of one replica",
        "n_c": "replicas",
    },
    index=each_candidate,
    rule=_rule,
    key_names=("candidate",),
)
