"""Zone cover: without any one zone, whole replicas still reach the demand of a model that is to survive its loss."""

from __future__ import annotations

from typing import Any

from pyomo.environ import quicksum

from planner.program.constraint import Constraint, Key
from planner.program.index import ProgramIndex


def _index(index: ProgramIndex) -> list[Key]:
    return [(o.model, o.zone, k) for o in index.problem.outages for k in range(len(index.cover_weights[o.model]))]


def _rule(model: Any, index: ProgramIndex, key: Key) -> Any:
    name, zone, k = key
    shares = index.reach_shares(name, k, {d.workload: d.requests_per_s for d in index.demands_of[name]})
    left = [c.name for c in index.by_model[name] if c.zone != zone and c.name in shares]
    if not left:
        return None
    return quicksum(shares[c] * model.replicas[c] for c in left) >= 1.0


CONSTRAINT = Constraint(
    name="zone_cover",
    unit="share of demand",
    sentence="With all nodes of one zone gone, the replicas elsewhere reach the demand of a model that is to survive that.",
    math=r"\sum_{c \notin z} \min(1, r_c(\pi_k) / \pi_k\lambda)\, n_c \ge 1",
    symbols={
        "z": "zone: provider and region, or site of owned nodes",
        r"\pi_k": "weights of the workloads: each alone, all by their cheapest price, and those found by routing",
        r"r_c(\pi)": "most weighted demand that one replica carries",
        r"\pi\lambda": "weighted demand, headroom not counted",
        "n_c": "replicas",
    },
    index=_index,
    rule=_rule,
    key_names=("model", "zone", "weights"),
)
