"""Solve a fleet problem: compile, minimise, and prove that every pool may lose its spares."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from threading import Event

import numpy as np

from planner.program.data import FleetProblem, node_cost, penalties
from planner.program.fleet import TIE_BREAK_PER_RANK, TIE_BREAK_USD_PER_GPU_H
from planner.solve.brake import stopped_by
from planner.solve.merge import merged
from planner.solve.nodes import buy_nodes
from planner.solve.outcome import Infeasible, Outcome, Solution, Solved, Unproven, Unsolved
from planner.solve.packing import Packing, pack
from planner.solve.rating import AsStated, Rating
from planner.solve.routing import route, spread
from planner.solve.search import MOST_BRANCHES, MOST_RATINGS, Aim, Search
from planner.solve.tolerance import GAP_ATOL
from planner.solve.whole import Found, solve_whole

LEAST_TIME_S = 0.01
GAP_SHARE_FOR_SEARCH = 0.98  # the search aims below the gap asked for, so that tie-breaks and rounding do not exceed it
MOST_COLUMNS_SOON = 1500  # candidates; with more, the whole program is not worth a try before the search by models
NEAR_GAP = 0.05  # a fleet so near its bound is best finished by the whole program
WORK_SOON = 4_000_000  # nodes of the whole program times candidates, before the search by models branches
FIRST_NODES = 20  # of the whole program where no fleet is known
MOST_MODELS_WHOLE = 12  # beyond that the whole program brings nothing within minutes

MOST_COLUMNS_WHOLE = (
    500  # candidates; of so few it may bring much, whichever models (or steps and periods of them) they are of
)


@dataclass(frozen=True)
class SolveLimits:
    """What a solve aims for and when it stops.

    `is_brief` leaves out the search by models beyond its first branch, as where any answer will do. `deadline_s` is a moment of `time.monotonic`: an emergency brake, after which what was found is returned, unproven.
    `interrupt` is another: once it is set, searches that run are stopped too.
    """

    gap: float
    deadline_s: float | None = None
    max_nodes: int | None = None
    is_brief: bool = False
    interrupt: Event | None = None

    @property
    def is_interrupted(self) -> bool:
        """Tell whether someone asked to stop."""
        return self.interrupt is not None and self.interrupt.is_set()

    @property
    def is_over(self) -> bool:
        """Tell whether the deadline has passed, or someone asked to stop."""
        return self.is_interrupted or (self.deadline_s is not None and time.monotonic() >= self.deadline_s)

    @property
    def time_left_s(self) -> float | None:
        """Seconds until the deadline, None without one."""
        if self.is_interrupted:
            return LEAST_TIME_S
        return None if self.deadline_s is None else max(LEAST_TIME_S, self.deadline_s - time.monotonic())


@dataclass(frozen=True)
class Answered:
    """The outcome of a solve, the nodes its replicas lie on, and the problem with all rows that were added on the way.

    `search` goes on from what is known.
    """

    outcome: Outcome
    packing: Packing | None
    problem: FleetProblem
    search: Search | None = None

    @property
    def first_bound(self) -> float:
        """A bound for the problem as it was first rated, tie-breaks included."""
        return 0.0 if self.search is None else self.search.first_bound()


def solve(problem: FleetProblem, limits: SolveLimits, rating: Rating | None = None) -> Answered:
    """Minimise the fleet's cost, starting from every model's own optimum, lowered by `rating` where its pools do not hold."""
    unserved = without_candidates(problem)
    if unserved is not None:
        return Answered(unserved, None, problem)
    return _solve(Search.of(problem, rating or AsStated()), limits)


def mend(answered: Answered, problem: FleetProblem, limits: SolveLimits, changed: Collection[str]) -> Answered:
    """Solve again after the capacities of some candidates of the models `changed` fell, as `problem` states them.

    With no model changed, the search goes on where it ended.

    The bounds of `answered` still hold, because capacities only fall. The bound that follows is that of the problem as it
    is now rated.
    """
    unserved = without_candidates(problem)
    if unserved is not None or answered.search is None:
        return Answered(unserved or Infeasible("there is nothing to mend"), None, problem)
    if changed:
        answered.search.lower(problem, changed)
    return _solve(answered.search, limits)


def without_candidates(problem: FleetProblem) -> Infeasible | None:
    """Return which workloads no candidate can serve, as they are or without a zone; None where all are served."""
    served = {w for c in problem.columns for w in c.services}
    missing = sorted(d.workload for d in problem.demands if d.workload not in served)
    if missing:
        return Infeasible(f"no candidate can serve {', '.join(missing)}")
    for outage in problem.outages:
        left = {w for c in problem.columns_of(outage.model) if c.zone != outage.zone for w in c.services}
        missing = [d.workload for d in problem.demands_of(outage.model) if d.workload not in left]
        if missing:
            return Infeasible(f"without zone {outage.zone}, no candidate can serve {', '.join(missing)}")
    return None


def _solve(search: Search, limits: SolveLimits) -> Answered:
    """Search by models; for few models, the whole program takes over where the search leaves a gap."""
    aim = Aim(limits.gap * GAP_SHARE_FOR_SEARCH, lambda: limits.is_over, lambda: limits.time_left_s)
    few = len(search.problem.rules) <= MOST_MODELS_WHOLE or len(search.problem.columns) <= MOST_COLUMNS_WHOLE
    # A deadline waits for a first fleet; one who asks to stop does not.
    with stopped_by(lambda: limits.is_interrupted or (limits.is_over and search.best is not None)):
        search.run(aim, branches=0 if few else 1 if limits.is_brief else MOST_BRANCHES)
        if few:
            near = replace(aim, gap=NEAR_GAP)
            search.run(near, branches=1)
            if search.best is None:  # plans that are known do not fit together: any fleet is worth having
                _finish(search, near, replace(limits, max_nodes=limits.max_nodes or FIRST_NODES))
                search.run(near, branches=1)
            if not limits.is_brief:
                columns = len(search.problem.columns)
                if columns <= MOST_COLUMNS_SOON:
                    _finish(search, aim, replace(limits, max_nodes=limits.max_nodes or WORK_SOON // columns))
                search.run(aim)
            _finish(search, aim, limits)
    if search.unserved:
        names = ", ".join(search.unserved)
        reason = f"no number of replicas that the stock allows meets the rules of model {names}, whatever it may cost"
        return Answered(Infeasible(reason), None, search.problem)
    problem = search.stated()
    if search.best is None:
        proven = search.bound == np.inf
        reason = "no whole number of nodes meets every row of the program"
        ended = Infeasible(reason) if proven else Unsolved("a limit was reached before any fleet was found")
        return Answered(ended, None, problem, search)
    outcome, packing = _outcome(problem, search, Found.of(search.best).replicas, search.bound, limits)
    return Answered(outcome, packing, problem, search)


def _finish(search: Search, aim: Aim, limits: SolveLimits) -> None:
    """Minimise the whole program, again where the pools of its fleet do not bear their mix."""
    for _ in range(MOST_RATINGS):
        if not search.is_open(aim) or limits.is_over or limits.max_nodes == 0:
            return
        known = None if search.best is None else Found.of(search.best)
        whole = solve_whole(search.stated(), search.bounds(aim), known, search.bound, aim.gap, limits)
        if search.learn(whole):
            return


def _outcome(
    problem: FleetProblem, search: Search, replicas: Mapping[str, int], bound: float, limits: SolveLimits
) -> tuple[Outcome, Packing]:
    """Buy the cheapest nodes that hold the replicas, and route."""
    nodes, placed = buy_nodes(problem, search.supply, replicas)
    least = _bound_without_tie_break(problem, bound)
    solution, packing = routed(problem, replicas, nodes, placed, least, search.rating)
    if solution.gap <= limits.gap + GAP_ATOL:
        return Solved(solution), packing
    return Unproven(solution, "the gap to the proven bound is above the one asked for"), packing


def routed(
    problem: FleetProblem,
    replicas: Mapping[str, int],
    nodes: Mapping[str, int],
    placed: Mapping[tuple[str, str], int],
    bound: float,
    rating: Rating,
) -> tuple[Solution, Packing]:
    """Put replicas of one shape together, pack them on the nodes, and route the demand over them."""
    replicas, placed = merged(problem, replicas, placed, rating)
    packing = pack(problem, nodes, placed)
    used = packing.count()
    prices = {o.name: node_cost(problem, o) for o in problem.offers}
    cost = sum(prices[name] * count for name, count in used.items()) + penalties(problem, replicas)
    solution = Solution(
        replicas=dict(sorted(replicas.items())),
        nodes=used,
        rates=_rates(problem, replicas),
        placed=dict(sorted(placed.items())),
        cost=cost,
        bound=min(cost, bound),
    )
    return solution, packing


def _rates(problem: FleetProblem, replicas: Mapping[str, int]) -> dict[tuple[str, str], float]:
    rates: dict[tuple[str, str], float] = {}
    for rule in problem.rules:
        demand = {d.workload: d.planned_requests_per_s for d in problem.demands_of(rule.model)}
        routing = route(problem, rule.model, replicas, demand)
        rates.update(spread(problem, rule.model, replicas, routing).rates)
    return dict(sorted(rates.items()))


def _bound_without_tie_break(problem: FleetProblem, bound: float) -> float:
    """Turn a bound on cost plus tie-break into one on cost alone: the tie-break is at most this share of any node."""
    stock = {s.entry: s.available or 0 for s in problem.stock}
    share = 0.0
    free: dict[str, float] = {}
    for rank, offer in enumerate(problem.offers):
        extra = TIE_BREAK_USD_PER_GPU_H * offer.gpus_per_node + TIE_BREAK_PER_RANK * rank
        price = node_cost(problem, offer)
        if price > 0.0:
            share = max(share, extra / price)
        else:
            free[offer.entry] = max(free.get(offer.entry, 0.0), extra)
    return max(0.0, (bound - sum(free[e] * stock.get(e, 0) for e in sorted(free))) / (1.0 + share))
