"""Spare: with k replicas of any one pool gone, the others still reach the demand."""

from __future__ import annotations

from typing import Any

from pyomo.environ import quicksum

from planner.program.constraint import Constraint, Key
from planner.program.index import ProgramIndex


def _index(index: ProgramIndex) -> list[Key]:
    return [(c, k) for c in index.spared for k in range(len(index.cover_weights[index.columns[c].model]))]


def _rule(model: Any, index: ProgramIndex, key: Key) -> Any:
    lost, k = index.columns[key[0]], key[1]
    weights = index.cover_weights[lost.model][k]
    due = sum(weights.get(d.workload, 0.0) * d.requests_per_s for d in index.demands_of[lost.model])
    if due <= 0.0:
        return None
    share = {c.name: min(index.reach[c.name, k], due) / due for c in index.by_model[lost.model]}
    others = [share[c] * model.replicas[c] for c in share if c != lost.name and share[c] > 0.0]
    return quicksum(others) + share[lost.name] * model.surviving[lost.name] >= 1.0


CONSTRAINT = Constraint(
    name="spare",
    unit="share of demand",
    sentence="With any reliability.spare_replicas replicas of one pool gone, the remaining replicas reach the demand.",
    math=r"\sum_{c' \ne c} \min(1, r_{c'}(\pi) / \pi\lambda)\, n_{c'} + \min(1, r_c(\pi) / \pi\lambda)\, q_c \ge 1",
    symbols={
        r"\pi": "weights of the workloads: each alone, and all by their cheapest price",
        r"r_c(\pi)": "most weighted demand that one replica carries",
        r"\pi\lambda": "weighted demand, headroom not counted",
        "n_c": "replicas",
        "q_c": "replicas of pool c that survive",
    },
    index=_index,
    rule=_rule,
    key_names=("candidate", "weights"),
)
