"""Compute ceiling: work per second stays below the achievable FLOP/s."""

from __future__ import annotations

from typing import Any

from planner.program.capacity import TFLOP, each_candidate, served_sum
from planner.program.constraint import Constraint, Key
from planner.program.index import ProgramIndex


def _rule(model: Any, index: ProgramIndex, key: Key) -> Any:
    column = index.columns[key[0]]
    used = served_sum(model, column, lambda s: s.flops / TFLOP)
    return used <= column.flops_per_s / TFLOP * model.replicas[column.name]


CONSTRAINT = Constraint(
    name="compute_ceiling",
    unit="TFLOP/s",
    sentence="Floating-point work per second stays below the rate that kernels reach.",
    math=r"\sum_w x_{wc}\, f_{wc} \le F_c\, n_c",
    symbols={
        "x_{wc}": "requests/s of workload w on candidate c",
        "f_{wc}": "work of one GPU for a request, TFLOP",
        "F_c": "achievable rate of one GPU, TFLOP/s",
        "n_c": "replicas",
    },
    index=each_candidate,
    rule=_rule,
    key_names=("candidate",),
)
