"""Cover: whole replicas must reach the demand, whatever the routing (a clipped knapsack cover)."""

from __future__ import annotations

from typing import Any

from pyomo.environ import quicksum

from planner.program.constraint import Constraint, Key
from planner.program.index import ProgramIndex


def _index(index: ProgramIndex) -> list[Key]:
    return [(m, k) for m, rows in index.cover_weights.items() for k in range(len(rows))]


def _rule(model: Any, index: ProgramIndex, key: Key) -> Any:
    name, k = key
    weights = index.cover_weights[name][k]
    due = sum(weights.get(d.workload, 0.0) * d.planned_requests_per_s for d in index.demands_of[name])
    if due <= 0.0:
        return None
    reach = {c.name: min(index.planned_reach(c, k), due) / due for c in index.by_model[name]}
    return quicksum(share * model.replicas[c] for c, share in reach.items() if share > 0.0) >= 1.0


CONSTRAINT = Constraint(
    name="cover",
    unit="share of demand",
    sentence="Whole replicas reach the demand whatever the routing; a replica counts for no more than all of it.",
    math=r"\sum_c \min(1, r_c(\pi) / \pi\lambda)\, n_c \ge 1",
    symbols={
        r"\pi": "weights of the workloads: each alone, and all by their cheapest price",
        r"r_c(\pi)": "most weighted demand that one replica carries",
        r"\pi\lambda": "weighted demand",
        "n_c": "replicas",
    },
    index=_index,
    rule=_rule,
    key_names=("model", "weights"),
    strengthens=True,
)
