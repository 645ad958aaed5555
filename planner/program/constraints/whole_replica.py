"""Whole replica: what serves any of a small demand is a whole replica, though the demand takes next to nothing of it."""

from __future__ import annotations

from typing import Any

from planner.program.capacity import lost_replicas, rate_of
from planner.program.constraint import Constraint, Key
from planner.program.index import ProgramIndex


def _index(index: ProgramIndex) -> list[Key]:
    losses = [
        (loss.name, w, c)
        for loss in index.losses.values()
        for w, c in index.small_arcs
        if index.columns[c].model == loss.model and not loss.takes(index.columns[c])
    ]
    return [*(("", w, c) for w, c in index.small_arcs), *losses]


def _rule(model: Any, index: ProgramIndex, key: Key) -> Any:
    loss, workload, name = key
    column, demand = index.columns[name], index.demands[workload]
    if not loss:
        return rate_of(model, column, workload) <= demand.planned_requests_per_s * model.replicas[name]
    left = model.replicas[name] - (lost_replicas(model, index, column) if index.losses[loss].lost == name else 0)
    return model.spare_rate[loss, workload, name] <= demand.requests_per_s * left


CONSTRAINT = Constraint(
    name="whole_replica",
    unit="requests/s",
    sentence="What serves any of a small demand is a whole replica: capacity rows alone would let a solver round it to none.",
    math=r"x_{wc} \le \lambda_w (1 + h)\, n_c, \quad x^l_{wc} \le \lambda_w (n_c - l_c)",
    symbols={
        "x_{wc}": "requests/s of workload w on candidate c",
        "x^l_{wc}": "requests/s of w on c in loss l: the spares of one pool, or a zone",
        r"\lambda_w": "demand, requests/s",
        "h": "reliability.headroom",
        "n_c": "replicas",
        "l_c": "replicas of pool c that are lost",
    },
    index=_index,
    rule=_rule,
    key_names=("loss", "workload", "candidate"),
    strengthens=True,
)
