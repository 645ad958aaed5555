"""Say why no fleet meets a spec: what nothing can serve, or which limits have to give, each tried by solving again."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from planner.candidates.rating import in_words
from planner.candidates.types import CandidateTable, Rejection
from planner.plan.schema import Conflict, InfeasibleReport, Relaxation
from planner.program.data import FleetProblem, Stock
from planner.solve.fleet import SolveLimits, solve
from planner.solve.outcome import Solution, Solved, Unproven
from planner.spec import FleetSpec

MOST_REASONS = 12
RELAXED_GAP = 0.02  # what a way out costs is told to this share, since several are solved
RELAXED_NODES = 300
RULE_ORDER = ("latency", "hbm-fit", "quality-floor", "format-support", "layout", "selector", "no-price", "supply-ended")
"""The nearer a shape came to being used, the earlier its rule: what failed last is what is in the way."""


def explain_unserved(spec: FleetSpec, table: CandidateTable) -> InfeasibleReport | None:
    """Report the workloads that no candidate can serve, with the reason on every GPU type; None when there are none."""
    unserved = [w for w in table.workloads if not any(w in c.services for c in table.candidates)]
    if not unserved:
        return None
    conflict: list[Conflict] = []
    reasons: list[str] = []
    for name in unserved:
        model = table.workloads[name].model
        found = [r for r in table.rejections if r.model == model and r.workload in ("", name)]
        nearest = _nearest_by_gpu(found)
        reasons.append(f"no candidate can serve workload {name} of model {model}")
        reasons += [f"{gpu}: {r.shape or 'all shapes'}: {r.reason}" for gpu, r in nearest[:MOST_REASONS]]
        conflict += _keys(spec, name, model, table.models[model].max_model_len, [r for _, r in nearest])
    unpriced = [r for r in table.rejections if r.rule in ("no-price", "supply-ended")]
    if not table.supply.offers:
        reasons += [r.reason for r in unpriced][:MOST_REASONS]
        conflict += [Conflict(key=f"supply.offers.{r.shape}", value=r.rule) for r in unpriced]
    return InfeasibleReport(reason="\n".join(dict.fromkeys(reasons)), conflict=_unique(conflict), relaxations=())


def _nearest_by_gpu(rejections: list[Rejection]) -> list[tuple[str, Rejection]]:
    """Return, by GPU type, the rejection that came nearest to a usable shape."""
    nearest: dict[str, Rejection] = {}
    for rejection in sorted(rejections, key=lambda r: (_rank(r), r.shape)):
        if rejection.gpu and rejection.rule in RULE_ORDER:
            nearest.setdefault(rejection.gpu, rejection)
    return sorted(nearest.items())


def _rank(rejection: Rejection) -> int:
    return RULE_ORDER.index(rejection.rule) if rejection.rule in RULE_ORDER else len(RULE_ORDER)


def _keys(
    spec: FleetSpec, workload: str, model: str, table_length: int, rejections: list[Rejection]
) -> Iterator[Conflict]:
    """Yield the user's own keys behind the nearest rejections."""
    for rejection in sorted(rejections, key=_rank):
        match rejection.rule:
            case "latency":
                for key, limit in sorted(spec.workloads[workload].slo.items()):
                    if rejection.reason.startswith(key):
                        yield Conflict(key=f"workloads.{workload}.slo.{key}", value=in_words(limit))
            case "hbm-fit":
                length = spec.models[model].max_model_len
                yield Conflict(key=f"models.{model}.max_model_len", value=f"{length or table_length} tokens")
                yield Conflict(key="supply.offers", value=rejection.gpu)
            case "quality-floor":
                yield Conflict(key=f"models.{model}.min_quality", value=f"{spec.models[model].min_quality:.2%}")
            case "layout":
                yield Conflict(key=f"models.{model}.parallelism", value=rejection.reason)
            case "selector":
                asked, served = spec.workloads[workload], spec.models[model]
                where = f"workloads.{workload}" if not (asked.allow.is_any and asked.deny.is_any) else f"models.{model}"
                allow = asked.allow if where.startswith("workloads") else served.allow
                yield Conflict(key=f"{where}.{'deny' if allow.is_any else 'allow'}", value="it admits no offer")


def _unique(conflicts: list[Conflict]) -> tuple[Conflict, ...]:
    return tuple({(c.key, c.value): c for c in conflicts}.values())


@dataclass(frozen=True)
class _Way:
    """One way out: the key, its value now, the problem without it, and what it must become."""

    key: str
    now: str
    relaxed: FleetProblem
    needed: Callable[[Solution], str]


