"""What several constraints share: rows by candidate, what a candidate serves, what it loses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyomo.environ import quicksum

from planner.program.constraint import Key
from planner.program.data import Column, Service
from planner.program.index import ProgramIndex

GB = 1e9  # rows are stated in GB and TFLOP, so that coefficients stay near 1
TFLOP = 1e12


def each_candidate(index: ProgramIndex) -> list[Key]:
    """Index a row by candidate, those that serve nothing left out."""
    return [(name,) for name, column in index.columns.items() if column.services]


def served_sum(model: Any, column: Column, amount: Callable[[Service], float]) -> Any:
    """Sum `amount` per request times rate over the workloads that the candidate serves."""
    return quicksum(amount(s) * model.rate[w, column.name] for w, s in sorted(column.services.items()))


def lost_replicas(model: Any, index: ProgramIndex, column: Column) -> Any:
    """Return what a pool loses when it fails: its spares if it is in use, or the variable of row `pool_loss`."""
    if column.name in model.lost:
        return model.lost[column.name]
    return index.spares[column.name] * model.pool_open[column.name]
