"""Solve a fleet problem: compile, minimise, and prove that every pool may lose its spares."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from planner.program.compile import CompiledProgram, compile_problem
from planner.program.data import FleetProblem, node_cost
from planner.program.fleet import TIE_BREAK_PER_RANK, TIE_BREAK_USD_PER_GPU_H
from planner.solve.blocks import solve_blocks, with_replicas
from planner.solve.highs import Answer, Effort, Status, minimise
from planner.solve.merge import merged
from planner.solve.outcome import Infeasible, Outcome, Solution, Solved, Unproven, Unsolved
from planner.solve.packing import Packing, pack
from planner.solve.routing import route, survives
from planner.solve.tolerance import to_count

BUYING_GAP_SHARE = 0.1  # buying nodes for given replicas is easy: solve it well within the gap
GAP_SHARE_FOR_SEARCH = 0.98  # the search aims below the gap asked for, so that tie-breaks and rounding do not exceed it


@dataclass(frozen=True)
class SolveLimits:
    """What a solve aims for and when it stops. `time_limit_s` is wall time: an emergency brake, not part of an answer."""

    gap: float
    time_limit_s: float | None = None
    max_nodes: int | None = None


def solve(problem: FleetProblem, limits: SolveLimits) -> tuple[Outcome, Packing | None]:
    """Minimise the fleet's cost; losses of spares are stated exactly for every pool that the answer opens.

    Starts from the projected `spare` rows, which hold for every candidate, and adds the routed rows for pools whose loss
    the answer does not survive, until none is left: each round solves a relaxation, so the last one's bound holds.
    """
    blocks = solve_blocks(problem)
    if blocks.infeasible:
        names = ", ".join(blocks.infeasible)
        return Infeasible(f"no number of replicas meets the rules of model {names}, whatever it may cost"), None
    problem = replace(problem, block_bounds=blocks.bounds)
    start: Mapping[str, int] | None = blocks.replicas
    while True:
        program = compile_problem(problem)
        answer = _minimise(program, limits, start)
        if answer.status is Status.INFEASIBLE:
            return Infeasible("no whole number of nodes meets every row of the program"), None
        if answer.point is None:
            return Unsolved("a limit was reached before any fleet was found"), None
        replicas, placed, nodes = _counts(problem, program, answer)
        replicas, placed = merged(problem, replicas, placed)
        fragile = _fragile(problem, replicas)
        if not fragile:
            return _outcome(problem, answer, replicas, placed, nodes, limits)
        problem = replace(problem, losses=tuple(sorted({*problem.losses, *fragile})))
        start = None


def mend(
    problem: FleetProblem, limits: SolveLimits, previous: Solution, changed: Collection[str]
) -> tuple[Outcome, Packing | None]:
    """Solve again after the capacities of some candidates of the models `changed` fell.

    The other models keep their replicas first: if that already comes near enough to the bound of `previous`, which still
    holds because capacities only fall, it is the answer. Otherwise the whole program is solved.
    """
    program = compile_problem(problem)
    kept = {c.name: previous.replicas.get(c.name, 0) for c in problem.columns if c.model not in changed}
    gap = limits.gap * GAP_SHARE_FOR_SEARCH
    target = previous.bound / (1.0 - gap) if previous.bound > 0.0 else None
    effort = Effort(gap, 0.0, limits.max_nodes, limits.time_limit_s, target)
    answer = minimise(with_replicas(program, kept), effort)
    if answer.point is not None:
        answer = replace(answer, bound=min(previous.bound, answer.objective))
        replicas, placed, nodes = _counts(problem, program, answer)
        outcome, packing = _outcome(problem, answer, replicas, placed, nodes, limits)
        if isinstance(outcome, Solved) and not _fragile(problem, replicas):
            return outcome, packing
    return solve(problem, limits)


def _minimise(program: CompiledProgram, limits: SolveLimits, start: Mapping[str, int] | None) -> Answer:
    """Buy nodes for the models' own optima; if that is not near enough to the bound, search the whole program."""
    gap = limits.gap * GAP_SHARE_FOR_SEARCH
    relaxed = minimise(program, Effort(), relaxed=True)
    if relaxed.status is Status.INFEASIBLE:
        return relaxed
    if start is not None:
        rounded = minimise(with_replicas(program, start), Effort(relative_gap=gap * BUYING_GAP_SHARE))
        if rounded.point is not None and rounded.objective - relaxed.objective <= gap * rounded.objective:
            return Answer(Status.OPTIMAL, rounded.point, rounded.objective, relaxed.objective)
    target = relaxed.objective / (1.0 - gap) if relaxed.objective > 0.0 else None
    answer = minimise(program, Effort(gap, 0.0, limits.max_nodes, limits.time_limit_s, target))
    return replace(answer, bound=max(answer.bound, relaxed.objective)) if answer.point is not None else answer


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


def _fragile(problem: FleetProblem, replicas: Mapping[str, int]) -> list[str]:
    """List the pools whose loss of spares the fleet does not survive although no row states it yet."""
    spares = {r.model: r.spare_replicas for r in problem.rules}
    return [
        c.name
        for c in problem.columns
        if replicas.get(c.name, 0) > 0
        and spares[c.model] > 0
        and c.name not in problem.losses
        and not survives(problem, c, replicas, spares[c.model])
    ]


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
    if solution.gap <= limits.gap:
        return Solved(solution), packing
    return Unproven(solution, "a limit was reached before the gap was closed"), packing


def _rates(problem: FleetProblem, replicas: Mapping[str, int]) -> dict[tuple[str, str], float]:
    rates: dict[tuple[str, str], float] = {}
    for rule in problem.rules:
        demand = {d.workload: d.planned_requests_per_s for d in problem.demands_of(rule.model)}
        rates.update(route(problem, rule.model, replicas, demand).rates)
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
