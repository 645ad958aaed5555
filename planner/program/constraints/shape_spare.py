"""Shape spare: a shape that is used loses at least one replica when one of its pools fails."""

from __future__ import annotations

from typing import Any

from planner.program.constraint import Constraint, Key
from planner.program.index import ProgramIndex


def _index(index: ProgramIndex) -> list[Key]:
    return [
        (model, shape, k)
        for model, shape in index.switchable_shapes
        if index.is_spared(model)
        for k in range(len(index.cover_weights[model]))
    ]


def _rule(model: Any, index: ProgramIndex, key: Key) -> Any:
    name, shape, k = key
    shares = [index.spare_shares.get((name, k), {}).get(c.name, 0.0) for c in index.shapes[name, shape]]
    if min(shares) == 0.0:
        return None
    return model.reach[name, k] - min(shares) * model.shape_used[name, shape] >= 1.0


CONSTRAINT = Constraint(
    name="shape_spare",
    unit="share of demand",
    sentence="Besides the demand, replicas reach at least what one replica of any shape in use carries.",
    math=r"R_k - \min_{c \in s} \min(1, r_c(\pi_k) / \pi_k\lambda)\, u_s \ge 1",
    symbols={
        "R_k": "what all replicas reach under weights k, as a share of the weighted demand (row total_reach)",
        r"\pi_k": "weights of the workloads",
        r"r_c(\pi)": "most weighted demand that one replica carries",
        r"\pi\lambda": "weighted demand, headroom not counted",
        "u_s": "1 if shape s is used",
    },
    index=_index,
    rule=_rule,
    key_names=("model", "shape", "weights"),
    strengthens=True,
)
