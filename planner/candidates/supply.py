"""From supply entries to priced offers: every instance, region and term of the catalog that an entry admits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import date

from planner.candidates.alternatives import ON_DEMAND, on_demand_prices
from planner.candidates.selection import matches
from planner.candidates.types import Assumption, Price, PricedOffer, Rejection, Stock, Supply
from planner.catalog import Catalog, CatalogOffer
from planner.spec import FleetSpec, OfferSpec
from planner.spec.supply import OWNED

OWNED_TERM = "owned"
OLD_PRICE_DAYS = 180
W_PER_KW = 1000.0


def build_supply(spec: FleetSpec, catalog: Catalog) -> Supply:
    """Price every node that the spec's supply offers, sorted by name."""
    offers: list[PricedOffer] = []
    stock: list[Stock] = []
    rejections: list[Rejection] = []
    for entry, offer in zip(spec.supply.offer_labels(), spec.supply.offers, strict=True):
        if _has_ended(spec, offer, catalog):
            rejections.append(_rejected("supply-ended", entry, f"offer {entry} ended on {offer.until}"))
            continue
        if offer.nodes == 0:
            rejections.append(_rejected("no-nodes", entry, f"offer {entry} has no nodes: `nodes` is 0"))
            continue
        found = [
            _at_own_price(o, catalog)
            for o in _priced(entry, offer, spec, catalog, rejections)
            if _countable(o, spec, catalog, rejections)
        ]
        offers += found
        committed = (offer.nodes or 0) if offer.is_owned else (offer.committed or 0)
        if found and (committed or offer.nodes is not None):
            stock.append(Stock(entry, committed, offer.nodes))
    offers.sort(key=lambda o: o.name)
    stock.sort(key=lambda s: s.entry)
    return Supply(
        tuple(offers),
        tuple(stock),
        tuple(rejections),
        tuple(_assumptions(offers, spec.planning.as_of or catalog.newest_price_date())),
        tuple(frozenset(o.name for o in offers if matches(r.match, o, catalog)) for r in spec.supply.limits.rules),
        on_demand_prices(offers, catalog),
    )


def _has_ended(spec: FleetSpec, offer: OfferSpec, catalog: Catalog) -> bool:
    if offer.until is None:
        return False
    return offer.until < (spec.planning.as_of or catalog.newest_price_date())


def _countable(offer: PricedOffer, spec: FleetSpec, catalog: Catalog, rejections: list[Rejection]) -> bool:
    """Tell whether every limit on vCPUs that the offer falls under can count it; if not, it is ruled out."""
    if offer.vcpus is not None or offer.provider == OWNED:
        return True
    if not any(r.vcpus is not None and matches(r.match, offer, catalog) for r in spec.supply.limits.rules):
        return True
    why = f"{offer.entry}: a limit on vCPUs applies, and those of {offer.instance} are not in the catalog"
    rejections.append(_rejected("unknown-vcpus", offer.entry, why, offer.gpu, offer.name))
    return False


def _priced(
    entry: str, offer: OfferSpec, spec: FleetSpec, catalog: Catalog, rejections: list[Rejection]
) -> Iterator[PricedOffer]:
    if offer.is_owned:
        yield _owned(entry, offer, catalog)
        return
    for listed in _listed(offer, catalog):
        for term in offer.terms:
            priced = _price(offer, listed, term, spec, catalog)
            name = f"{entry}/{listed.region}/{listed.instance}/{term}"
            if priced is None:
                where = f"{listed.instance} in {listed.region}"
                why = f"{entry}: no {term} price is listed for {where}; give price:, discount:, or planning.estimated_prices"
                rejections.append(_rejected("no-price", entry, why, listed.gpu, name))
                continue
            usd_per_node_h, price = priced
            yield PricedOffer(
                name=name,
                entry=entry,
                provider=listed.provider,
                region=listed.region,
                country=listed.country or (offer.country or ""),
                instance=listed.instance,
                gpu=listed.gpu,
                gpus_per_node=listed.gpus_per_node,
                term=term,
                usd_per_node_h=usd_per_node_h,
                price=price,
                power_w=listed.gpus_per_node * catalog.gpu(listed.gpu).device().tdp_w,
                vcpus=listed.vcpus,
            )


def _at_own_price(offer: PricedOffer, catalog: Catalog) -> PricedOffer:
    """Return an offer at the price that the catalog is changed to, if it is."""
    own = catalog.changes.prices.get(offer.name)
    if own is None:
        return offer
    return replace(
        offer, usd_per_node_h=own.of_node(offer.gpus_per_node), price=Price("negotiated", "", f"price.{offer.name}")
    )


