"""Spot share: no more than a share of a workload is served on spot nodes."""

from __future__ import annotations

from typing import Any

from pyomo.environ import quicksum

from planner.program.capacity import rate_of
from planner.program.constraint import Constraint, Key
from planner.program.index import ProgramIndex


def _index(index: ProgramIndex) -> list[Key]:
    return [(w,) for w, d in index.demands.items() if d.spot_share < 1.0 and index.spot_columns(w)]


def _rule(model: Any, index: ProgramIndex, key: Key) -> Any:
    demand = index.demands[key[0]]
    on_spot = quicksum(rate_of(model, c, demand.workload) for c in index.spot_columns(demand.workload))
    return on_spot <= demand.spot_share * demand.planned_requests_per_s


CONSTRAINT = Constraint(
    name="spot_share",
    unit="requests/s",
    sentence="No more of a workload than its spot.max_share is served on spot nodes.",
    math=r"\sum_{c \in S} x_{wc} \le \sigma_w \lambda_w (1 + h)",
    symbols={
        "S": "candidates on spot nodes",
        "x_{wc}": "requests/s of workload w on candidate c",
        r"\sigma_w": "spot.max_share of workload w",
        r"\lambda_w": "demand, requests/s",
        "h": "reliability.headroom",
    },
    index=_index,
    rule=_rule,
    key_names=("workload",),
)
