"""The limits of a spec that the program states: each can be dropped from it, and raised in the spec to what a fleet needs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from planner.catalog import Catalog
from planner.explain.change import Place, with_value
from planner.explain.limit import Limit, usd_per_month
from planner.explain.rules import rule_limits
from planner.program.data import FleetProblem, ModelRules, Stock
from planner.solve.outcome import Solution
from planner.spec import FleetSpec

ROOM = 1.02  # a budget raised to what a fleet costs leaves this much, where the exact sum leaves no fleet
NO_LIMIT = 1_000_000


def limits_of(spec: FleetSpec, problem: FleetProblem, catalog: Catalog) -> list[Limit]:
    """Return every limit that the user may change: money, hardware, reliability, shapes."""
    gpus = {catalog.gpu(name).name: name for name in sorted(spec.supply.limits.gpus)}
    return [
        *_budget(spec, problem),
        *_gpus(problem, gpus),
        *rule_limits(spec, problem),
        *_nodes(spec, problem),
        *_zones(spec, problem),
        *_model_rules(spec, problem),
    ]


def fleet_usd_per_h(problem: FleetProblem, found: Solution) -> float:
    """Return what the nodes of a fleet cost."""
    prices = {o.name: o.usd_per_node_h for o in problem.offers}
    return sum(prices[name] * count for name, count in found.nodes.items())


def _budget(spec: FleetSpec, problem: FleetProblem) -> Iterator[Limit]:
    budget, hours = spec.supply.budget_usd_per_month, spec.planning.hours_per_month
    if budget is None or problem.budget_usd_per_h is None:
        return

    def needed(problem: FleetProblem, found: Solution) -> list[float]:
        month = fleet_usd_per_h(problem, found) * hours
        return [budget] if month <= budget else [float(math.ceil(month)), float(math.ceil(month * ROOM))]

    yield Limit(
        "supply.budget",
        budget,
        lambda p: replace(p, budget_usd_per_h=None),
        needed,
        lambda s, value: with_value(s, ("supply", "budget_usd_per_month"), value),
        usd_per_month,
    )


def _gpus(problem: FleetProblem, written: Mapping[str, str]) -> Iterator[Limit]:
    for gpu, most in problem.gpu_limits.items():
        name = written[gpu]

        def without(p: FleetProblem, gpu: str = gpu) -> FleetProblem:
            return replace(p, gpu_limits={g: n for g, n in p.gpu_limits.items() if g != gpu})

        def needed(p: FleetProblem, found: Solution, gpu: str = gpu, most: int = most) -> list[float]:
            sizes = {o.name: o.gpus_per_node for o in p.offers if o.gpu == gpu}
            used = sum(sizes[n] * count for n, count in found.nodes.items() if n in sizes)
            return [max(used, most), 2 * max(used, most)]

        yield _counted(f"supply.limits.gpus.{name}", ("supply", "limits", "gpus", name), most, without, needed)
    if problem.max_gpu_types is not None:

        def types(p: FleetProblem, found: Solution) -> list[float]:
            kinds = {o.gpu for o in p.offers if found.nodes.get(o.name, 0) > 0}
            return [max(len(kinds), problem.max_gpu_types or 0)]

        yield _counted(
            "supply.limits.gpu_types",
            ("supply", "limits", "gpu_types"),
            problem.max_gpu_types,
            lambda p: replace(p, max_gpu_types=None),
            types,
        )


def _nodes(spec: FleetSpec, problem: FleetProblem) -> Iterator[Limit]:
    """Yield the stock of every offer, and what is committed of those that are not owned."""
    labels = spec.supply.offer_labels()
    for stock in problem.stock:
        place: Place = ("supply", "offers", labels.index(stock.entry))
        offer = spec.supply.offers[labels.index(stock.entry)]

        def used(p: FleetProblem, found: Solution, entry: str = stock.entry) -> int:
            names = {o.name for o in p.offers if o.entry == entry}
            return sum(count for name, count in found.nodes.items() if name in names)

        if stock.available is not None:

            def open_(p: FleetProblem, entry: str = stock.entry) -> FleetProblem:
                return _with_stock(p, entry, lambda s: replace(s, available=None))

            def more(p: FleetProblem, found: Solution, most: int = stock.available, used: _Used = used) -> list[float]:
                least = max(used(p, found), most)
                return [least, least + 1, 2 * least]

            yield _counted(f"supply.offers.{stock.entry}.nodes", (*place, "nodes"), stock.available, open_, more)
        if stock.committed and not offer.is_owned:

            def free(p: FleetProblem, entry: str = stock.entry) -> FleetProblem:
                return _with_stock(p, entry, lambda s: replace(s, committed=0))

            def fewer(
                p: FleetProblem, found: Solution, least: int = stock.committed, used: _Used = used
            ) -> list[float]:
                return [min(used(p, found), least), 0]

            key = f"supply.offers.{stock.entry}.committed"
            yield _counted(key, (*place, "committed"), stock.committed, free, fewer)


_Used = Callable[[FleetProblem, Solution], int]


def _with_stock(problem: FleetProblem, entry: str, change: Callable[[Stock], Stock]) -> FleetProblem:
    return replace(problem, stock=tuple(change(s) if s.entry == entry else s for s in problem.stock))


def _zones(spec: FleetSpec, problem: FleetProblem) -> Iterator[Limit]:
    """Yield the loss of a zone by the key that asks for it to be survived."""
    due = {o.model for o in problem.outages}
    for place, models in _places_of(spec, problem, "survive").items():
        if due.isdisjoint(models):
            continue

        def without(p: FleetProblem, models: list[str] = models) -> FleetProblem:
            return replace(p, outages=tuple(o for o in p.outages if o.model not in models))

        def raised(s: FleetSpec, value: float, place: Place = place) -> FleetSpec:
            return with_value(s, place, _survived(value))

        yield Limit(_key(place), 1.0, without, lambda _problem, _found: [0.0], raised, _survived)


def _survived(value: float) -> str:
    return "zone" if value else "replica"


def _model_rules(spec: FleetSpec, problem: FleetProblem) -> Iterator[Limit]:
    """Yield spares, least replicas and headroom by the key that sets them, and the limits on the shapes of a model."""
    for name, free in (("spare_replicas", 0), ("min_replicas", 1)):
        for place, models in _places_of(spec, problem, name).items():
            now = max(getattr(spec.reliability_of(m), name) for m in models)
            if now > free:
                yield _reliability(place, models, name, now, free)
    for place, models in _places_of(spec, problem, "headroom").items():
        share = spec.reliability_of(models[0]).headroom
        if share > 0.0:
            yield _headroom(place, models, share)
    for rule in problem.rules:
        yield from _shape_rules(rule)


def _reliability(place: Place, models: list[str], name: str, now: int, free: int) -> Limit:
    fewer = [float(n) for n in range(now - 1, free - 1, -1)]
    least: dict[str, Any] = {name: free}
    without = _ruled(models, lambda r: replace(r, **least))
    return _counted(_key(place), place, now, without, lambda _problem, _found: fewer)


def _headroom(place: Place, models: list[str], share: float) -> Limit:
    def without(p: FleetProblem) -> FleetProblem:
        return replace(p, demands=tuple(replace(d, headroom=0.0) if d.model in models else d for d in p.demands))

    return Limit(
        _key(place),
        share,
        without,
        lambda _problem, _found: [0.0],
        lambda s, value: with_value(s, place, value),
        lambda value: f"{100.0 * value:g} %",
    )


def _shape_rules(rule: ModelRules) -> Iterator[Limit]:
    model, most = rule.model, rule.max_shapes

    def shapes(p: FleetProblem, found: Solution) -> list[float]:
        used = {c.shape for c in p.columns if c.model == model and found.replicas.get(c.name, 0) > 0}
        return [max(len(used), most)]

    free = _ruled([model], lambda r: replace(r, max_shapes=NO_LIMIT))
    yield _counted(f"models.{model}.max_shapes", ("models", model, "max_shapes"), most, free, shapes)
    if rule.uniform_format:

        def formats(p: FleetProblem, found: Solution) -> list[float]:
            used = {
                (c.weights, c.kv_cache) for c in p.columns if c.model == model and found.replicas.get(c.name, 0) > 0
            }
            return [float(len(used) <= 1)]

        yield Limit(
            f"models.{model}.uniform_format",
            1.0,
            _ruled([model], lambda r: replace(r, uniform_format=False)),
            formats,
            lambda s, value: with_value(s, ("models", model, "uniform_format"), bool(value)),
            lambda value: str(bool(value)).lower(),
        )


def _places_of(spec: FleetSpec, problem: FleetProblem, name: str) -> dict[Place, list[str]]:
    """Return the models by the place that sets a key of reliability for them: their own section, or the top level."""
    found: dict[Place, list[str]] = {}
    for rule in problem.rules:
        own = spec.models[rule.model].reliability
        is_own = own is not None and name in own.model_fields_set
        place: Place = ("models", rule.model, "reliability", name) if is_own else ("reliability", name)
        found.setdefault(place, []).append(rule.model)
    return found


def _key(place: Place) -> str:
    return ".".join(map(str, place))


def _ruled(models: list[str], change: Callable[[ModelRules], ModelRules]) -> Callable[[FleetProblem], FleetProblem]:
    return lambda p: replace(p, rules=tuple(change(r) if r.model in models else r for r in p.rules))


def _counted(
    key: str,
    place: Place,
    now: int,
    without: Callable[[FleetProblem], FleetProblem],
    needed: Callable[[FleetProblem, Solution], list[float]],
) -> Limit:
    return Limit(
        key, now, without, needed, lambda s, value: with_value(s, place, int(value)), lambda value: f"{value:.0f}"
    )
