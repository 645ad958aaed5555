"""Solve one model alone at given prices per replica: what column generation asks of it, again and again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, vstack

from planner.program.compile import CompiledProgram, compile_model
from planner.program.data import Column, FleetProblem, penalties
from planner.program.fleet import build_block
from planner.program.index import ProgramIndex
from planner.program.supply import Needs, Size
from planner.solve.highs import Answer, Effort, Status, minimise
from planner.solve.replacement import copies_to_replace, worth_keeping
from planner.solve.routing import route, route_at_mix
from planner.solve.spares import fragile_pools, loss_rows, outlasts, with_losses
from planner.solve.tolerance import to_count

Floats = NDArray[np.float64]
MOST_CUTS = 6
NEAR_PRICES = 1.5  # candidates that may be worth having where prices of GPUs shift by this factor are compiled at once
MOST_NODES = 2000  # of one search: what is still open then is left to the gap
SAFE_SHARE = 1.0 - 1e-5  # bounds are used this much below what the solver proves: nearer, its presolve sees conflicts
CUTOFF_ROOM = 1e-3  # a search looks for plans up to this much above the best that is known, so that it finds that one
MOST_LOSS_ROUNDS = 6  # what a block does not settle by then is left to the whole program
LEAST_PRICE = 1e-9  # a replica that costs nothing still counts, so that no plan holds more of them than it needs


@dataclass(frozen=True)
class BlockPlan:
    """Replicas of one model, by candidate, that carry its demand; how many of each size they are.

    `penalty` is what they count in the objective besides their nodes.
    """

    model: str
    replicas: tuple[tuple[str, int], ...]
    use: tuple[tuple[Size, int], ...]
    penalty: float = 0.0

    def cost_at(self, prices: Mapping[Size, float]) -> float:
        """Return what the replicas cost at prices per replica, with their penalty."""
        return self.penalty + sum(prices[size] * count for size, count in self.use)


@dataclass(frozen=True)
class Priced:
    """The least that a model costs at given prices, proven, and a plan near it (None: no replicas serve the model).

    `survives` tells whether the plan is known to outlast the loss of spares that the model must survive.
    """

    plan: BlockPlan | None
    bound: float
    survives: bool


class Block:
    """One model with its compiled program. Rows about losses are added as plans turn out not to survive."""

    def __init__(self, problem: FleetProblem) -> None:
        """Take a problem of one model alone."""
        self._proven: list[tuple[Floats, float]] = []
        self._take(problem)

    def _take(self, problem: FleetProblem) -> None:
        self.problem = problem
        self._compiled: CompiledProgram | None = None
        self._compiled_names = frozenset[str]()
        self.__dict__.pop("_copies", None)
        self.__dict__.pop("_simple_plans", None)

    def known(self) -> dict[str, object]:
        """Return all that the block knows, by attribute."""
        return dict(self.__dict__)

    def learned(self, before: Mapping[str, object]) -> dict[str, object]:
        """Return what the block knows now and did not know `before`: what a worker hands back."""
        return {name: value for name, value in self.__dict__.items() if before.get(name) is not value}

    def learn(self, learned: Mapping[str, object]) -> None:
        """Take over what was learned of the same block."""
        self.__dict__.update(learned)

    @property
    def model(self) -> str:
        """Name of the model."""
        return self.problem.rules[0].model

    @property
    def columns(self) -> tuple[Column, ...]:
        """Candidates of the model."""
        return self.problem.columns

    @cached_property
    def _copies(self) -> Floats:
        return copies_to_replace(self.columns)

    @cached_property
    def _simple_plans(self) -> tuple[BlockPlan, ...]:
        """Plans of one candidate that serves every workload: what a search has to beat from the start."""
        if self.problem.outages:
            return ()  # one candidate lies in one zone
        index = ProgramIndex(self.problem)
        workloads = {d.workload for d in self.problem.demands}
        whole = [c for c in self.columns if workloads <= set(c.services)]
        plans = [(c, self.plan_of({c.name: index.most_replicas[c.name]})) for c in whole]
        # So many replicas carry everything, but where spot nodes may take a share of it, or a mix is not that of the demand.
        sure = {c.name for c in whole if not c.spot and all(len(flow) == 1 for flow in c.flows)}
        return tuple(p for c, p in plans if (c.name in sure or self.carries_at_mix(p)) and self.outlasts(p))

    def carries(self, plan: BlockPlan) -> bool:
        """Tell whether the replicas of a plan carry the demand, headroom included."""
        return route(self.problem, self.model, dict(plan.replicas), self._planned).carries

    def carries_at_mix(self, plan: BlockPlan) -> bool:
        """Tell whether the replicas carry the demand with all pools at the mix of their ratings."""
        return route_at_mix(self.problem, self.model, dict(plan.replicas), self._planned).carries

    @property
    def _planned(self) -> dict[str, float]:
        return {d.workload: d.planned_requests_per_s for d in self.problem.demands}

    def outlasts(self, plan: BlockPlan) -> bool:
        """Tell whether a plan survives every loss that the model is to survive."""
        return outlasts(self.problem, dict(plan.replicas))

    def simple_plans(self, prices: Mapping[Size, float]) -> list[BlockPlan]:
        """Return, for each GPU type, the cheapest plan of one candidate: what prices can weigh from the start."""
        best: dict[str, BlockPlan] = {}
        for plan in self._simple_plans:
            gpu = plan.use[0][0].gpu
            if gpu not in best or plan.cost_at(prices) < best[gpu].cost_at(prices):
                best[gpu] = plan
        return [best[gpu] for gpu in sorted(best)]

    @cached_property
    def needs(self) -> Needs:
        """The most replicas that the model may need."""
        return Needs.of(self.problem)

    @cached_property
    def sizes(self) -> tuple[Size, ...]:
        """Size of each candidate."""
        return tuple(Size.of(c) for c in self.columns)

    def price(self, prices: Mapping[Size, float], gap: float, known: Sequence[BlockPlan] = ()) -> Priced:
        """Find the cheapest replicas at prices per replica (by size), within a relative gap.

        A plan that does not survive the loss of spares is cut off and the search repeated; bounds hold from the first
        round on, since each only adds rows. `known` are plans found before, which survive: where the relaxation proves the
        cheapest of them near enough, nothing is searched.
        """
        bound, plan, survives = 0.0, None, False
        best = min([*known, *self._simple_plans], key=lambda p: p.cost_at(prices), default=None)
        for _ in range(MOST_LOSS_ROUNDS):
            price = self._prices(prices)
            program = self._priced(price)
            cost = np.inf if best is None else best.cost_at(prices)
            if best is not None:
                relaxed = minimise(with_bounds(program, self._proven_rows()), Effort(), relaxed=True)
                if relaxed.point is not None and cost - relaxed.bound * SAFE_SHARE <= gap * cost:
                    return Priced(best, min(cost, max(bound, relaxed.bound * SAFE_SHARE)), True)
            cutoff = None if best is None else cost * (1.0 + CUTOFF_ROOM)
            answer = minimise(program, Effort(relative_gap=gap, max_nodes=MOST_NODES, cutoff=cutoff, is_small=True))
            if answer.point is None:
                return self._without_point(answer, best, cost, bound)
            bound = max(bound, answer.bound)
            self._proven = [*self._proven, (price, answer.bound * SAFE_SHARE)][-MOST_CUTS:]
            plan = self._plan(program, answer.point)
            fragile = fragile_pools(self.problem, dict(plan.replicas))
            survives = not fragile
            if survives:
                break
            stronger = with_losses(self.problem, dict(plan.replicas), fragile)
            if loss_rows(stronger) == loss_rows(self.problem):
                break
            self._take(stronger)
        return Priced(plan, bound, survives)

    def _without_point(self, answer: Answer, best: BlockPlan | None, cost: float, bound: float) -> Priced:
        """Say what a search that found nothing proves: that there is nothing, or nothing better than what is known."""
        if answer.status is Status.INFEASIBLE:
            return Priced(best, cost, best is not None)
        return Priced(best, max(bound, min(answer.bound, cost)), best is not None)

    def by_candidate(self, prices: Mapping[Size, float]) -> dict[str, float]:
        """Return the prices of replicas by candidate, with their penalties."""
        return {c.name: prices[size] + c.penalty for c, size in zip(self.columns, self.sizes, strict=True)}

    def worth_having(self, prices: Mapping[Size, float]) -> list[str]:
        """Return the candidates that a cheapest plan at the prices may need."""
        kept = worth_keeping(self.columns, self._copies, self._prices(prices), self.problem.rules[0])
        return [c.name for c, is_kept in zip(self.columns, kept.tolist(), strict=True) if is_kept]

    def _prices(self, prices: Mapping[Size, float]) -> Floats:
        least = [LEAST_PRICE * size.node_gpus * size.nodes_spanned for size in self.sizes]
        return np.maximum(list(self.by_candidate(prices).values()), least)

    def _priced(self, price: Floats) -> CompiledProgram:
        """Return the program at prices by candidate, without candidates that others replace at no higher price."""
        kept = worth_keeping(self.columns, self._copies, price, self.problem.rules[0])
        named = zip(self.columns, price.tolist(), kept.tolist(), strict=True)
        own = {c.name: p for c, p, is_kept in named if is_kept}
        if self._compiled is None or not self._compiled_names.issuperset(own):
            self._compiled = self._compile(price)
        return restricted(self._compiled, own)

    def _compile(self, price: Floats) -> CompiledProgram:
        """Compile the candidates that were ever worth having, and those that may be at prices not far from these."""
        near = worth_keeping(self.columns, self._copies, price, self.problem.rules[0], NEAR_PRICES)
        found = (c.name for c, is_near in zip(self.columns, near.tolist(), strict=True) if is_near)
        names = self._compiled_names = self._compiled_names.union(found)
        part = replace(
            self.problem,
            columns=tuple(c for c in self.columns if c.name in names),
            losses=tuple(name for name in self.problem.losses if name in names),
        )
        return compile_model(build_block(part))

    def _proven_rows(self) -> list[tuple[dict[str, float], float]]:
        """Return the bounds proven at other prices: near those prices they are almost all the proof it takes.

        They serve the relaxation only; in a search they run along the objective and slow it down.
        """
        names = [c.name for c in self.columns]
        return [(dict(zip(names, price.tolist(), strict=True)), bound) for price, bound in self._proven]

    def _plan(self, program: CompiledProgram, point: Floats) -> BlockPlan:
        values = zip(program.columns, point.tolist(), strict=True)
        replicas = {str(key): to_count(value) for (name, key), value in values if name == "replicas"}
        return self.plan_of(replicas)

    def plan_of(self, replicas: Mapping[str, int]) -> BlockPlan:
        """Return the plan with the replicas of this model among those given by candidate."""
        used = {c.name: replicas[c.name] for c in self.columns if replicas.get(c.name, 0) > 0}
        use: dict[Size, int] = {}
        for column, size in zip(self.columns, self.sizes, strict=True):
            if column.name in used:
                use[size] = use.get(size, 0) + used[column.name]
        return BlockPlan(
            self.model, tuple(sorted(used.items())), tuple(sorted(use.items())), penalties(self.problem, used)
        )


def restricted(program: CompiledProgram, prices: Mapping[str, float]) -> CompiledProgram:
    """Return the program with only the candidates in `prices`, at those prices, and without the rows left empty."""
    owners = [_candidate(name, key) for name, key in program.columns]
    kept = np.array([i for i, owner in enumerate(owners) if owner is None or owner in prices], dtype=int)
    matrix = csr_array(program.matrix[:, kept])
    rows = np.flatnonzero((np.diff(matrix.indptr) > 0) | (program.row_lower > 0.0) | (program.row_upper < 0.0))
    columns = tuple(program.columns[i] for i in kept.tolist())
    return replace(
        program,
        columns=columns,
        rows=tuple(program.rows[i] for i in rows.tolist()),
        cost=np.array([prices[str(key)] if name == "replicas" else 0.0 for name, key in columns]),
        matrix=csr_array(matrix[rows]),
        row_lower=program.row_lower[rows],
        row_upper=program.row_upper[rows],
        lower=program.lower[kept],
        upper=program.upper[kept],
        is_integer=program.is_integer[kept],
    )


def with_bounds(program: CompiledProgram, proven: Sequence[tuple[Mapping[str, float], float]]) -> CompiledProgram:
    """Add rows that say what replicas cost at least at other prices (by candidate)."""
    if not proven:
        return program
    rows = np.array(
        [[prices[str(key)] if name == "replicas" else 0.0 for name, key in program.columns] for prices, _ in proven]
    )
    least = np.array([bound for _, bound in proven])
    scale = np.maximum(rows.max(axis=1), LEAST_PRICE)
    return replace(
        program,
        rows=(*program.rows, *(("block_bound", i) for i in range(len(proven)))),
        matrix=csr_array(vstack([program.matrix, csr_array(rows / scale[:, None])])),
        row_lower=np.append(program.row_lower, least / scale),
        row_upper=np.append(program.row_upper, np.full(len(proven), np.inf)),
    )


def _candidate(name: str, key: object) -> str | None:
    """Return the candidate that a column of the program is about, None when it is about none."""
    if name in ("replicas", "pool_open", "lost", "outlasts"):
        return str(key)
    if name in ("rate", "placed", "spare_rate") and isinstance(key, tuple):
        return str(key[0] if name == "placed" else key[-1])
    return None


def prices_alone(problem: FleetProblem) -> dict[Size, float]:
    """Return the least that a replica of each size costs on nodes used to the last GPU."""
    index = ProgramIndex(problem)
    return {Size.of(c): index.price_of(c) for c in problem.columns}
