"""What several constraints share: rows by candidate, what a candidate serves, what it loses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyomo.environ import quicksum

from planner.program.constraint import Key
from planner.program.data import Column, Flow, Service
from planner.program.index import ProgramIndex

GB = 1e9  # rows are stated in GB and TFLOP, so that coefficients stay near 1
TFLOP = 1e12


def each_candidate(index: ProgramIndex) -> list[Key]:
    """Index a row by candidate, those that serve nothing left out."""
    return [(name,) for name, column in index.columns.items() if column.services]


def served_sum(model: Any, column: Column, amount: Callable[[Service], float]) -> Any:
    """Sum `amount` per request times rate over the workloads that the candidate serves."""
    return quicksum(
        sum(share * amount(column.services[w]) for w, share in flow.items()) * model.rate[flow_key(column, flow)]
        for flow in column.flows
    )


def flow_key(column: Column, flow: Flow) -> tuple[str, str]:
    """Return the key of the variable of a flow: its workloads, joined, and the candidate."""
    return "+".join(flow), column.name


def rate_of(model: Any, column: Column, workload: str) -> Any:
    """Return the requests/s of a workload on a candidate."""
    return quicksum(flow[workload] * model.rate[flow_key(column, flow)] for flow in column.flows if workload in flow)


def lost_replicas(model: Any, index: ProgramIndex, column: Column) -> Any:
    """Return what a pool loses when it fails: its spares if it is in use, or the variable of row `pool_loss`."""
    if column.name in model.lost:
        return model.lost[column.name]
    return index.spares[column.name] * model.pool_open[column.name]
