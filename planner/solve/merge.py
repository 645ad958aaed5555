"""Put the replicas of one shape into one pool where that holds: fewer pools to run at the same nodes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from planner.program.data import Column, FleetProblem, by_model
from planner.solve.rating import AsStated, Rating
from planner.solve.routing import route
from planner.solve.spares import outlasts

Replicas = Mapping[str, int]


def merged(
    problem: FleetProblem, replicas: Replicas, placed: Mapping[tuple[str, str], int], rating: Rating
) -> tuple[dict[str, int], dict[tuple[str, str], int]]:
    """Return replicas and placement with each shape in as few candidates as carry the same demand, losses included.

    Pools that `rating` finds not to bear the mix of all are not put together.
    """
    now: dict[str, int] = {}
    where = dict(placed)
    for alone in by_model(problem).values():
        own = {c.name: replicas[c.name] for c in alone.columns if replicas.get(c.name, 0) > 0}
        fewer, moves = merged_alone(alone, own, rating)
        now |= fewer
        for source, target in moves:
            where = _moved(where, source, target)
    return now, where


def merged_alone(
    problem: FleetProblem, replicas: Replicas, rating: Rating
) -> tuple[dict[str, int], list[tuple[set[str], str]]]:
    """Return the replicas of one model with each shape in as few candidates, and what was moved into what."""
    fewest, moves = _merged(problem, replicas, AsStated())
    if not moves or rating.holds(problem, fewest):
        return fewest, moves
    return _merged(problem, replicas, rating)


def _merged(
    problem: FleetProblem, replicas: Replicas, rating: Rating
) -> tuple[dict[str, int], list[tuple[set[str], str]]]:
    now, moves = dict(replicas), []
    groups: dict[tuple[str, tuple[str, ...]], list[Column]] = defaultdict(list)
    for column in problem.columns:
        groups[column.shape, column.cells].append(column)
    for key in sorted(groups):
        used = {c.name for c in groups[key] if now.get(c.name, 0) > 0}
        if len(used) < 2:
            continue
        total = sum(now[name] for name in used)
        for target in _order(groups[key]):
            tried = {name: n for name, n in now.items() if name not in used} | {target.name: total}
            if target.min_replicas <= total and _holds(problem, tried, rating):
                now = tried
                moves.append((used, target.name))
                break
    return now, moves


def _order(columns: list[Column]) -> list[Column]:
    """Try first what serves most workloads, then the larger pool class."""
    return sorted(columns, key=lambda c: (-len(c.services), -c.min_replicas, c.name))


def _holds(problem: FleetProblem, replicas: Replicas, rating: Rating) -> bool:
    """Tell whether replicas of a model alone carry its demand."""
    model = problem.rules[0].model
    planned = {d.workload: d.planned_requests_per_s for d in problem.demands}
    own = {c.name: replicas[c.name] for c in problem.columns if replicas.get(c.name, 0) > 0}
    return route(problem, model, own, planned).carries and outlasts(problem, own) and rating.holds(problem, own)


def _moved(placed: Mapping[tuple[str, str], int], names: set[str], target: str) -> dict[tuple[str, str], int]:
    where: dict[tuple[str, str], int] = {}
    for (name, cell), count in placed.items():
        key = (target if name in names else name, cell)
        where[key] = where.get(key, 0) + count
    return where
