"""Spare spot: when something is lost, spot nodes take over no more than their share of a workload with a floor."""

from __future__ import annotations

from typing import Any

from pyomo.environ import quicksum

from planner.program.constraint import Constraint, Key
from planner.program.index import ProgramIndex


def _index(index: ProgramIndex) -> list[Key]:
    return [
        (loss.name, d.workload)
        for loss in index.losses.values()
        for d in index.demands_of[loss.model]
        if d.on_demand_floor and d.spot_share < 1.0 and index.spot_columns(d.workload)
    ]


def _rule(model: Any, index: ProgramIndex, key: Key) -> Any:
    loss, demand = index.losses[key[0]], index.demands[key[1]]
    left = [c.name for c in index.spot_columns(demand.workload) if not loss.takes(c)]
    if not left:
        return None
    on_spot = quicksum(model.spare_rate[loss.name, demand.workload, c] for c in left)
    return on_spot <= demand.spot_share * demand.requests_per_s


CONSTRAINT = Constraint(
    name="spare_spot",
    unit="requests/s",
    sentence="When something is lost, no more of a workload with spot.on_demand_floor than its max_share goes to spot nodes.",
    math=r"\sum_{c' \in S} x^l_{wc'} \le \sigma_w \lambda_w",
    symbols={
        "S": "candidates on spot nodes",
        "x^l_{wc'}": "requests/s of w on c' in loss l: the spares of one pool, or a zone",
        r"\sigma_w": "spot.max_share of workload w",
        r"\lambda_w": "demand, requests/s, headroom not counted",
    },
    index=_index,
    rule=_rule,
    key_names=("loss", "workload"),
)
