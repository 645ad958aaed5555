"""Whether a fleet carries its demand within shares of spot and through every loss, by a linear program for each case."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from scipy.optimize import linprog

from planner.program.data import Demand, FleetProblem, ModelRules
from planner.program.index import row_needs


def withstands(problem: FleetProblem, rule: ModelRules, replicas: Mapping[str, int]) -> bool:
    """Tell whether a model is served as planned, with the spares of any pool gone, and with any zone gone."""
    if not carried(problem, rule.model, replicas, in_loss=False):
        return False
    on_node = {c.name: c.node_replicas for c in problem.columns}
    for name, count in replicas.items():
        spares = max(rule.spare_replicas, on_node[name])
        left = dict(replicas) | {name: max(0, count - spares)}
        if count and spares and not carried(problem, rule.model, left, in_loss=True):
            return False
    zones = {c.name: c.zone for c in problem.columns}
    outages = [o.zone for o in problem.outages if o.model == rule.model]
    rest = [{n: k for n, k in replicas.items() if zones[n] != zone} for zone in outages]
    return all(carried(problem, rule.model, left, in_loss=True) for left in rest)


def carried(problem: FleetProblem, model: str, replicas: Mapping[str, int], *, in_loss: bool) -> bool:
    columns = [c for c in problem.columns_of(model) if replicas.get(c.name, 0) > 0]
    arcs = [(d, c) for d in problem.demands_of(model) for c in columns if d.workload in c.services]
    demands = problem.demands_of(model)
    due = [d.requests_per_s if in_loss else d.planned_requests_per_s for d in demands]
    if not all(any(a is d for a, _ in arcs) for d in demands):
        return False
    needs = [row_needs(c, c.services[d.workload]) for d, c in arcs]
    capacity = [
        [n[row] * (c is own) for n, (_, c) in zip(needs, arcs, strict=True)] for own in columns for row in range(5)
    ]
    spot = [[float(a is d and c.spot) for a, c in arcs] for d in demands]
    shares = [d.spot_share if limited(d, in_loss) else 1.0 for d in demands]
    found = linprog(
        np.zeros(len(arcs)),
        A_ub=np.array(capacity + spot),
        b_ub=[
            *(float(replicas[c.name]) for c in columns for _ in range(5)),
            *(s * r for s, r in zip(shares, due, strict=True)),
        ],
        A_eq=np.array([[float(a is d) for a, _ in arcs] for d in demands]),
        b_eq=due,
    )
    return bool(found.status == 0)


def limited(demand: Demand, in_loss: bool) -> bool:
    return demand.on_demand_floor or not in_loss
