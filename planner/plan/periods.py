"""The fleet of one period, cut out of a fleet that was planned for all periods at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeVar

from planner.candidates.periods import InPeriod
from planner.candidates.types import Candidate
from planner.plan.pools import pool_loads
from planner.plan.rerate import Settled
from planner.plan.reroute import reroutes
from planner.program.data import FleetProblem, node_cost, penalties
from planner.program.limits import node_offer
from planner.program.problem import fleet_problem
from planner.solve.outcome import Solution
from planner.solve.packing import PackedNode, Packing

Value = TypeVar("Value")


def in_period(part: InPeriod, found: Settled, packing: Packing) -> tuple[Settled, Packing]:
    """Return the fleet of a period and its nodes, under the names and at the hourly prices of the spec."""
    own = _packing(part, packing)
    rated = {c.name: c for c in found.table.candidates}
    candidates = tuple(_as_rated(part, c, rated[part.name(c.name)]) for c in part.table.candidates)
    table = replace(part.table, candidates=candidates)
    bought = {part.offer(o.name) for o in found.problem.offers}
    offers = tuple(node_offer(o) for o in table.supply.offers if o.name in bought)
    problem = replace(fleet_problem(part.spec, table, {}), offers=offers)
    solution = _solution(part, problem, found.solution, own)
    pools = pool_loads(table, solution)
    rerouted = reroutes(problem, solution, pools)
    if rerouted is None:
        raise ValueError(f"a loss in period {part.period.name} is not carried, though it was when all were settled")
    return Settled(table, problem, solution, pools, rerouted), own


def _as_rated(part: InPeriod, candidate: Candidate, copy: Candidate) -> Candidate:
    """Return a candidate with what its copy for the period bears and runs with."""
    return replace(candidate, services=_own(part, copy.services), max_num_seqs=copy.max_num_seqs)


def _solution(part: InPeriod, problem: FleetProblem, whole: Solution, packing: Packing) -> Solution:
    replicas = _own(part, whole.replicas)
    nodes = packing.count()
    prices = {o.name: node_cost(problem, o) for o in problem.offers}
    cost = sum(prices[name] * count for name, count in nodes.items()) + penalties(problem, replicas)
    return Solution(
        replicas=replicas,
        nodes=nodes,
        rates=_own_pairs(part, whole.rates),
        placed=_own_places(part, whole.placed),
        cost=cost,
        bound=cost,
    )


def _packing(part: InPeriod, packing: Packing) -> Packing:
    nodes = tuple(
        PackedNode(base, node.gpus, _own(part, node.occupants))
        for node in packing.nodes
        if (base := part.offer(node.offer)) is not None
    )
    return Packing(nodes, _own_places(part, packing.replicas_on))


def _own(part: InPeriod, values: Mapping[str, Value]) -> dict[str, Value]:
    """Return the values of the copies for a period, by the names that they are copies of."""
    named = ((part.base(name), value) for name, value in values.items())
    return {base: value for base, value in named if base is not None}


def _own_pairs(part: InPeriod, values: Mapping[tuple[str, str], Value]) -> dict[tuple[str, str], Value]:
    named = ((part.base(a), part.base(b), value) for (a, b), value in values.items())
    return {(a, b): value for a, b, value in named if a is not None and b is not None}


def _own_places(part: InPeriod, counts: Mapping[tuple[str, str], int]) -> dict[tuple[str, str], int]:
    """Return replicas by candidate and place (cell or offer) in a period."""
    named = ((part.base(a), part.offer(b), count) for (a, b), count in counts.items())
    return {(a, b): count for a, b, count in named if a is not None and b is not None}
