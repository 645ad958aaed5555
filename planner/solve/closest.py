"""Find the fleet that changes one that runs the least: the whole program again, with changes as its objective."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from planner.program.compile import CompiledProgram, compile_problem
from planner.program.data import FleetProblem
from planner.program.index import ProgramIndex
from planner.solve.brake import stopped_by
from planner.solve.fleet import SolveLimits, routed, without_candidates
from planner.solve.highs import Answer, Effort, Status, minimise
from planner.solve.outcome import Infeasible, Solution, Unsolved
from planner.solve.packing import Packing
from planner.solve.rating import Rating
from planner.solve.spares import fragile_pools, loss_rows, with_losses
from planner.solve.tolerance import to_count

CHANGE_GAP = 1e-3  # far below one change: what is left open is cost among equally few changes
MOST_NODES = 1000
LEAST_OF_A_CHANGE = 0.4  # one change less lowers the objective by this much, whatever cost and settings add
MOST_LOSS_ROUNDS = 20


@dataclass(frozen=True)
class Closest:
    """A fleet of few changes, the nodes its replicas lie on, the problem with all rows that were added on the way.

    `changes` counts replicas and nodes that come or go; `is_fewest` tells whether no fleet of the problem changes less.
    """

    solution: Solution
    packing: Packing
    problem: FleetProblem
    changes: int
    is_fewest: bool


def closest(
    problem: FleetProblem, bound: float, limits: SolveLimits, rating: Rating, fewer_than: int | None = None
) -> Closest | Infeasible | Unsolved:
    """Minimise the changes of the fleet that `problem` says is kept; `bound` is one on the cost of any fleet.

    Pools of one shape are put together where `rating` finds that they hold. Only fleets with changes `fewer_than` a number are looked for, where it is given.
    """
    unserved = without_candidates(problem)
    if unserved is not None:
        return unserved
    cutoff = None if fewer_than is None else fewer_than - LEAST_OF_A_CHANGE
    for _ in range(MOST_LOSS_ROUNDS):
        program = compile_problem(problem)
        effort = Effort(absolute_gap=CHANGE_GAP, max_nodes=MOST_NODES, time_limit_s=limits.time_left_s, cutoff=cutoff)
        with stopped_by(lambda: limits.is_interrupted):
            answer = minimise(program, effort)
        if answer.status is Status.INFEASIBLE:
            return Infeasible("no fleet keeps that much")
        if answer.point is None:
            break
        counts = _counts(program, answer)
        fragile = fragile_pools(problem, counts["replicas"])
        if not fragile:
            placed = _placed(problem, program, answer, counts["replicas"])
            solution, packing = routed(problem, counts["replicas"], counts["nodes"], placed, bound, rating)
            changes = _changes(problem, counts["replicas"], counts["nodes"])
            return Closest(solution, packing, problem, changes, answer.status is Status.OPTIMAL)
        stronger = with_losses(problem, counts["replicas"], fragile)
        if loss_rows(stronger) == loss_rows(problem):
            break
        problem = stronger
    return Unsolved("a limit was reached before a fleet of few changes was found")


def _counts(program: CompiledProgram, answer: Answer) -> dict[str, dict[str, int]]:
    assert answer.point is not None
    counts: dict[str, dict[str, int]] = {"replicas": {}, "nodes": {}}
    for (name, key), value in zip(program.columns, answer.point.tolist(), strict=True):
        if name in counts and value > 0.5:
            counts[name][str(key)] = to_count(value)
    return counts


def _changes(problem: FleetProblem, replicas: dict[str, int], nodes: dict[str, int]) -> int:
    index, kept = ProgramIndex(problem), problem.kept
    assert kept is not None
    found = sum(abs(sum(replicas.get(c, 0) for c in p.columns) - p.replicas) for p in kept.pools)
    found += sum(replicas.get(name, 0) for name in index.added)
    for name in index.offers:
        more = nodes.get(name, 0) - kept.nodes.get(name, 0)
        found += max(0, more) if kept.counts_more else 0
        found += max(0, -more) if kept.counts_fewer else 0
    return found


def _placed(
    problem: FleetProblem, program: CompiledProgram, answer: Answer, replicas: dict[str, int]
) -> dict[tuple[str, str], int]:
    """Return replicas by candidate and cell: as the program placed them, where there is a choice of cells."""
    assert answer.point is not None
    placed: dict[tuple[str, str], int] = defaultdict(int)
    for (name, key), value in zip(program.columns, answer.point.tolist(), strict=True):
        if name == "placed" and value > 0.5:
            placed[key] = to_count(value)
    for column in problem.columns:
        if not column.has_choice and replicas.get(column.name, 0) > 0:
            placed.update({(column.name, cell): replicas[column.name] for cell in column.cells})
    return dict(placed)
