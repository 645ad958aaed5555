"""Limits on spot nodes: the share of a workload that they may serve, and offers that sell nothing else."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace

from planner.candidates.supply import build_supply
from planner.catalog import Catalog
from planner.explain.change import Place, flow, with_value
from planner.explain.limit import LEAST_SHARE, Limit, per_cent
from planner.program.data import Demand, FleetProblem
from planner.solve.outcome import Solution
from planner.spec import FleetSpec, OfferSpec
from planner.spec.vocabulary import SPOT, TERMS

EPSILON = 1e-9


def spot_limits(spec: FleetSpec, problem: FleetProblem, catalog: Catalog) -> Iterator[Limit]:
    """Yield the shares of workloads that spot nodes may serve, and the terms of offers that sell spot nodes alone."""
    limited = [d for d in problem.demands if d.spot_share < 1.0 and spec.workloads[d.workload].spot is not None]
    limited = [d for d in limited if any(c.spot and d.workload in c.services for c in problem.columns_of(d.model))]
    for demand in limited:
        yield _share(demand)
        if demand.on_demand_floor and _may_lose(problem, demand.model):
            yield _floor(demand)
    if limited:
        yield from _terms(spec, catalog)


def other_terms(offer: OfferSpec) -> list[tuple[str, ...]]:
    """Return the terms of an offer with one more, which is not spot."""
    return [(*offer.terms, term) for term in TERMS if term != SPOT and term not in offer.terms]


def _share(demand: Demand) -> Limit:
    workload, now = demand.workload, demand.spot_share
    place: Place = ("workloads", workload, "spot", "max_share")

    def needed(p: FleetProblem, found: Solution) -> list[float]:
        spot = sum(found.rates.get((workload, c.name), 0.0) for c in p.columns_of(demand.model) if c.spot)
        share = spot / demand.planned_requests_per_s
        return [now] if share <= now else [min(1.0, math.ceil(share / LEAST_SHARE - EPSILON) * LEAST_SHARE), 1.0]

    return Limit(
        place,
        now,
        needed,
        lambda s, value: with_value(s, place, value),
        per_cent,
        lambda p: _changed(p, workload, lambda d: replace(d, spot_share=1.0)),
        step=LEAST_SHARE,
    )


def _floor(demand: Demand) -> Limit:
    place: Place = ("workloads", demand.workload, "spot", "on_demand_floor")

    return Limit(
        place,
        1.0,
        lambda _problem, _found: [0.0],
        lambda s, value: with_value(s, place, bool(value)),
        lambda value: str(bool(value)).lower(),
        lambda p: _changed(p, demand.workload, lambda d: replace(d, on_demand_floor=False)),
    )


def _may_lose(problem: FleetProblem, model: str) -> bool:
    """Tell whether anything is to be survived, which the floor is about."""
    spares = any(r.spare_replicas > 0 for r in problem.rules if r.model == model)
    return spares or any(c.zone or c.node_replicas > 0 for c in problem.columns_of(model))


def _changed(problem: FleetProblem, workload: str, change: Callable[[Demand], Demand]) -> FleetProblem:
    return replace(problem, demands=tuple(change(d) if d.workload == workload else d for d in problem.demands))


def _terms(spec: FleetSpec, catalog: Catalog) -> Iterator[Limit]:
    """Yield the terms of offers that sell spot nodes alone and would sell others too."""
    sold = build_supply(spec, catalog).offers
    for index, label in enumerate(spec.supply.offer_labels()):
        own = [o for o in sold if o.entry == label]
        if own and all(o.is_spot for o in own):
            place: Place = ("supply", "offers", index, "terms")
            wider = [terms for terms in other_terms(spec.supply.offers[index]) if _sells(spec, place, terms, catalog)]
            if wider:
                yield _term(place, spec.supply.offers[index].terms, wider[0])


def _sells(spec: FleetSpec, place: Place, terms: tuple[str, ...], catalog: Catalog) -> bool:
    """Tell whether an offer has a price for nodes that are not spot under other terms."""
    label = spec.supply.offer_labels()[int(place[2])]
    sold = build_supply(with_value(spec, place, terms), catalog).offers
    return any(o.entry == label and not o.is_spot for o in sold)


def _term(place: Place, now: tuple[str, ...], wider: tuple[str, ...]) -> Limit:
    both = (now, wider)
    return Limit(
        place,
        0.0,
        lambda _problem, _found: [1.0],
        lambda s, value: with_value(s, place, both[int(value)]),
        lambda value: flow(both[int(value)]),
        free=lambda s: with_value(s, place, wider),
    )
