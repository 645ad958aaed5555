"""Step time: the calibrated whole, with collectives, overhead and queueing allowance."""

from __future__ import annotations

from typing import Any

from planner.program.capacity import each_candidate, served_sum
from planner.program.constraint import Constraint, Key
from planner.program.index import ProgramIndex


def _rule(model: Any, index: ProgramIndex, key: Key) -> Any:
    column = index.columns[key[0]]
    used = served_sum(model, column, lambda s: s.busy_s)
    return used <= model.replicas[column.name]


CONSTRAINT = Constraint(
    name="step_time",
    unit="replicas",
    sentence="Replica time that requests take at the largest mean batch their latency limits allow stays within the replicas there are.",
    math=r"\sum_w x_{wc}\, \theta_{wc} \le n_c",
    symbols={
        "x_{wc}": "requests/s of workload w on candidate c",
        "\\theta_{wc}": "replica time per request at the batch that TTFT and TPOT allow, s (1 / largest rate of one replica)",
        "n_c": "replicas",
    },
    index=each_candidate,
    rule=_rule,
    key_names=("candidate",),
)
