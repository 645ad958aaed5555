"""Choose one known plan per model, and the nodes that hold them: the master program of column generation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import block_array, csr_array

from planner.program.compile import CompiledProgram
from planner.program.data import FleetProblem
from planner.program.supply import Needs, Size, compile_supply
from planner.solve.highs import Effort, Status, minimise
from planner.solve.pricing import BlockPlan
from planner.solve.sparse import sparse
from planner.solve.tolerance import to_count

Floats = NDArray[np.float64]
WHOLE = 1e-5  # a count this close to a whole number is one


@dataclass(frozen=True)
class Cut:
    """A branch: bounds on how many nodes of some offers are bought together. `nodes` are columns of the supply program."""

    nodes: tuple[int, ...]
    least: float
    most: float


@dataclass(frozen=True)
class Relaxed:
    """The master with fractions: its value, the price of each size, the nodes, the replicas it is short of.

    `shares` gives the share of each plan that is used, those at zero left out.
    """

    value: float
    prices: Mapping[Size, float]
    nodes: Floats
    short: Mapping[Size, float]
    shares: Mapping[BlockPlan, float]


@dataclass(frozen=True)
class Fleet:
    """One plan per model, and nodes that hold their replicas but for those that are `short`; `cost` includes tie-breaks.

    `replicas` are those of models that the supply program holds as a whole, by candidate.
    """

    plans: tuple[BlockPlan, ...]
    replicas: Mapping[str, int]
    nodes: Mapping[str, int]
    cost: float
    short: Mapping[Size, float]


class Supply:
    """The supply program of a problem, with what the master needs to know of its columns."""

    def __init__(self, problem: FleetProblem, needs: Needs, blocks: Sequence[FleetProblem] = ()) -> None:
        """Compile the rows about nodes, and with them the whole of the models in `blocks`, problems of one model each.

        `needs` are those of all models.
        """
        self.program = compile_supply(problem, needs, blocks)
        self.sizes = tuple(sorted(needs.most))
        place = {key: i for i, (name, key) in enumerate(self.program.columns) if name == "replicas"}
        self.replicas_at = np.array([place[size.name] for size in self.sizes], dtype=int)
        # Where shares of the cost are limited, nodes are bought for replicas that there are, not for ever more of them.
        self.is_exact = bool(problem.cost_shares)
        self.most_penalty = needs.penalty
        self._groups = _node_groups(problem, self.program)
        self._singles = tuple((i,) for i, (name, _) in enumerate(self.program.columns) if name == "nodes")

    def value(self, prices: Mapping[Size, float], cuts: Sequence[Cut]) -> float:
        """Return the least of (cost of nodes - worth of the replicas they hold at the prices): a term of every bound."""
        cost = self.program.cost.copy()
        cost[self.replicas_at] -= [prices[s] for s in self.sizes]
        answer = minimise(_with_cuts(replace(self.program, cost=cost), cuts), Effort(), relaxed=True)
        return np.inf if answer.status is Status.INFEASIBLE else answer.bound

    def dearest(self, cuts: Sequence[Cut]) -> float:
        """Return what the dearest choice of nodes costs, with all penalties there may be; infinite where some may be bought without limit."""
        answer = minimise(_with_cuts(replace(self.program, cost=-self.program.cost), cuts), Effort(), relaxed=True)
        return self.most_penalty - answer.bound if answer.status is Status.OPTIMAL else np.inf

    def branch(self, nodes: Floats) -> tuple[tuple[int, ...], float] | None:
        """Return the set of offers to branch on, and how many of its nodes fractions buy; None when all are whole.

        Sets are the nodes of at least so many GPUs in a cell; then single offers. The largest cost at stake goes first.
        """
        for sets in (self._groups, self._singles):
            best: tuple[float, tuple[int, ...], float] | None = None
            for columns in sets:
                count = float(nodes[list(columns)].sum())
                fraction = min(count - np.floor(count), np.ceil(count) - count)
                stake = fraction * float(self.program.cost[list(columns)].max())
                if fraction > WHOLE and (best is None or stake > best[0] * (1.0 + WHOLE)):
                    best = (stake, columns, count)
            if best is not None:
                return best[1], best[2]
        return None


def _node_groups(problem: FleetProblem, program: CompiledProgram) -> tuple[tuple[int, ...], ...]:
    """Return the node columns of each cell that have at least so many GPUs, for every size of nodes there is."""
    place = {key: i for i, (name, key) in enumerate(program.columns) if name == "nodes"}
    groups: set[tuple[int, ...]] = set()
    for cell in sorted({o.cell for o in problem.offers}):
        own = [o for o in problem.offers if o.cell == cell and o.name in place]
        for level in sorted({o.gpus_per_node for o in own}):
            groups.add(tuple(sorted(place[o.name] for o in own if o.gpus_per_node >= level)))
    return tuple(sorted(groups))


def relaxed_master(
    supply: Supply, plans: Sequence[BlockPlan], cuts: Sequence[Cut], caps: Mapping[Size, float]
) -> Relaxed | None:
    """Solve the master with fractions; replicas that no nodes hold are short, at the price `caps`. None if infeasible."""
    program = _master(supply, plans, cuts, caps, is_exact=False)  # plans that use more may yet be found
    answer = minimise(program, Effort(), relaxed=True)
    if answer.point is None or answer.row_prices is None:
        return None
    start = len(supply.program.columns)
    short = answer.point[start : start + len(supply.sizes)]
    return Relaxed(
        answer.objective,
        _prices(supply, program, answer.row_prices, caps),
        answer.point[: len(supply.program.columns)],
        {s: float(v) for s, v in zip(supply.sizes, short.tolist(), strict=True) if v > WHOLE},
        {p: v for p, v in zip(plans, answer.point[start + len(supply.sizes) :].tolist(), strict=True) if v > WHOLE},
    )


def _prices(supply: Supply, program: CompiledProgram, duals: Floats, caps: Mapping[Size, float]) -> dict[Size, float]:
    """Return what the rows about nodes charge for a replica of each size, up to its cap.

    Where known plans use a size, this is the dual of its own row; where none does, that dual may be anything up to it.
    """
    rows = len(program.rows) - len(supply.sizes) - len({key for name, key in program.rows if name == "one_plan"})
    charged = program.cost - program.matrix[:rows].T @ duals[:rows]
    at = zip(supply.sizes, charged[supply.replicas_at].tolist(), strict=True)
    return {size: min(max(0.0, price), caps[size]) for size, price in at}


def whole_master(
    supply: Supply, plans: Sequence[BlockPlan], caps: Mapping[Size, float], effort: Effort
) -> Fleet | None:
    """Choose whole plans and nodes. Replicas that no nodes hold are short, at the price `caps`. None: nothing was found."""
    program = _master(supply, plans, (), caps, is_exact=supply.is_exact)
    answer = minimise(program, effort)
    if answer.point is None:
        return None
    width, sizes = len(supply.program.columns), len(supply.sizes)
    chosen = np.flatnonzero(answer.point[width + sizes :] > 0.5)
    short = answer.point[width : width + sizes]
    counts: dict[str, dict[str, int]] = {"nodes": {}, "replicas": {}}
    for (name, key), value in zip(supply.program.columns, answer.point.tolist(), strict=False):
        if name in counts and value > 0.5:
            counts[name][str(key)] = to_count(value)
    stand_ins = {size.name for size in supply.sizes}
    return Fleet(
        tuple(plans[i] for i in chosen.tolist()),
        {name: n for name, n in counts["replicas"].items() if name not in stand_ins},
        counts["nodes"],
        answer.objective,
        {s: float(v) for s, v in zip(supply.sizes, short.tolist(), strict=True) if v > WHOLE},
    )


def _master(
    supply: Supply, plans: Sequence[BlockPlan], cuts: Sequence[Cut], caps: Mapping[Size, float], *, is_exact: bool
) -> CompiledProgram:
    """Put together supply, one row per size (replicas of the plans lie on nodes), and one per model (one plan of it).

    There is a column for the shortage of each size, at the price `caps`. Where it `is_exact`, nodes hold no other replicas.
    """
    base = _with_cuts(supply.program, cuts)
    width, sizes = len(base.columns), len(supply.sizes)
    models = sorted({p.model for p in plans})
    size_at = {size: i for i, size in enumerate(supply.sizes)}
    model_at = {model: i for i, model in enumerate(models)}
    uses = [(size_at[size], j, count) for j, plan in enumerate(plans) for size, count in plan.use]
    use = sparse(uses, (sizes, len(plans)))
    held = sparse([(i, int(at), -1.0) for i, at in enumerate(supply.replicas_at)], (sizes, width))
    one_each = sparse([(model_at[p.model], j, 1.0) for j, p in enumerate(plans)], (len(models), len(plans)))
    lacking = sparse([(i, i, -1.0) for i in range(sizes)], (sizes, sizes))
    matrix = block_array(
        [
            [base.matrix, sparse([], (len(base.rows), sizes)), sparse([], (len(base.rows), len(plans)))],
            [held, lacking, use],
            [sparse([], (len(models), width)), sparse([], (len(models), sizes)), one_each],
        ],
        format="csr",
    )
    return CompiledProgram(
        columns=(
            *base.columns,
            *(("short", s) for s in supply.sizes),
            *(("plan", j) for j in range(len(plans))),
        ),
        rows=(*base.rows, *(("held", s) for s in supply.sizes), *(("one_plan", m) for m in models)),
        cost=np.concatenate([base.cost, [caps[s] for s in supply.sizes], [p.penalty for p in plans]]),
        matrix=csr_array(matrix),
        row_lower=np.concatenate([base.row_lower, np.full(sizes, 0.0 if is_exact else -np.inf), np.ones(len(models))]),
        row_upper=np.concatenate([base.row_upper, np.zeros(sizes), np.ones(len(models))]),
        lower=np.concatenate([base.lower, np.zeros(sizes + len(plans))]),
        upper=np.concatenate([base.upper, np.full(sizes, np.inf), np.ones(len(plans))]),
        is_integer=np.concatenate([base.is_integer, np.zeros(sizes, dtype=bool), np.ones(len(plans), dtype=bool)]),
    )


def _with_cuts(program: CompiledProgram, cuts: Sequence[Cut]) -> CompiledProgram:
    if not cuts:
        return program
    entries = [(i, column, 1.0) for i, cut in enumerate(cuts) for column in cut.nodes]
    matrix = block_array(
        [[program.matrix], [sparse(entries, (len(cuts), len(program.columns)))]],
        format="csr",
    )
    return replace(
        program,
        rows=(*program.rows, *(("cut", cut) for cut in cuts)),
        matrix=csr_array(matrix),
        row_lower=np.append(program.row_lower, [cut.least for cut in cuts]),
        row_upper=np.append(program.row_upper, [cut.most for cut in cuts]),
    )
