"""Which offers a selector admits."""

from __future__ import annotations

from fnmatch import fnmatchcase

from planner.candidates.types import PricedOffer
from planner.catalog import Catalog, UnknownName
from planner.spec import Selector


def matches(selector: Selector, offer: PricedOffer, catalog: Catalog) -> bool:
    """Tell whether an offer matches every list that the selector gives; region names take `*` and `?`."""
    region = offer.region.casefold()
    return (
        (not selector.gpus or offer.gpu in {_gpu_name(catalog, g) for g in selector.gpus})
        and (not selector.all_providers or offer.provider in selector.all_providers)
        and (not selector.all_regions or any(fnmatchcase(region, r.casefold()) for r in selector.all_regions))
        and (not selector.all_countries or offer.country in selector.all_countries)
        and (not selector.terms or offer.term in selector.terms)
    )


def admits(allow: Selector, deny: Selector, offer: PricedOffer, catalog: Catalog) -> bool:
    """Tell whether an offer is allowed and not denied; an empty `deny` denies nothing."""
    return matches(allow, offer, catalog) and (deny.is_any or not matches(deny, offer, catalog))


def _gpu_name(catalog: Catalog, name: str) -> str:
    try:
        return catalog.gpu(name).name
    except UnknownName:
        return name
