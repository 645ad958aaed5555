"""Bandwidth ceiling: bytes streamed per second stay below the achievable HBM bandwidth."""

from __future__ import annotations

from typing import Any

from planner.program.capacity import GB, each_candidate, served_sum
from planner.program.constraint import Constraint, Key
from planner.program.index import ProgramIndex


def _rule(model: Any, index: ProgramIndex, key: Key) -> Any:
    column = index.columns[key[0]]
    used = served_sum(model, column, lambda s: s.streamed_bytes / GB)
    return used <= column.bandwidth_bytes_per_s / GB * model.replicas[column.name]


CONSTRAINT = Constraint(
    name="bandwidth_ceiling",
    unit="GB/s",
    sentence="Bytes streamed from HBM per second stay below the bandwidth that kernels reach.",
    math=r"\sum_w x_{wc}\, v_{wc} \le W_c\, n_c",
    symbols={
        "x_{wc}": "requests/s of workload w on candidate c",
        "v_{wc}": "bytes one GPU streams for a request, GB",
        "W_c": "achievable bandwidth of one GPU, GB/s",
        "n_c": "replicas",
    },
    index=each_candidate,
    rule=_rule,
    key_names=("candidate",),
)
