"""The limits of a spec that the program states: each can be dropped from it, and raised in the spec to what a fleet needs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from planner.candidates.periods import base_of
from planner.catalog import Catalog
from planner.explain.change import Place, with_value
from planner.explain.limit import LEAST_SHARE, Limit, fine_step, per_cent, usd_per_month
from planner.explain.reliability import models_by_place
from planner.explain.rules import rule_limits
from planner.explain.shapes import shape_limits
from planner.explain.spot import spot_limits
from planner.explain.trials import Trials
from planner.plan.schema import Plan
from planner.program.data import FleetProblem, ModelRules, Stock, minimises_cost_alone
from planner.solve.outcome import Solution
from planner.spec import FleetSpec

ROOM = 1.02  # a budget raised to what a fleet costs leaves this much, where the exact sum leaves no fleet
NO_LIMIT = 1_000_000


def limits_of(spec: FleetSpec, problem: FleetProblem, trials: Trials) -> list[Limit]:
    """Return every limit that the user may change: shapes, money, hardware, reliability, spot nodes."""
    return [
        *shape_limits(spec, trials),
        *program_limits(spec, problem, trials.catalog),
        *spot_limits(spec, problem, trials.catalog),
    ]


def program_limits(spec: FleetSpec, problem: FleetProblem, catalog: Catalog) -> list[Limit]:
    """Return the limits on money, hardware, replicas and shapes, whose need can be told of any fleet."""
    gpus = {catalog.gpu(name).name: name for name in sorted(spec.supply.limits.gpus)}
    return [
        *_budget(spec, problem),
        *_gpus(problem, gpus),
        *rule_limits(spec, problem),
        *_nodes(spec, problem),
        *_model_rules(spec, problem),
    ]


def fleet_usd_per_h(problem: FleetProblem, found: Solution) -> float:
    """Return what the nodes of a fleet cost."""
    prices = {o.name: o.usd_per_node_h for o in problem.offers}
    return sum(prices[name] * count for name, count in found.nodes.items())


def _budget(spec: FleetSpec, problem: FleetProblem) -> Iterator[Limit]:
    budget, hours = spec.supply.budget_usd_per_month, spec.planning.hours_per_month
    place: Place = ("supply", "budget_usd_per_month")
    if budget is None or problem.budget_usd_per_h is None:
        return

    def needed(problem: FleetProblem, found: Solution) -> list[float]:
        month = fleet_usd_per_h(problem, found) * hours
        return [budget] if month <= budget else [float(math.ceil(month)), float(math.ceil(month * ROOM))]

    yield Limit(
        place,
        budget,
        needed,
        lambda s, value: with_value(s, place, value),
        usd_per_month,
        lambda p: replace(p, budget_usd_per_h=None),
        step=0.0 if minimises_cost_alone(problem) else fine_step(budget),  # the cheapest fleet needs least already
        planned=_cost,
    )


def _cost(plan: Plan) -> float:
    assert plan.objective is not None
    return float(math.ceil(plan.objective.usd_per_month))


def _gpus(problem: FleetProblem, written: Mapping[str, str]) -> Iterator[Limit]:
    for gpu, most in problem.gpu_limits.items():

        def without(p: FleetProblem, gpu: str = gpu) -> FleetProblem:
            return replace(p, gpu_limits={g: n for g, n in p.gpu_limits.items() if g != gpu})

        def needed(p: FleetProblem, found: Solution, gpu: str = gpu, most: int = most) -> list[float]:
            sizes = {o.name: o.gpus_per_node for o in p.offers if o.gpu == gpu}
            used = sum(sizes[n] * count for n, count in found.nodes.items() if n in sizes)
            return [max(used, most), 2 * max(used, most)]

        yield _counted(("supply", "limits", "gpus", written[gpu]), most, needed, without)
    if problem.max_gpu_types is not None:

        def types(p: FleetProblem, found: Solution) -> list[float]:
            kinds = {o.gpu for o in p.offers if found.nodes.get(o.name, 0) > 0}
            return [max(len(kinds), problem.max_gpu_types or 0)]

        place: Place = ("supply", "limits", "gpu_types")
        yield _counted(place, problem.max_gpu_types, types, lambda p: replace(p, max_gpu_types=None))


def _nodes(spec: FleetSpec, problem: FleetProblem) -> Iterator[Limit]:
    """Yield the stock of every offer, and what is committed of those that are not owned."""
    labels = spec.supply.offer_labels()
    for stock in problem.stock:
        index = labels.index(stock.entry if stock.entry in labels else base_of(stock.entry))
        place: Place = ("supply", "offers", index)
        offer = spec.supply.offers[index]

        def used(p: FleetProblem, found: Solution, entry: str = stock.entry) -> int:
            names = {o.name for o in p.offers if o.entry == entry}
            return sum(count for name, count in found.nodes.items() if name in names)

        if stock.available is not None:

            def open_(p: FleetProblem, entry: str = stock.entry) -> FleetProblem:
                return _with_stock(p, entry, lambda s: replace(s, available=None))

            def more(p: FleetProblem, found: Solution, most: int = stock.available, used: _Used = used) -> list[float]:
                least = max(used(p, found), most)
                return [least, least + 1, 2 * least]

            yield _counted((*place, "nodes"), stock.available, more, open_)
        if stock.committed and not offer.is_owned:

            def free(p: FleetProblem, entry: str = stock.entry) -> FleetProblem:
                return _with_stock(p, entry, lambda s: replace(s, committed=0))

            def fewer(
                p: FleetProblem, found: Solution, least: int = stock.committed, used: _Used = used
            ) -> list[float]:
                return [min(used(p, found), least), 0]

            yield _counted((*place, "committed"), stock.committed, fewer, free)


_Used = Callable[[FleetProblem, Solution], int]


def _with_stock(problem: FleetProblem, entry: str, change: Callable[[Stock], Stock]) -> FleetProblem:
    return replace(problem, stock=tuple(change(s) if s.entry == entry else s for s in problem.stock))


def _model_rules(spec: FleetSpec, problem: FleetProblem) -> Iterator[Limit]:
    """Yield spares, least replicas and headroom by the key that sets them, and the limits on the shapes of a model."""
    models = [rule.model for rule in problem.rules]
    for name, free in (("spare_replicas", 0), ("min_replicas", 1)):
        for place, own in models_by_place(spec, models, name).items():
            now = max(getattr(spec.reliability_of(m), name) for m in own)
            if now > free:
                yield _reliability(place, own, name, now, free)
    for place, own in models_by_place(spec, models, "headroom").items():
        share = spec.reliability_of(own[0]).headroom
        if share > 0.0:
            yield _headroom(place, own, share)
    for rule in problem.rules:
        yield from _shape_rules(rule)


def _reliability(place: Place, models: list[str], name: str, now: int, free: int) -> Limit:
    least: dict[str, Any] = {name: free}

    def needed(p: FleetProblem, found: Solution) -> list[float]:
        if name == "spare_replicas":  # what a fleet without spares could lose is not known
            return [free]
        return [min(now, *(_replicas(p, found, model) for model in models))]

    return _counted(place, now, needed, _ruled(models, lambda r: replace(r, **least)))


def _replicas(problem: FleetProblem, found: Solution, model: str) -> int:
    return sum(found.replicas.get(c.name, 0) for c in problem.columns_of(model))


def _headroom(place: Place, models: list[str], share: float) -> Limit:
    def without(p: FleetProblem) -> FleetProblem:
        return replace(p, demands=tuple(replace(d, headroom=0.0) if d.model in models else d for d in p.demands))

    return Limit(
        place,
        share,
        lambda _problem, _found: [0.0],
        lambda s, value: with_value(s, place, value),
        per_cent,
        without,
        step=LEAST_SHARE,
    )


def _shape_rules(rule: ModelRules) -> Iterator[Limit]:
    model, most = rule.model, rule.max_shapes

    def shapes(p: FleetProblem, found: Solution) -> list[float]:
        used = {c.shape for c in p.columns_of(model) if found.replicas.get(c.name, 0) > 0}
        return [max(len(used), most)]

    free = _ruled([model], lambda r: replace(r, max_shapes=NO_LIMIT))
    yield _counted(("models", model, "max_shapes"), most, shapes, free)
    if rule.uniform_format:

        def formats(p: FleetProblem, found: Solution) -> list[float]:
            used = {(c.weights, c.kv_cache) for c in p.columns_of(model) if found.replicas.get(c.name, 0) > 0}
            return [float(len(used) <= 1)]

        place: Place = ("models", model, "uniform_format")
        yield Limit(
            place,
            1.0,
            formats,
            lambda s, value: with_value(s, place, bool(value)),
            lambda value: str(bool(value)).lower(),
            _ruled([model], lambda r: replace(r, uniform_format=False)),
        )


def _ruled(models: list[str], change: Callable[[ModelRules], ModelRules]) -> Callable[[FleetProblem], FleetProblem]:
    return lambda p: replace(p, rules=tuple(change(r) if r.model in models else r for r in p.rules))


def _counted(
    place: Place,
    now: int,
    needed: Callable[[FleetProblem, Solution], list[float]],
    without: Callable[[FleetProblem], FleetProblem],
) -> Limit:
    return Limit(
        place, now, needed, lambda s, value: with_value(s, place, int(value)), lambda value: f"{value:.0f}", without
    )
