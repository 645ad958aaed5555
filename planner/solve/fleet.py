"""Solve a fleet problem: compile, minimise, and prove that every pool may lose its spares."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

import numpy as np

from planner.program.compile import CompiledProgram, compile_problem
from planner.program.data import FleetProblem, node_cost
from planner.program.fleet import TIE_BREAK_PER_RANK, TIE_BREAK_USD_PER_GPU_H
from planner.solve.blocks import solve_blocks, with_replicas
from planner.solve.highs import Answer, Effort, Status, minimise
from planner.solve.merge import merged
from planner.solve.outcome import Infeasible, Outcome, Solution, Solved, Unproven, Unsolved
from planner.solve.packing import Packing, pack
from planner.solve.routing import route, spread
from planner.solve.spares import fragile_pools, with_losses
from planner.solve.tolerance import GAP_ATOL, to_count

LEAST_TIME_S = 0.01
COMPLETION_GAP_SHARE = 0.1  # completing given replicas is easy: solve it well within the gap
GAP_SHARE_FOR_SEARCH = 0.98  # the search aims below the gap asked for, so that tie-breaks and rounding do not exceed it


@dataclass(frozen=True)
class SolveLimits:
    """What a solve aims for and when it stops.

    `deadline_s` is a moment of `time.monotonic`: an emergency brake, after which what was found is returned, unproven.
    """

    gap: float
    deadline_s: float | None = None
    max_nodes: int | None = None

    @property
    def time_left_s(self) -> float | None:
        """Seconds until the deadline, None without one."""
        return None if self.deadline_s is None else max(LEAST_TIME_S, self.deadline_s - time.monotonic())


@dataclass(frozen=True)
class Known:
    """What earlier solves proved and found: bounds that still hold, and replicas by candidate to keep at first.

    `bound` holds for the problem as it is now, `uncut_bound` for the one as it was first rated (None: they are the same).
    """

    bound: float
    kept: Mapping[str, int]
    uncut_bound: float | None = None


@dataclass(frozen=True)
class Answered:
    """The outcome of a solve, the nodes its replicas lie on, and the problem with all rows that were added on the way.

    `search_bound` and `uncut_bound` are bounds on the program's objective, tie-breaks included, for solves that follow.
    """

    outcome: Outcome
    packing: Packing | None
    problem: FleetProblem
    search_bound: float = 0.0
    uncut_bound: float = 0.0


def solve(problem: FleetProblem, limits: SolveLimits) -> Answered:
    """Minimise the fleet's cost, starting from every model's own optimum."""
    unserved = _unserved(problem)
    if unserved is not None:
        return Answered(unserved, None, problem)
    blocks = solve_blocks(problem)
    if blocks.infeasible:
        names = ", ".join(blocks.infeasible)
        reason = f"no number of replicas that the stock allows meets the rules of model {names}, whatever it may cost"
        return Answered(Infeasible(reason), None, problem)
    problem = replace(blocks.problem, block_bounds=blocks.bounds)
    return _solve(problem, limits, Known(0.0, blocks.replicas))


def mend(answered: Answered, problem: FleetProblem, limits: SolveLimits, changed: Collection[str]) -> Answered:
    """Solve again after the capacities of some candidates of the models `changed` fell, as `problem` states them.

    The bounds of `answered` still hold, because capacities only fall; the other models keep their replicas at first. The
    bound that follows is that of the problem as it is now rated; `uncut_bound` stays that of the first rating.
    """
    unserved = _unserved(problem)
    if unserved is not None:
        return Answered(unserved, None, problem)
    outcome = answered.outcome
    replicas = outcome.solution.replicas if isinstance(outcome, Solved | Unproven) else {}
    known = Known(answered.search_bound, _kept(problem, replicas, changed), answered.uncut_bound)
    return _solve(problem, limits, known)


def _unserved(problem: FleetProblem) -> Infeasible | None:
    served = {w for c in problem.columns for w in c.services}
    missing = sorted(d.workload for d in problem.demands if d.workload not in served)
    return Infeasible(f"no candidate can serve {', '.join(missing)}") if missing else None


def _kept(problem: FleetProblem, replicas: Mapping[str, int], changed: Collection[str]) -> dict[str, int]:
    return {c.name: replicas.get(c.name, 0) for c in problem.columns if c.model not in changed}


def _solve(problem: FleetProblem, limits: SolveLimits, known: Known) -> Answered:
    """Minimise, and add rows about the loss of spares until the fleet survives each of them.

    Starts from the projected `spare` rows, which hold for every candidate: each round solves a relaxation, so its bound
    holds for the next.
    """
    while True:
        program = compile_problem(problem)
        answer = _minimise(program, limits, known)
        if answer.status is Status.INFEASIBLE:
            return Answered(Infeasible("no whole number of nodes meets every row of the program"), None, problem)
        if answer.point is None:
            return Answered(Unsolved("a limit was reached before any fleet was found"), None, problem)
        found, placed, nodes = _counts(problem, program, answer)
        replicas, placed = merged(problem, found, placed)
        fragile = fragile_pools(problem, replicas)
        if not fragile:
            outcome, packing = _outcome(problem, answer, replicas, placed, nodes, limits)
            uncut = answer.bound if known.uncut_bound is None else known.uncut_bound
            return Answered(outcome, packing, problem, answer.bound, uncut)
        kept = _kept(problem, found, {c.model for c in fragile})
        known = Known(answer.bound, kept, known.uncut_bound)
        problem = with_losses(problem, replicas, fragile)


def _minimise(program: CompiledProgram, limits: SolveLimits, known: Known) -> Answer:
    """Complete the replicas that are known; if that is not near enough to the bound, search the whole program."""
    gap = limits.gap * GAP_SHARE_FOR_SEARCH
    relaxed = minimise(program, Effort(), relaxed=True)
    if relaxed.status is Status.INFEASIBLE:
        return relaxed
    bound = max(known.bound, relaxed.objective)
    near = Effort(gap * COMPLETION_GAP_SHARE, 0.0, limits.max_nodes, limits.time_left_s, bound / (1.0 - gap))
    completed = minimise(with_replicas(program, known.kept), near)
    if completed.point is not None and completed.objective - bound <= gap * completed.objective:
        return Answer(Status.OPTIMAL, completed.point, completed.objective, bound)
    answer = minimise(program, replace(near, relative_gap=gap, time_limit_s=limits.time_left_s))
    if answer.point is None or answer.objective > completed.objective:
        status = answer.status if completed.point is None else Status.LIMIT
        answer = replace(completed, status=status, bound=answer.bound if answer.bound < np.inf else bound)
    return replace(answer, bound=max(bound, min(answer.bound, answer.objective)))


def _counts(
    problem: FleetProblem, program: CompiledProgram, answer: Answer
) -> tuple[dict[str, int], dict[tuple[str, str], int], dict[str, int]]:
    assert answer.point is not None
    values: dict[str, dict[object, int]] = {"replicas": {}, "placed": {}, "nodes": {}}
    for (name, key), value in zip(program.columns, answer.point.tolist(), strict=True):
        if name in values and (count := to_count(value)) > 0:
            values[name][key] = count
    cells = {c.name: c.cells[0] for c in problem.columns if len(c.cells) == 1}
    replicas = {str(k): v for k, v in values["replicas"].items()}
    placed = {(c, cells[c]): n for c, n in replicas.items() if c in cells}
    placed |= {(k[0], k[1]): v for k, v in values["placed"].items() if isinstance(k, tuple)}
    return replicas, placed, {str(k): v for k, v in values["nodes"].items()}


def _outcome(
    problem: FleetProblem,
    answer: Answer,
    replicas: dict[str, int],
    placed: dict[tuple[str, str], int],
    nodes: dict[str, int],
    limits: SolveLimits,
) -> tuple[Outcome, Packing]:
    packing = pack(problem, nodes, placed)
    kept = packing.count()
    prices = {o.name: node_cost(problem, o) for o in problem.offers}
    cost = sum(prices[name] * count for name, count in kept.items())
    solution = Solution(
        replicas=dict(sorted(replicas.items())),
        nodes=kept,
        rates=_rates(problem, replicas),
        placed=dict(sorted(placed.items())),
        cost=cost,
        bound=min(cost, _bound_without_tie_break(problem, answer.bound)),
    )
    if solution.gap <= limits.gap + GAP_ATOL:
        return Solved(solution), packing
    return Unproven(solution, "the gap to the proven bound is above the one asked for"), packing


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
