"""HBM budget: weights, KV cache and workspace of a replica fit the usable memory of its GPUs."""

from __future__ import annotations

from typing import Any

from planner.program.capacity import GB, each_candidate, served_sum
from planner.program.constraint import Constraint, Key
from planner.program.index import ProgramIndex


def _rule(model: Any, index: ProgramIndex, key: Key) -> Any:
    column = index.columns[key[0]]
    used = served_sum(model, column, lambda s: s.residence_s * s.kv_bytes / GB)
    return used <= column.kv_pool_bytes / GB * model.replicas[column.name]


CONSTRAINT = Constraint(
    name="hbm_budget",
    unit="GB",
    sentence="KV cache of the requests in flight (rate x residence, Little's law) fits the KV pools that weights and workspace leave in HBM.",
    math=r"\sum_w x_{wc}\, \tau_{wc}\, k_{wc} \le K_c\, n_c",
    symbols={
        "x_{wc}": "requests/s of workload w on candidate c",
        "\\tau_{wc}": "residence of a request, s",
        "k_{wc}": "mean KV bytes per GPU that a request holds, GB",
        "K_c": "KV pool of one replica per GPU, GB",
        "n_c": "replicas",
    },
    index=each_candidate,
    rule=_rule,
    key_names=("candidate",),
)
