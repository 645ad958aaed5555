"""How far traffic may grow before a fixed fleet breaks a rule: of one workload beside the others, and of all together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import takewhile

from planner.candidates.types import CandidateTable
from planner.parallel import LEAST_MODELS_SHARED_OUT, in_order
from planner.physics.constants import SpeedConstants
from planner.plan.assess import PoolLoad, missed
from planner.plan.pools import pool_loads
from planner.plan.rerate import degraded, of_model, routes
from planner.plan.reroute import reroutes
from planner.program.data import Column, Demand, FleetProblem, Outage, by_model, spares_by_candidate
from planner.solve.outcome import Solution
from planner.solve.routing import most_rate, route_freely, route_outage, route_without

Group = tuple[str, ...]
"""Workloads that grow together."""

JUST_BELOW = 0.999  # at the very limit both sides are the same within rounding
STEPS = 8  # demands that are tried between the planned one and the most that the rows allow


@dataclass(frozen=True)
class Growth:
    """How far the demands of a plan may grow, without headroom: each beside the others, and all by one factor.

    `next_step` and `capacity` (this one with headroom, and with no loss of spares) are requests/s by workload. There is no
    factor where there is no demand.
    """

    capacity: Mapping[str, float]
    next_step: Mapping[str, float]
    common_factor: float | None


def growth_of(table: CandidateTable, problem: FleetProblem, solution: Solution, constants: SpeedConstants) -> Growth:
    """Return how far traffic may grow on the replicas of a solution, with candidates as rated at the mix they got.

    The program's rows say how far at most. A pool whose mix shifts by it may miss a limit before: where several
    workloads share a model, demands up to there are tried, and the last one before any pool misses anything counts.
    """
    tables = table.by_model()
    fixed = [_FixedModel(m, tables[m], own, of_model(solution, own)) for m, own in by_model(problem).items()]
    capacity: dict[str, float] = {}
    next_step: dict[str, float] = {}
    factors: list[float] = []
    for own in in_order(lambda each: each.growth(constants), fixed, least_items=LEAST_MODELS_SHARED_OUT):
        capacity |= own.capacity
        next_step |= own.next_step
        factors += [own.common_factor] if own.common_factor is not None else []
    return Growth(capacity, next_step, min(factors, default=None))


@dataclass(frozen=True)
class _FixedModel:
    """The replicas of one model under other demands: table, problem and solution are those of the model alone."""

    model: str
    table: CandidateTable
    problem: FleetProblem
    solution: Solution

    def growth(self, constants: SpeedConstants) -> Growth:
        demands = {d.workload: d.requests_per_s for d in self.demands}
        capacity = {w: self.capacity(w) for w in demands}
        most = {(w,): self.rows_hold_to(w, capacity[w]) / demands[w] for w in demands} | {tuple(demands): self.factor()}
        held = self.held({group: max(1.0, factor) for group, factor in most.items()}, constants)
        return Growth(capacity, {w: demands[w] * held[w,] for w in demands}, held[tuple(demands)])

    @cached_property
    def used(self) -> CandidateTable:
        """The table with the candidates in use alone."""
        own = tuple(c for c in self.table.candidates if c.name in self.solution.replicas)
        return replace(self.table, candidates=own)

    @cached_property
    def demands(self) -> tuple[Demand, ...]:
        return self.problem.demands_of(self.model)

    @cached_property
    def pools(self) -> list[Column]:
        return [c for c in self.problem.columns_of(self.model) if self.solution.replicas.get(c.name, 0) > 0]

    @cached_property
    def outages(self) -> list[Outage]:
        return [o for o in self.problem.outages if o.model == self.model]

    @cached_property
    def spares(self) -> dict[str, int]:
        """Replicas that each pool in use may lose at once, where it may lose any."""
        spares = spares_by_candidate(self.problem)
        return {c.name: spares[c.name] for c in self.pools if spares[c.name] > 0}

    def capacity(self, workload: str) -> float:
        """Return the most requests/s of a workload that the rows carry while the others keep their planned rates."""
        planned = {d.workload: d.planned_requests_per_s for d in self.demands}
        return most_rate(self.problem, self.model, self.solution.replicas, planned, workload)

    def rows_hold_to(self, workload: str, capacity: float) -> float:
        """Return the demand that the rows still carry, whole and in every loss that the model is to survive."""
        demand = {d.workload: d.requests_per_s for d in self.demands}
        least = capacity / (1.0 + next(d.headroom for d in self.demands if d.workload == workload))
        replicas = self.solution.replicas
        lefts = [{**replicas, lost: max(0, replicas[lost] - spares)} for lost, spares in self.spares.items()]
        for outage in self.outages:
            gone = {c.name for c in self.pools if c.zone == outage.zone}
            lefts.append({name: n for name, n in replicas.items() if name not in gone})
        for left in lefts:
            least = min(least, most_rate(self.problem, self.model, left, demand, workload, in_loss=True))
        return least

    def factor(self) -> float:
        """Return the factor on all demands of the model that the rows still carry."""
        planned = {d.workload: d.planned_requests_per_s for d in self.demands}
        loads = [route_freely(self.problem, self.model, self.solution.replicas, planned).load]
        for lost in (c for c in self.pools if c.name in self.spares):
            loads.append(route_without(self.problem, lost, self.solution.replicas, self.spares[lost.name]).load)
        loads += [route_outage(self.problem, outage, self.solution.replicas).load for outage in self.outages]
        return 1.0 / max(loads)

    def held(self, most: Mapping[Group, float], constants: SpeedConstants) -> dict[Group, float]:
        """Return, for groups of workloads, the factor on their demand that all pools bear within their limits."""
        if len(self.demands) == 1:
            return dict(most)
        tried = [(group, share) for group in most for share in _shares(most[group])]
        loads = [self._loads(group, share) for group, share in tried]
        flat = [(i, load) for i, each in enumerate(loads) for load in each or ()]
        model = self.table.models[self.model]
        missing = missed(model, self.table.workloads, [load for _, load in flat], constants)
        broken = {i for (i, _), miss in zip(flat, missing, strict=True) if miss}
        broken |= {i for i, each in enumerate(loads) if each is None}
        found: dict[Group, float] = {}
        for group, factor in most.items():
            shares = [(share, i not in broken) for i, (g, share) in enumerate(tried) if g == group]
            good = [share for share, _ in takewhile(lambda each: each[1], shares)]
            found[group] = factor if len(good) == len(shares) else max(good, default=1.0)
        return found

    def _loads(self, group: Group, factor: float) -> list[PoolLoad] | None:
        """Return the loads of all pools, whole and in every loss of spares; None where the rows do not carry them."""
        problem = scaled(self.problem, dict.fromkeys(group, factor))
        solution = self.solution
        rates = routes(problem, solution.replicas)
        if rates is None:
            return None
        pools = pool_loads(self.used, replace(solution, rates=rates))
        rerouted = reroutes(problem, solution, pools)
        if rerouted is None:
            return None
        return [*(load for _, load in pools), *degraded(pools, rerouted, problem)]


def _shares(most: float) -> list[float]:
    return [1.0 + (JUST_BELOW * most - 1.0) * step / STEPS for step in range(1, STEPS + 1)] if most > 1.0 else []


def scaled(problem: FleetProblem, factors: Mapping[str, float]) -> FleetProblem:
    """Return a program with the demand of some workloads multiplied."""
    demands = tuple(replace(d, requests_per_s=d.requests_per_s * factors.get(d.workload, 1.0)) for d in problem.demands)
    return replace(problem, demands=demands)
