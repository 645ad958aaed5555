"""Total reach: what all replicas of a model carry at most, as a share of its demand; the sum that spare rows take from."""

from __future__ import annotations

from typing import Any

from pyomo.environ import quicksum

from planner.program.constraint import Constraint, Key
from planner.program.index import ProgramIndex


def _index(index: ProgramIndex) -> list[Key]:
    return list(index.spare_shares)


def _rule(model: Any, index: ProgramIndex, key: Key) -> Any:
    shares = index.spare_shares[key]
    return model.reach[key] <= quicksum(share * model.replicas[c] for c, share in shares.items())


CONSTRAINT = Constraint(
    name="total_reach",
    unit="share of demand",
    sentence="The reach of a model is what all its replicas carry; a replica counts for no more than all of the demand.",
    math=r"R_k \le \sum_c \min(1, r_c(\pi_k) / \pi_k\lambda)\, n_c",
    symbols={
        "R_k": "reach of the model under weights k, as a share of the weighted demand",
        r"\pi_k": "weights of the workloads: each alone, and all by their cheapest price",
        r"r_c(\pi)": "most weighted demand that one replica carries",
        r"\pi\lambda": "weighted demand, headroom not counted",
        "n_c": "replicas",
    },
    index=_index,
    rule=_rule,
    key_names=("model", "weights"),
)