def _owned(entry: str, offer: OfferSpec, catalog: Catalog) -> PricedOffer:
    gpus = offer.gpus_per_node or 1
    gpu = catalog.gpu(offer.gpus[0])
    power_w = (gpus * gpu.device().tdp_w + (offer.host_power_w or 0.0)) * (offer.pue or 1.0)
    per_node = offer.price.of_node(gpus) if offer.price is not None else 0.0
    source = f"supply.offers {entry}"
    if offer.electricity_usd_per_kwh is not None:
        per_node += power_w / W_PER_KW * offer.electricity_usd_per_kwh
        source += f", with {power_w / W_PER_KW:.3g} kW at {offer.electricity_usd_per_kwh:g} USD/kWh"
    return PricedOffer(
        name=f"{entry}/{OWNED_TERM}",
        entry=entry,
        provider=offer.provider,
        region=offer.region or entry,
        country=offer.country or "",
        instance=entry,
        gpu=gpu.name,
        gpus_per_node=gpus,
        term=OWNED_TERM,
        usd_per_node_h=per_node,
        price=Price("owned", "", source),
        power_w=power_w,
    )


def _listed(offer: OfferSpec, catalog: Catalog) -> Iterator[CatalogOffer]:
    gpus = {catalog.gpu(g).name for g in offer.gpus}
    regions = {r.casefold() for r in offer.all_regions}
    instances = {i.casefold() for i in offer.instances}
    for listed in catalog.offers(offer.provider):
        if (
            (not gpus or listed.gpu in gpus)
            and (not regions or listed.region.casefold() in regions)
            and (not instances or listed.instance.casefold() in instances)
            and (offer.gpus_per_node is None or listed.gpus_per_node == offer.gpus_per_node)
        ):
            yield listed


def _price(
    offer: OfferSpec, listed: CatalogOffer, term: str, spec: FleetSpec, catalog: Catalog
) -> tuple[float, Price] | None:
    """Price one node for one hour: the user's own price, else the list with discount, else an estimate if allowed."""
    if offer.price_usd_per_node_h is not None:
        return offer.price_usd_per_node_h, Price("negotiated", "", f"supply.offers price of {offer.provider}")
    if offer.price_usd_per_gpu_h is not None:
        own = offer.price_usd_per_gpu_h * listed.gpus_per_node
        return own, Price("negotiated", "", f"supply.offers price of {offer.provider}")
    kept = 1.0 - (offer.discount or 0.0)
    basis = "negotiated" if offer.discount else listed.basis
    if term in listed.prices_usd_per_node_h:
        own = listed.prices_usd_per_node_h[term] * kept
        return own, Price(basis, listed.price_date, listed.source, listed.stale_unknown)
    on_demand = listed.prices_usd_per_node_h.get(ON_DEMAND)
    if on_demand is None:
        return None
    if offer.discount:
        source = f"{offer.discount * 100:.0f} % off the on-demand list; {listed.source}"
        return on_demand * kept, Price(basis, listed.price_date, source, listed.stale_unknown)
    ratio = catalog.commitment_ratio(listed.provider, listed.instance, term, offer.upfront)
    if not spec.planning.estimated_prices or ratio is None:
        return None
    source = f"{ratio.ratio:.2f} of on-demand ({ratio.confidence} confidence, {ratio.basis}; {ratio.source})"
    return on_demand * ratio.ratio, Price("ratio", listed.price_date, source, listed.stale_unknown)


def _rejected(rule: str, entry: str, reason: str, gpu: str = "", offer: str = "") -> Rejection:
    return Rejection(rule=rule, model="", shape=entry, gpu=gpu, reason=reason, offer=offer)


_BASES = {
    "listed": "list prices of",
    "derived": "prices derived from another region's, list of",
    "ratio": "ESTIMATED prices, by a ratio to the list of",
    "negotiated": "own prices or discounts, list of",
}


def _assumptions(offers: list[PricedOffer], as_of: date) -> Iterator[Assumption]:
    """Yield one line for every provider, basis, date and source of prices; prices of owned hardware are the user's."""
    groups: dict[tuple[str, str, str, str], bool] = {}
    for offer in offers:
        price = offer.price
        if price.basis in _BASES:
            key = (offer.provider, price.basis, price.date, price.source)
            groups[key] = groups.get(key, False) or price.stale_unknown
    for (provider, basis, day, source), stale in sorted(groups.items()):
        note = ", exact date unknown" if stale else _age(day, as_of)
        value = f"{_BASES[basis]} {day}{note}" if day else "own prices"
        yield Assumption(f"prices.{provider}", value, source)
    if any(offer.is_spot for offer in offers):
        yield Assumption("supply.spot", "how often spot nodes are taken away is not modelled", "planner/manual/spec.md")


def _age(day: str, as_of: date) -> str:
    """Return a remark on prices older than `OLD_PRICE_DAYS`."""
    try:
        days = (as_of - date.fromisoformat(day)).days
    except ValueError:
        return ""
    return f", {days} DAYS OLD" if days > OLD_PRICE_DAYS else ""
