"""What a spec asks of the nodes that a workload may be served on: where they are, under which terms, with which GPUs."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

from planner.catalog import CatalogOffer
from planner.explain.change import Place, flow, with_value
from planner.explain.spot import other_terms
from planner.explain.wish import Asked, Wish
from planner.spec import FleetSpec, OfferSpec, Selector, SpotSpec

YEAR = timedelta(days=365)
ABSENT = "null"  # a key that the spec does not have, as YAML


def admission(asked: Asked) -> Iterator[Wish]:
    """Yield what keeps a workload from all offers: selectors, regions, spot nodes, terms."""
    yield from _selectors(asked)
    yield from _regions(asked)
    yield from _spot(asked)
    yield from _terms(asked)


def hardware(asked: Asked) -> Iterator[Wish]:
    """Yield the GPUs of the offers, where the provider sells others at the same place."""
    for place, _, offer in _bought(asked):
        if offer.instances or not offer.gpus:
            continue
        own = {asked.trials.catalog.gpu(g).name for g in offer.gpus}
        price: dict[str, float] = {}
        for listed in _sold(asked, offer, any_gpu=True):
            price[listed.gpu] = min(_usd_per_gpu_h(listed, offer), price.get(listed.gpu, math.inf))
        others = sorted((g for g in price if g not in own), key=lambda g: (price[g], g))
        wider = [(*offer.gpus, g) for g in others]
        everything = (*offer.gpus, *others)
        yield asked.wish((*place, "gpus"), flow(offer.gpus), "", everything, [(w, flow(w)) for w in wider])


def _selectors(asked: Asked) -> Iterator[Wish]:
    """Yield selectors that leave no offer."""
    for section, name in (("workloads", asked.workload.name), ("models", asked.workload.model)):
        holder = getattr(asked.spec, section)[name]
        for field in Selector.model_fields:
            own = getattr(holder.allow, field)
            place = (section, name, "allow", field)
            on_offer = _on_offer(asked, field) if own else []
            if isinstance(own, str):
                yield asked.wish(place, own, "selector", None, [(v, v) for v in on_offer if v != own])
            elif own:
                wider = [(*own, value) for value in on_offer if value not in own]
                yield asked.wish(place, flow(own), "selector", (), [(w, flow(w)) for w in wider])
        if not holder.deny.is_any:
            is_inherited = section == "models" and not asked.spec.defaults.deny.is_any
            nothing = _emptied(holder.deny) if is_inherited else "{}"  # what is not written anew stays as inherited
            free = Selector()
            yield asked.wish((section, name, "deny"), _selector(holder.deny), "selector", free, [(free, nothing)])


def _on_offer(asked: Asked, field: str) -> list[str]:
    """Return what the offers have for a field of selectors, cheapest GPU first."""
    name = "country" if field == "countries" else field.removesuffix("s")
    offers = sorted(asked.table.supply.offers, key=lambda o: (o.usd_per_node_h / o.gpus_per_node, o.name))
    return list(dict.fromkeys(value for o in offers if (value := str(getattr(o, name)))))


def _regions(asked: Asked) -> Iterator[Wish]:
    """Yield regions of the offers, where the provider sells the hardware elsewhere too, the cheapest first."""
    for place, _, offer in _bought(asked):
        if not offer.all_regions:
            continue
        price = _price_by_region(asked, offer)
        elsewhere = sorted(set(price) - set(offer.all_regions), key=lambda r: (price[r], r))
        everywhere = (*offer.all_regions, *elsewhere)
        is_one = offer.region is not None
        name = "region" if is_one else "regions"
        values = [((r, r) if is_one else ((*offer.regions, r), flow((*offer.regions, r)))) for r in elsewhere]

        def without(s: FleetSpec, place: Place = place, everywhere: tuple[str, ...] = everywhere) -> FleetSpec:
            return with_value(with_value(s, (*place, "region"), None), (*place, "regions"), everywhere)

        wish = asked.wish((*place, name), offer.region or flow(offer.regions), "selector", None, values)
        yield replace(wish, without=without)


def _price_by_region(asked: Asked, offer: OfferSpec) -> dict[str, float]:
    """Return what one GPU of each type of an offer costs together in the regions that sell any of them."""
    price: dict[tuple[str, str], float] = {}
    for listed in _sold(asked, offer, any_region=True):
        at = (listed.region, listed.gpu)
        price[at] = min(_usd_per_gpu_h(listed, offer), price.get(at, math.inf))
    gpus = {gpu for _, gpu in price}
    return {region: sum(price.get((region, gpu), math.inf) for gpu in sorted(gpus)) for region, _ in price}


def _spot(asked: Asked) -> Iterator[Wish]:
    """Yield the permission of spot nodes, where the workload does not have it and there are some."""
    if asked.workload.spec.spot is None and any(o.is_spot for o in asked.table.supply.offers):
        allowed = SpotSpec()
        yield asked.wish(("workloads", asked.workload.name, "spot"), ABSENT, "selector", allowed, [(allowed, "{}")])


def _terms(asked: Asked) -> Iterator[Wish]:
    """Yield ends of offers, terms without a price or of spot nodes alone, and whether prices may be estimated."""
    ended = {r.shape for r in asked.table.rejections if r.rule == "supply-ended"}
    unpriced = {r.shape for r in asked.table.rejections if r.rule == "no-price"}
    on_spot = set() if asked.workload.spec.spot is not None else _only_spot(asked)
    for place, label, offer in _offers(asked):
        as_of = asked.spec.planning.as_of
        if label in ended and offer.until is not None and as_of is not None:
            later = as_of + YEAR
            yield asked.wish((*place, "until"), f"{offer.until}", "supply-ended", None, [(later, f"{later}")])
        wider = other_terms(offer)
        if wider and label in unpriced | on_spot:
            cause = "no-price" if label in unpriced else "selector"
            every = (*offer.terms, *(terms[-1] for terms in wider))
            yield asked.wish((*place, "terms"), flow(offer.terms), cause, every, [(w, flow(w)) for w in wider])
    if unpriced and not asked.spec.planning.estimated_prices:
        yield asked.wish(("planning", "estimated_prices"), "false", "no-price", True, [(True, "true")])


def _only_spot(asked: Asked) -> set[str]:
    """Return the labels of offers all of whose priced nodes are spot nodes."""
    offers = asked.table.supply.offers
    return {o.entry for o in offers} - {o.entry for o in offers if not o.is_spot}


def _offers(asked: Asked) -> Iterator[tuple[Place, str, OfferSpec]]:
    supply = asked.spec.supply
    for index, (label, offer) in enumerate(zip(supply.offer_labels(), supply.offers, strict=True)):
        yield ("supply", "offers", index), label, offer


def _bought(asked: Asked) -> Iterator[tuple[Place, str, OfferSpec]]:
    yield from (each for each in _offers(asked) if not each[2].is_owned)


def _sold(asked: Asked, offer: OfferSpec, any_region: bool = False, any_gpu: bool = False) -> list[CatalogOffer]:
    catalog = asked.trials.catalog
    gpus = {catalog.gpu(g).name for g in offer.gpus}
    regions = {r.casefold() for r in offer.all_regions}
    return [
        o
        for o in catalog.offers(offer.provider)
        if (any_region or not regions or o.region.casefold() in regions) and (any_gpu or not gpus or o.gpu in gpus)
    ]


def _usd_per_gpu_h(listed: CatalogOffer, offer: OfferSpec) -> float:
    """Return what a GPU costs at the list price under the cheapest term of an offer, infinite without one."""
    prices = [usd for term, usd in listed.prices_usd_per_node_h.items() if term in offer.terms]
    return min(prices, default=math.inf) / listed.gpus_per_node


def _selector(own: Selector) -> str:
    given = {name: values for name in Selector.model_fields if (values := getattr(own, name))}
    return f"{{{', '.join(f'{n}: {v if isinstance(v, str) else flow(v)}' for n, v in given.items())}}}"


def _emptied(own: Selector) -> str:
    """Return a selector with the lists of another, all empty."""
    return f"{{{', '.join(f'{name}: []' for name in Selector.model_fields if getattr(own, name))}}}"
