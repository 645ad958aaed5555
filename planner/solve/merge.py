"""Put the replicas of one shape into one pool where that holds: fewer pools to run at the same nodes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from planner.program.data import Column, FleetProblem, spares_by_candidate
from planner.solve.routing import route, route_outage, survives

Replicas = Mapping[str, int]


def merged(
    problem: FleetProblem, replicas: Replicas, placed: Mapping[tuple[str, str], int]
) -> tuple[dict[str, int], dict[tuple[str, str], int]]:
    """Return replicas and placement with each shape in as few candidates as carry the same demand, losses included."""
    now, where = dict(replicas), dict(placed)
    groups: dict[tuple[str, str, tuple[str, ...]], list[Column]] = defaultdict(list)
    for column in problem.columns:
        groups[column.model, column.shape, column.cells].append(column)
    for key in sorted(groups):
        used = [c for c in groups[key] if now.get(c.name, 0) > 0]
        if len(used) < 2:
            continue
        total = sum(now[c.name] for c in used)
        for target in _order(groups[key]):
            tried = {name: n for name, n in now.items() if name not in {c.name for c in used}} | {target.name: total}
            if target.min_replicas <= total and _holds(problem, target.model, tried):
                now, where = tried, _moved(where, {c.name for c in used}, target.name)
                break
    return now, where


def _order(columns: list[Column]) -> list[Column]:
    """Try first what serves most workloads, then the larger pool class."""
    return sorted(columns, key=lambda c: (-len(c.services), -c.min_replicas, c.name))


def _holds(problem: FleetProblem, model: str, replicas: Replicas) -> bool:
    spares = spares_by_candidate(problem)
    planned = {d.workload: d.planned_requests_per_s for d in problem.demands_of(model)}
    if not route(problem, model, replicas, planned).carries:
        return False
    pools = [c for c in problem.columns_of(model) if replicas.get(c.name, 0) > 0]
    if not all(route_outage(problem, o, replicas).carries for o in problem.outages if o.model == model):
        return False
    return all(survives(problem, c, replicas, spares[c.name]) for c in pools if spares[c.name] > 0)


def _moved(placed: Mapping[tuple[str, str], int], names: set[str], target: str) -> dict[tuple[str, str], int]:
    where: dict[tuple[str, str], int] = {}
    for (name, cell), count in placed.items():
        key = (target if name in names else name, cell)
        where[key] = where.get(key, 0) + count
    return where
