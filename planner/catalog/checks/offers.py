"""Checks of `offers/`: references, prices, ages, and the ratios of committed prices."""

from __future__ import annotations

from datetime import date

from planner.catalog.checks.findings import Findings, doubts, place, warning
from planner.catalog.offer import CatalogOffer, Instance, OfferFile, PriceList, exact_day
from planner.catalog.store import Catalog
from planner.diagnostics import Diagnostic, Span
from planner.source import FilePath


def findings(catalog: Catalog, provider: str, clock: date) -> Findings:
    """Yield what is wrong or doubtful about the prices of one provider, seen at `clock`."""
    path = catalog.root / "offers" / f"{provider}.yaml"
    file = catalog.offer_file(provider)
    known = {*catalog.gpu_names(), *(n.name for n in catalog.not_modelled())}
    for position, instance in enumerate(file.instances):
        yield from _instance(file, instance, known, path, position)
    for name, prices in file.price_lists.items():
        who = f"{provider}, price list {name}"
        yield from _age(who, prices, clock, catalog.index.stale_after_days, place(path, "price_lists", name))
        yield from doubts(who, prices.doubts, path, "price_lists", name, "doubts")
    yield from _offers(catalog, provider, place(path, "instances"))


def newest_price_findings(catalog: Catalog) -> Findings:
    """Yield an error when the date recorded in `catalog.yaml` is not that of the newest price."""
    days = [o.price_day for p in catalog.providers() for o in catalog.offers(p)]
    newest = max((d for d in days if d is not None), default=None)
    if newest is not None and newest != catalog.newest_price_date():
        message = f"newest_price_date must be {newest}, the newest exact date of a price"
        yield Diagnostic("catalog/price-date", message, place(catalog.root / "catalog.yaml", "newest_price_date"))


def ratio_findings(catalog: Catalog) -> Findings:
    """Yield unknown GPUs of ratios, and a warning about ratios that are no measure of GPU prices."""
    path = catalog.root / "offers" / "commitments.yaml"
    ratios = catalog.commitments.ratios
    for position, ratio in enumerate(ratios):
        if ratio.gpu and ratio.gpu not in catalog.gpu_names():
            message = f"ratio of {ratio.provider}: no `{ratio.gpu}` in gpus/"
            yield Diagnostic("catalog/unknown-gpu", message, place(path, "ratios", position))
    generic = sorted({r.provider for r in ratios if r.generic})
    if generic:
        message = f"ratios of {', '.join(generic)} average general-purpose machines and are no offers"
        yield warning("catalog/doubt", message, place(path, "ratios"))


def _instance(file: OfferFile, instance: Instance, known: set[str], path: FilePath, position: int) -> Findings:
    who = f"{file.provider} {instance.instance}"
    if instance.gpu not in known:
        message = f"{who}: no GPU `{instance.gpu}` in the catalog"
        yield Diagnostic("catalog/unknown-gpu", message, place(path, "instances", position, "gpu"))
    for name in sorted(set(instance.prices) - set(file.price_lists)):
        message = f"{who}: no price list `{name}` in this file"
        yield Diagnostic("catalog/unknown-price-list", message, place(path, "instances", position, "prices", name))
    yield from doubts(who, instance.doubts, path, "instances", position, "doubts")


def _age(who: str, prices: PriceList, clock: date, stale_after_days: int, span: Span) -> Findings:
    day = exact_day(prices.date)
    if day is None:
        yield warning("catalog/undated-price", f"{who}: dated {prices.date}, so the age is unknown", span)
    elif (clock - day).days > stale_after_days:
        yield warning("catalog/stale-price", f"{who}: {(clock - day).days} days old", span)


def _offers(catalog: Catalog, provider: str, span: Span) -> Findings:
    countries = catalog.regions(provider)
    seen: set[tuple[object, ...]] = set()
    for offer in catalog.all_offers(provider):
        who = f"{provider} {offer.instance} in {offer.region}"
        identity = (offer.instance, offer.gpu, offer.gpus_per_node, offer.memory_gib, offer.region)
        if identity in seen:
            yield Diagnostic("catalog/duplicate-offer", f"{who}: priced twice", span)
        seen.add(identity)
        if offer.region not in countries:
            yield Diagnostic("catalog/unknown-region", f"{who}: the region is not in offers/regions.yaml", span)
        if _is_dearer_on_spot(offer):
            yield warning("catalog/doubt", f"{who}: spot costs more than on-demand", span)


def _is_dearer_on_spot(offer: CatalogOffer) -> bool:
    prices = offer.prices_usd_per_node_h
    return "spot" in prices and "on-demand" in prices and prices["spot"] > prices["on-demand"]
