"""Spot cover: whole replicas off spot nodes reach what may not be served there."""

from __future__ import annotations

from typing import Any

from pyomo.environ import quicksum

from planner.program.constraint import Constraint, Key
from planner.program.index import ProgramIndex


def _index(index: ProgramIndex) -> list[Key]:
    limited = {d.model for d in index.problem.demands if d.spot_share < 1.0 and index.spot_columns(d.workload)}
    return [(m, k) for m in sorted(limited) for k in range(len(index.cover_weights[m]))]


def _rule(model: Any, index: ProgramIndex, key: Key) -> Any:
    name, k = key
    due = {d.workload: (1.0 - d.spot_share) * d.planned_requests_per_s for d in index.demands_of[name]}
    shares = index.reach_shares(name, k, due)
    steady = [c.name for c in index.by_model[name] if not c.spot and c.name in shares]
    if not steady:
        return None
    return quicksum(shares[c] * model.replicas[c] for c in steady) >= 1.0


CONSTRAINT = Constraint(
    name="spot_cover",
    unit="share of demand",
    sentence="Whole replicas on other than spot nodes reach the demand that spot nodes may not serve.",
    math=r"\sum_{c \notin S} \min(1, r_c(\pi) / \pi\mu)\, n_c \ge 1, \quad \mu_w = (1 - \sigma_w) \lambda_w (1 + h)",
    symbols={
        "S": "candidates on spot nodes",
        r"\pi": "weights of the workloads: each alone, all by their cheapest price, and those found by routing",
        r"r_c(\pi)": "most weighted demand that one replica carries",
        r"\mu_w": "demand of workload w that spot nodes may not serve, requests/s",
        r"\sigma_w": "spot.max_share of workload w",
        r"\lambda_w": "demand, requests/s",
        "h": "reliability.headroom",
        "n_c": "replicas",
    },
    index=_index,
    rule=_rule,
    key_names=("model", "weights"),
    strengthens=True,
)
