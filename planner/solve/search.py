"""Column generation over models, and branching on nodes: how a fleet of many models is minimised with a proof.

Prices per replica size stand for the nodes. At any prices, what every model costs alone, and what the nodes cost less the
worth of what they hold, add up to a lower bound (Lagrange). The plans that models choose at those prices are columns of
a master program that buys whole nodes. See planner/manual/program.md, "How it is solved".
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from planner.program.compile import compile_problem
from planner.program.data import BlockBound, FleetProblem, by_model
from planner.program.supply import Needs, Size
from planner.solve.highs import Effort, Status, minimise
from planner.solve.master import Cut, Fleet, Relaxed, Supply, relaxed_master, whole_master
from planner.solve.merge import merged_alone
from planner.solve.pricing import SAFE_SHARE, Block, BlockPlan, Priced, prices_alone
from planner.solve.rating import AsStated, Rating
from planner.solve.replan import replanned
from planner.solve.spares import fragile_pools, loss_rows
from planner.solve.threads import Item, Result, in_threads, in_workers
from planner.solve.whole import Whole

Prices = Mapping[Size, float]
SMOOTHING = 0.7  # weight of the best prices so far against those of the master (in-out separation)
BOX = 0.5  # a shortage costs this much more than the best prices so far
MOST_ROUNDS = 30
STALL_SHARE = 0.02  # of the gap asked for: a bound that rises less stands still
MOST_STALLED = 4
MOST_BRANCHES = 24
MASTER_NODES = 2000
BLOCK_GAP_SHARE = 0.05  # of the gap asked for: what models alone may leave open
ROUND_GAP_SHARE = 0.1  # of the gap asked for: what column generation may leave open in a branch
OPEN_GAP_SHARE = 0.03  # of the gap that is open: the same, as long as it is wide
LEAST_GAP, MOST_GAP = 1e-7, 3e-3  # of models alone, whatever is asked for or open
ROUGH_GAP = 0.01  # of models alone, while it is found out what their pools bear
MOST_REPLANNED = 3  # models planned anew at once
REPLAN_NODES = 200
MOST_PERTURBED = 8
NEAR_GAPS = 1.5  # of the gap asked for: a fleet so near is proven sooner than a better one is found
PERTURBED = 0.05  # spread of the logarithm of prices a little off
DEARER = 1.5  # replicas that are short are dearer by this in the next round
SEED = 1
DEAR = 10.0  # a replica that no nodes hold costs this much more than the dearest that they do
LEAST_CAP = 1e-3  # USD/h for a GPU: a shortage costs something where prices are zero
MOST_RATINGS = 40  # lowerings of one model, or choices of a fleet, in a row: what does not hold then is not used
WHOLE_COST = 1e-6  # relative; costs and shares nearer than this are equal


@dataclass(frozen=True)
class Aim:
    """When a search may stop: a relative gap, or `is_over` says that a limit is reached."""

    gap: float
    is_over: Callable[[], bool] = lambda: False
    time_left_s: Callable[[], float | None] = lambda: None


@dataclass(order=True)
class _Branch:
    """A part of the choices of nodes, with a bound on its fleets and the prices that prove it."""

    bound: float
    number: int
    cuts: tuple[Cut, ...] = field(compare=False)
    prices: Prices = field(compare=False)


@dataclass
class Search:
    """Everything a search has found so far. It goes on from there when capacities of some candidates fall."""

    problem: FleetProblem
    supply: Supply
    blocks: dict[str, Block]
    prices: Prices
    rating: Rating = field(default_factory=AsStated)
    plans: dict[str, list[BlockPlan]] = field(default_factory=dict)
    fragile: set[BlockPlan] = field(default_factory=set)
    unserved: tuple[str, ...] = ()
    best: Fleet | None = None
    bound: float = 0.0
    _priced: dict[str, tuple[Prices, Priced]] = field(default_factory=dict)
    _turn: int = 0
    _root: dict[str, Priced] = field(default_factory=dict)  # what models alone cost at `prices`
    _held: set[BlockPlan] = field(default_factory=set)  # plans whose pools bear their mix, as their model is rated now
    _first: dict[str, FleetProblem] = field(default_factory=dict)  # models that were lowered, as they were rated first
    _uncut: float = 0.0

    @classmethod
    def of(cls, problem: FleetProblem, rating: Rating) -> Search:
        """Start a search: nothing is known but the prices of GPUs on full nodes."""
        blocks = {model: Block(alone) for model, alone in by_model(problem).items()}
        needs = Needs.together(block.needs for block in blocks.values())
        return cls(problem, Supply(problem, needs), blocks, prices_alone(problem), rating)

    def run(self, aim: Aim, branches: int = MOST_BRANCHES) -> None:
        """Search until the gap is reached, or a limit is. `best`, `bound` and `unserved` say what was found.

        `branches` bounds how often plans are generated: never (models choose alone at the cheapest prices), once, or in so
        many branches on nodes.
        """
        root = self._start(aim)
        if not self.is_open(aim) or branches == 0:
            return
        open_branches = [_Branch(root, 0, (), self.prices)]
        closed = np.inf  # the least bound of branches that are settled as far as known plans and prices can
        for number in range(1, branches + 1):
            if not open_branches or aim.is_over():
                break
            branch = heapq.heappop(open_branches)
            if branch.bound >= self._cutoff(aim):
                heapq.heappush(open_branches, branch)
                break
            relaxed = self._generate(branch, aim)
            if number == 1:
                self._settle_on(branch.prices)
                self._raise_bound(branch.bound)
                self._choose(aim)
                if branches > 1 and relaxed is not None and self._is_far(aim):
                    self._replan(relaxed, branch.prices, aim)
                    self._perturb(branch.prices, aim)
            else:
                self._choose(aim)
            if branches > 1 and relaxed is not None and branch.bound < self._cutoff(aim):
                self._replan(relaxed, branch.prices, aim)
            done = relaxed is None or branch.bound >= self._cutoff(aim)
            split = None if relaxed is None or done else self.supply.branch(relaxed.nodes)
            if split is None:
                closed = min(closed, branch.bound)
            else:
                for cut in _halves(*split):
                    heapq.heappush(
                        open_branches,
                        _Branch(branch.bound, 2 * number + (cut.least > 0), (*branch.cuts, cut), branch.prices),
                    )
            self._raise_bound(min([closed, *(b.bound for b in open_branches)]))

    def lower(self, problem: FleetProblem, changed: Iterable[str]) -> None:
        """Take a problem whose candidates of the models `changed` have lower capacities; plans that still hold stay."""
        self.best = None
        alone = by_model(problem)
        for model in sorted(changed):
            known = self.blocks[model].problem
            self._lower(
                model,
                replace(
                    alone[model],
                    cover_weights=known.cover_weights,
                    losses=known.losses,
                    routed_outages=known.routed_outages,
                ),
            )
        self._restate()

    def _lower(self, model: str, problem: FleetProblem) -> None:
        """Take lower capacities of one model. What was proven of it and of all stays true: capacities only fall."""
        self._first.setdefault(model, self.blocks[model].problem)
        block = self.blocks[model] = Block(problem)
        self._held.difference_update(self.plans.get(model, ()))
        self.plans[model] = [p for p in self.plans.get(model, []) if block.carries(p) and block.outlasts(p)]
        self._root.pop(model, None)
        self._priced.pop(model, None)

    def _restate(self) -> None:
        """State supply for the models as they are rated now: more replicas may be needed of what bears less."""
        columns = {c.name: c for block in self.blocks.values() for c in block.columns}
        self.problem = replace(self.problem, columns=tuple(columns[c.name] for c in self.problem.columns))
        self.supply = Supply(self.problem, self._needs())

    def _needs(self) -> Needs:
        return Needs.together(block.needs for block in self.blocks.values())

    def learn(self, whole: Whole) -> bool:
        """Take over what the whole program found: rows about losses, a bound, a fleet.

        Return False when pools of the fleet do not bear their mix, and their models were lowered.
        """
        self._raise_bound(whole.bound)
        for model, alone in by_model(replace(whole.problem, block_bounds=())).items():
            if loss_rows(alone) != loss_rows(self.blocks[model].problem):
                self.blocks[model] = Block(alone)
        if whole.found is None or (self.best is not None and whole.found.cost >= self.best.cost):
            return True  # the best fleet known is as good, and its pools bear their mix
        plans = tuple(block.plan_of(whole.found.replicas) for block in self.blocks.values())
        for plan in plans:
            self._add(plan)
        if not self._all_hold(plans):
            return False
        self._keep(Fleet(plans, {}, {}, whole.found.cost, {}))
        return True

    def stated(self) -> FleetProblem:
        """Return the problem with the rows about losses that models alone turned out to need."""
        alone = [block.problem for block in self.blocks.values()]
        return replace(
            self.problem,
            cover_weights=tuple(w for p in alone for w in p.cover_weights),
            losses=tuple(sorted(name for p in alone for name in p.losses)),
            routed_outages=tuple(o for p in alone for o in p.routed_outages),
        )

    def first_bound(self) -> float:
        """Return a bound for the problem as it was rated at first, before any capacity was lowered."""
        if not self._first:
            return self.bound
        alone = [Block(problem).price(self.prices, MOST_GAP).bound for _, problem in sorted(self._first.items())]
        others = [self._root[m].bound for m in self.blocks if m not in self._first and m in self._root]
        return max(self._uncut, sum(alone) + sum(others) + self.supply.value(self.prices, ()))

    def bounds(self, aim: Aim) -> tuple[BlockBound, ...]:
        """Return what every model alone costs at least at the best prices, as rows for the whole program."""
        self._price_all(self.prices, (), aim)
        return tuple(
            BlockBound(model, self.blocks[model].by_candidate(self.prices), priced.bound * SAFE_SHARE)
            for model, priced in self._root.items()
            if 0.0 < priced.bound < np.inf and any(self.blocks[model].by_candidate(self.prices).values())
        )

    def _start(self, aim: Aim) -> float:
        """Let models choose alone at the cheapest prices. Where nodes hold that, lower models until their pools bear it.

        While models are lowered they are searched roughly, so that little is spent on what does not last.
        """
        if not self.plans:
            self._price_all(self.prices, (), aim, least_gap=ROUGH_GAP)
            self._choose(aim)
            self._root, self._priced = {}, {}
        bound = self._price_all(self.prices, (), aim)
        self.unserved = tuple(m for m in sorted(self.blocks) if not self._is_served(m, aim))
        if self.unserved:
            return np.inf
        self._raise_bound(bound)
        if self.is_open(aim):
            self._choose(aim)
            for model, block in self.blocks.items():
                known = self.plans.setdefault(model, [])
                known += [p for p in block.simple_plans(self.prices) if p not in known]
        return bound

    def _is_served(self, model: str, aim: Aim) -> bool:
        """Tell whether replicas of a model meet its rules on what nodes there are, were they all for it; if in doubt, yes."""
        _, priced = self._priced[model]
        if priced.plan is None:
            return not np.isinf(priced.bound)
        if self.best is not None:
            return True
        effort = Effort(relative_gap=1.0, max_nodes=MASTER_NODES, time_limit_s=aim.time_left_s())
        alone = whole_master(self.supply, [priced.plan], self._dear(), effort)
        if alone is not None and not alone.short:
            return True
        return minimise(compile_problem(self.blocks[model].problem), effort).status is not Status.INFEASIBLE

    def _settle_on(self, prices: Prices) -> None:
        """Make these the best prices; what models alone cost at them is known again when it is asked for."""
        if prices is not self.prices:
            self.prices = prices
            self._root = {m: p for m, (at, p) in self._priced.items() if at is prices}

    def _raise_bound(self, bound: float) -> None:
        self.bound = max(self.bound, bound if self.best is None else min(bound, self.best.cost))
        if not self._first:
            self._uncut = self.bound

    def _cutoff(self, aim: Aim) -> float:
        return np.inf if self.best is None else self.best.cost * (1.0 - aim.gap)

    def is_open(self, aim: Aim) -> bool:
        """Tell whether a fleet within the gap is still to be found, as far as it is known."""
        return not self.unserved and self.bound < min(self._cutoff(aim), np.inf)

    def _is_far(self, aim: Aim) -> bool:
        """Tell whether the best fleet is far enough from its bound for better ones to be looked for before the proof goes on."""
        return self.is_open(replace(aim, gap=NEAR_GAPS * aim.gap))

    def _generate(self, branch: _Branch, aim: Aim) -> Relaxed | None:
        """Generate columns in a branch; raise its bound. Return the last master with fractions, None when it is closed."""
        box = dict.fromkeys(self.supply.sizes, BOX)
        best_prices, inside = branch.prices, SMOOTHING
        relaxed: Relaxed | None = None
        dearest, stalled = self.supply.dearest(branch.cuts), 0
        for _ in range(MOST_ROUNDS):
            caps = {s: best_prices[s] * (1.0 + box[s]) + LEAST_CAP * s.node_gpus * s.nodes_spanned for s in box}
            relaxed = relaxed_master(self.supply, self._all_plans(), branch.cuts, caps)
            if relaxed is None:
                branch.bound = np.inf
                return None
            prices = {s: inside * best_prices[s] + (1.0 - inside) * relaxed.prices[s] for s in box}
            known = len(self._all_plans())
            bound = self._price_all(prices, branch.cuts, aim)
            found = len(self._all_plans()) > known
            stalled = 0 if bound > branch.bound * (1.0 + STALL_SHARE * aim.gap) else stalled + 1
            if bound > branch.bound:
                branch.bound, best_prices, inside = bound, prices, SMOOTHING
            elif not found:
                if inside == 0.0 and not relaxed.short:
                    break
                inside = 0.0
            box = {s: 2.0 * b if s in relaxed.short else max(BOX, b / 2.0) for s, b in box.items()}
            branch.prices = best_prices
            if branch.bound >= self._cutoff(aim) or aim.is_over():
                break
            if branch.bound > dearest * (1.0 + WHOLE_COST):
                branch.bound = np.inf
                return None
            near = not relaxed.short and relaxed.value - branch.bound <= ROUND_GAP_SHARE * aim.gap * relaxed.value
            if stalled >= MOST_STALLED or near:
                break
        return relaxed

    def _price_all(self, prices: Prices, cuts: tuple[Cut, ...], aim: Aim, least_gap: float = LEAST_GAP) -> float:
        """Let every model choose at the prices; keep new plans. Return the bound that follows.

        Whether the pools of a plan bear what they get is found out when it is used.
        """
        open_gap = 1.0 if self.best is None else 1.0 - self.bound / self.best.cost if self.best.cost > 0.0 else 0.0
        root = self._root if prices is self.prices else {}
        self._priced |= {m: (prices, p) for m, p in root.items()}
        gap = max(least_gap, min(MOST_GAP, max(BLOCK_GAP_SHARE * aim.gap, OPEN_GAP_SHARE * open_gap)))
        due = [m for m in self.blocks if m not in self._priced or self._priced[m][0] is not prices]

        asked = [_Asked(self.blocks[m], prices, gap, self._surviving(m)) for m in due]
        for model, (priced, learned) in zip(due, in_workers(_price, asked), strict=True):
            self.blocks[model].learn(learned)
            self._priced[model] = (prices, priced)
            if prices is self.prices:
                self._root[model] = priced
            if priced.plan is not None and self._add(priced.plan) and not priced.survives:
                self.fragile.add(priced.plan)
        alone = sum(self._priced[m][1].bound for m in self.blocks)
        return alone + self.supply.value(prices, cuts)

    def _price_held(self, model: str, prices: Prices, gap: float) -> Priced:
        """Find the cheapest plan of a model at the prices; lower the model until its pools bear their mix."""
        for _ in range(MOST_RATINGS):
            priced = self.blocks[model].price(prices, gap, self._surviving(model))
            if priced.plan is None or not priced.survives or self._holds(priced.plan):
                break
        return priced

    def _holds(self, plan: BlockPlan) -> bool:
        """Tell whether the pools of a plan bear their mix; lower its model where they do not."""
        if plan in self._held:
            return True
        if not self.blocks[plan.model].carries(plan):
            return False  # its model was lowered since
        problem = self.blocks[plan.model].problem
        replicas, _ = merged_alone(problem, dict(plan.replicas), self.rating)
        lower = self.rating.lowered(problem, replicas)
        if lower is None:
            self._held.add(plan)
            return True
        self._lower(plan.model, lower)
        return False

    def _all_hold(self, plans: Iterable[BlockPlan]) -> bool:
        """Tell whether the pools of all plans bear their mix; lower the models where they do not."""
        due: dict[str, list[BlockPlan]] = defaultdict(list)
        for plan in plans:
            if plan not in self.fragile:
                due[plan.model].append(plan)
        held = self._lowering(lambda own: [self._holds(p) for p in own], list(due.values()))
        return all(all(own) for own in held)

    def _add(self, plan: BlockPlan) -> bool:
        """Add a plan to those known; tell whether it was not among them."""
        known = self.plans.setdefault(plan.model, [])
        if plan in known:
            return False
        known.append(plan)
        return True

    def _surviving(self, model: str) -> list[BlockPlan]:
        return [p for p in self.plans.get(model, []) if p not in self.fragile]

    def _all_plans(self) -> list[BlockPlan]:
        return [p for m in self.blocks for p in self.plans.get(m, [])]

    def _choose(self, aim: Aim) -> Mapping[Size, float]:
        """Choose whole plans and nodes among those known; keep the fleet if it is the cheapest so far.

        Return the replicas of each size that are short, when known plans do not fit the nodes there are.
        """
        fine, gap = ROUND_GAP_SHARE * aim.gap, ROUGH_GAP
        for _ in range(MOST_RATINGS):
            effort = Effort(relative_gap=max(gap, fine), max_nodes=MASTER_NODES, time_limit_s=aim.time_left_s())
            plans = [p for m in self.blocks for p in self._surviving(m)]
            if {p.model for p in plans} != set(self.blocks):
                return {}
            fleet = whole_master(self.supply, plans, self._dear(), effort)
            if fleet is None or fleet.short:
                if gap > fine:
                    gap = fine
                    continue
                return {} if fleet is None else fleet.short
            before = dict(self.blocks)
            if aim.is_over() or self._all_hold(fleet.plans):
                self._keep(fleet)
                if gap <= fine:
                    return {}
                gap = fine
                continue
            self._renew([m for m in self.blocks if self.blocks[m] is not before[m]])
        return {}

    def _lowering(self, function: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
        """Return `function` of every item; it may lower models, for which supply is stated anew then."""
        before = dict(self.blocks)
        found = in_threads(function, items)
        if self.blocks != before:
            self._restate()
        return found

    def _renew(self, models: Sequence[str]) -> None:
        """Let models that were lowered choose again, roughly, so that others need not make up for the plans they lost."""
        found = self._lowering(lambda m: self._price_held(m, self.prices, ROUGH_GAP), models)
        for priced in found:
            if priced.plan is not None and self._add(priced.plan) and not priced.survives:
                self.fragile.add(priced.plan)

    def _keep(self, fleet: Fleet) -> None:
        if self.best is None or fleet.cost < self.best.cost:
            self.best = fleet

    def _replan(self, relaxed: Relaxed, prices: Prices, aim: Aim) -> None:
        """Plan some models anew, in turn, while the others choose among known plans.

        Those that the master uses fractions of come first, the dearest before others.
        """
        whole = {p.model for p, share in relaxed.shares.items() if share > 1.0 - WHOLE_COST}
        weight = {m: max((p.cost_at(prices) for p in self.plans[m]), default=0.0) for m in self.blocks}
        order = sorted(self.blocks, key=lambda m: (m in whole, -weight[m], m))
        start = self._turn * MOST_REPLANNED % len(order)
        self._turn += 1
        blocks = [self.blocks[m] for m in sorted((order + order)[start : start + min(MOST_REPLANNED, len(order))])]
        anew = {b.model for b in blocks}
        names = {name for b in blocks for name in b.worth_having(prices)}
        names |= {name for p in relaxed.shares if p.model in anew for name, _ in p.replicas}
        others = [p for m in self.blocks if m not in anew for p in self._surviving(m)]
        cutoff = None if self.best is None else self.best.cost * (1.0 - WHOLE_COST)
        effort = Effort(ROUND_GAP_SHARE * aim.gap, 0.0, REPLAN_NODES, aim.time_left_s(), cutoff=cutoff)
        fleet = replanned(self.problem, self._needs(), blocks, others, names, self._dear(), effort)
        if fleet is None or fleet.short:
            return
        for plan in fleet.plans:
            if self._add(plan) and fragile_pools(self.blocks[plan.model].problem, dict(plan.replicas)):
                self.fragile.add(plan)
        if not self.fragile.intersection(fleet.plans) and self._all_hold(fleet.plans):
            self._keep(fleet)

    def _dear(self) -> dict[Size, float]:
        """Return prices for replicas that no nodes hold, far above those of nodes."""
        dearest = max(p / (s.node_gpus * s.nodes_spanned) for s, p in self.prices.items()) + LEAST_CAP
        return {s: DEAR * dearest * s.node_gpus * s.nodes_spanned for s in self.prices}

    def _perturb(self, prices: Prices, aim: Aim) -> None:
        """Find more plans at prices a little off, dearer where replicas are short, until known plans make a good fleet."""
        draw = np.random.Generator(np.random.PCG64(SEED))
        dearer = dict.fromkeys(prices, 1.0)
        gpus = sorted({s.gpu for s in prices})
        for _ in range(MOST_PERTURBED):
            short = self._choose(aim)
            if not self._is_far(aim) or aim.is_over():
                return
            dearer = {s: d * DEARER if s in short else d for s, d in dearer.items()}
            factor = dict(zip(gpus, draw.lognormal(0.0, PERTURBED, len(gpus)).tolist(), strict=True))
            self._price_all({s: p * dearer[s] * factor[s.gpu] for s, p in prices.items()}, (), aim)
        self._choose(aim)


@dataclass(frozen=True)
class _Asked:
    """A model to be priced by whoever is free, with all that it takes."""

    block: Block
    prices: Prices
    gap: float
    known: Sequence[BlockPlan]


def _price(asked: _Asked) -> tuple[Priced, dict[str, object]]:
    """Return the cheapest plan of a model, and what was learned of the model on the way."""
    before = asked.block.known()
    return asked.block.price(asked.prices, asked.gap, asked.known), asked.block.learned(before)


def _halves(nodes: tuple[int, ...], count: float) -> tuple[Cut, Cut]:
    return Cut(nodes, 0.0, float(np.floor(count))), Cut(nodes, float(np.ceil(count)), np.inf)
