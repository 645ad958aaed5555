"""Spare: with k replicas of any one pool gone, the others still reach the demand."""

from __future__ import annotations

from typing import Any

from planner.program.capacity import lost_replicas
from planner.program.constraint import Constraint, Key
from planner.program.index import ProgramIndex


def _index(index: ProgramIndex) -> list[Key]:
    return [(c, k) for c in index.spared for k in range(len(index.cover_weights[index.columns[c].model]))]


def _rule(model: Any, index: ProgramIndex, key: Key) -> Any:
    lost, k = index.columns[key[0]], key[1]
    share = index.spare_shares.get((lost.model, k), {}).get(lost.name, 0.0)
    if share == 0.0:
        return None
    return model.reach[lost.model, k] - share * lost_replicas(model, index, lost) >= 1.0


CONSTRAINT = Constraint(
    name="spare",
    unit="share of demand",
    sentence="With any reliability.spare_replicas replicas of one pool gone, or those of a node, the others reach the demand.",
    math=r"R_k - \min(1, r_c(\pi_k) / \pi_k\lambda)\, l_c \ge 1",
    symbols={
        "R_k": "what all replicas reach under weights k, as a share of the weighted demand (row total_reach)",
        r"\pi_k": "weights of the workloads: each alone, and all by their cheapest price",
        r"r_c(\pi)": "most weighted demand that one replica carries",
        r"\pi\lambda": "weighted demand, headroom not counted",
        "l_c": "replicas of pool c that are lost",
    },
    index=_index,
    rule=_rule,
    key_names=("candidate", "weights"),
)
