"""How many replicas of a size the supply program allows: as many as the candidates of that size may need together."""

from __future__ import annotations

from dataclasses import replace

from problems import EVERYTHING

from planner.program.index import ProgramIndex
from planner.program.supply import Needs, Size, compile_supply


def test_candidates_of_one_size_that_serve_different_workloads_add_up() -> None:
    column = next(c for c in EVERYTHING.columns if len(c.services) > 1)
    halves = tuple(
        replace(column, name=f"{column.name}-{w}", services={w: service}) for w, service in column.services.items()
    )
    problem = replace(EVERYTHING, columns=(*EVERYTHING.columns_of("giant"), *halves), losses=(), cover_weights=())
    index = ProgramIndex(problem)
    supply = compile_supply(problem, Needs.of(problem))
    at = supply.columns.index(("replicas", Size.of(column).name))

    assert supply.upper[at] >= sum(index.most_replicas[c.name] for c in halves)
