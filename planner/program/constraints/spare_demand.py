"""Spare demand: when a pool has lost its spares, or a zone is lost, every workload is served by a routing of its own."""

from __future__ import annotations

from typing import Any

from pyomo.environ import quicksum

from planner.program.constraint import Constraint, Key
from planner.program.index import ProgramIndex


def _index(index: ProgramIndex) -> list[Key]:
    return [(loss.name, d.workload) for loss in index.losses.values() for d in index.demands_of[loss.model]]


def _rule(model: Any, index: ProgramIndex, key: Key) -> Any:
    loss, workload = index.losses[key[0]], key[1]
    serving = [c.name for c in index.by_model[loss.model] if workload in c.services and not loss.takes(c)]
    if not serving:  # the solve says so before it starts
        return None
    rerouted = quicksum(model.spare_rate[loss.name, workload, c] for c in serving)
    return rerouted == index.demands[workload].requests_per_s


CONSTRAINT = Constraint(
    name="spare_demand",
    unit="requests/s",
    sentence="With the spares of one pool gone, or a zone, every workload is still served in full, headroom not counted.",
    math=r"\sum_{c'} x^l_{wc'} = \lambda_w",
    symbols={
        "x^l_{wc'}": "requests/s of w on c' in loss l: the spares of one pool, or a zone",
        r"\lambda_w": "demand, requests/s",
    },
    index=_index,
    rule=_rule,
    key_names=("loss", "workload"),
)