def explain_limits(spec: FleetSpec, problem: FleetProblem, limits: SolveLimits) -> InfeasibleReport:
    """Drop each limit of the spec alone and solve again: those that make it feasible are in the way.

    Every relaxation reported was solved, within `RELAXED_GAP`; its cost is that of the fleet found.
    """
    limits = replace(limits, gap=max(limits.gap, RELAXED_GAP), max_nodes=RELAXED_NODES)
    conflict: list[Conflict] = []
    relaxations: list[Relaxation] = []
    for way in _ways(spec, problem):
        outcome = solve(way.relaxed, limits).outcome
        if isinstance(outcome, Solved | Unproven):
            solution = outcome.solution
            conflict.append(Conflict(key=way.key, value=way.now))
            cost = _cost(problem, solution)
            relaxations.append(Relaxation(key=way.key, from_=way.now, to=way.needed(solution), usd_per_hour=cost))
    if not relaxations:
        return _several(spec, problem, limits)
    relaxations.sort(key=lambda r: (r.usd_per_hour or 0.0, r.key))
    return InfeasibleReport(
        reason="the limits of the spec leave no fleet; any one of these changes makes it feasible",
        conflict=tuple(conflict),
        relaxations=tuple(relaxations),
    )


def _several(spec: FleetSpec, problem: FleetProblem, limits: SolveLimits) -> InfeasibleReport:
    """Report limits that are only together in the way."""
    ways = list(_ways(spec, problem))
    free = replace(problem, budget_usd_per_h=None, gpu_limits={}, max_gpu_types=None, stock=_unlimited(problem.stock))
    outcome = solve(free, limits).outcome
    conflict = tuple(Conflict(key=w.key, value=w.now) for w in ways)
    if not isinstance(outcome, Solved | Unproven):
        reason = (
            "no fleet meets the spec even without budget, stock and limits: max_shapes, spares and formats conflict"
        )
        return InfeasibleReport(reason=reason, conflict=conflict, relaxations=())
    relaxations = tuple(
        Relaxation(key=w.key, from_=w.now, to=w.needed(outcome.solution), usd_per_hour=None) for w in ways
    )
    together = _cost(problem, outcome.solution)
    reason = f"no single limit is in the way; all of these changes together make it feasible, at {together:.2f} USD/h"
    return InfeasibleReport(reason=reason, conflict=conflict, relaxations=relaxations)


def _ways(spec: FleetSpec, problem: FleetProblem) -> Iterator[_Way]:
    hours = spec.planning.hours_per_month
    if problem.budget_usd_per_h is not None:
        now = f"{problem.budget_usd_per_h * hours:.0f} USD/month"
        yield _Way(
            "supply.budget",
            now,
            replace(problem, budget_usd_per_h=None),
            lambda s: f"{math.ceil(_cost(problem, s) * hours)} USD/month",
        )
    for gpu, limit in sorted(problem.gpu_limits.items()):
        others = {g: n for g, n in problem.gpu_limits.items() if g != gpu}
        relaxed = replace(problem, gpu_limits=others)
        yield _Way(f"supply.limits.gpus.{gpu}", str(limit), relaxed, _gpus_used(problem, gpu))
    if problem.max_gpu_types is not None:
        relaxed = replace(problem, max_gpu_types=None)
        yield _Way("supply.limits.gpu_types", str(problem.max_gpu_types), relaxed, _types_used(problem))
    for stock in problem.stock:
        if stock.available is not None:
            rest = tuple(_open(s) if s.entry == stock.entry else s for s in problem.stock)
            relaxed = replace(problem, stock=rest)
            yield _Way(f"supply.offers.{stock.entry}.nodes", str(stock.available), relaxed, _nodes_used(problem, stock))


def _unlimited(stock: tuple[Stock, ...]) -> tuple[Stock, ...]:
    return tuple(_open(s) for s in stock)


def _open(stock: Stock) -> Stock:
    return Stock(stock.entry, stock.committed, None)


def _cost(problem: FleetProblem, solution: Solution) -> float:
    prices = {o.name: o.usd_per_node_h for o in problem.offers}
    return sum(prices[name] * count for name, count in solution.nodes.items())


def _gpus_used(problem: FleetProblem, gpu: str) -> Callable[[Solution], str]:
    sizes = {o.name: o.gpus_per_node for o in problem.offers if o.gpu == gpu}
    return lambda s: str(sum(sizes[name] * count for name, count in s.nodes.items() if name in sizes))


def _types_used(problem: FleetProblem) -> Callable[[Solution], str]:
    types = {c.name: c.gpu for c in problem.columns}
    return lambda s: str(len(Counter(types[name] for name in s.replicas)))


def _nodes_used(problem: FleetProblem, stock: Stock) -> Callable[[Solution], str]:
    entry = {o.name for o in problem.offers if o.entry == stock.entry}
    return lambda s: str(sum(count for name, count in s.nodes.items() if name in entry))
