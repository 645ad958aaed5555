"""The left side that all capacity rows share: a sum over the workloads that a candidate serves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyomo.environ import quicksum

from planner.program.data import Column, Service

GB = 1e9  # rows are stated in GB and TFLOP, so that coefficients stay near 1
TFLOP = 1e12


def served_sum(model: Any, column: Column, amount: Callable[[Service], float]) -> Any:
    """Sum `amount` per request times rate over the workloads that the candidate serves."""
    return quicksum(amount(s) * model.rate[w, column.name] for w, s in sorted(column.services.items()))
