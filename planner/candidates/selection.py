"""Which offers a selector admits."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Protocol

from planner.catalog import Catalog, UnknownName
from planner.spec import Selector


class Selectable(Protocol):
    """Nodes as selectors see them: an offer that is priced, or nodes of a plan."""

    @property
    def gpu(self) -> str: ...
    @property
    def provider(self) -> str: ...
    @property
    def region(self) -> str: ...
    @property
    def country(self) -> str: ...
    @property
    def term(self) -> str: ...


def matches(selector: Selector, offer: Selectable, catalog: Catalog) -> bool:
    """Tell whether an offer matches every list that the selector gives; region names take `*` and `?`."""
    region = offer.region.casefold()
    return (
        (not selector.gpus or offer.gpu in {_gpu_name(catalog, g) for g in selector.gpus})
        and (not selector.all_providers or offer.provider in selector.all_providers)
        and (not selector.all_regions or any(fnmatchcase(region, r.casefold()) for r in selector.all_regions))
        and (not selector.all_countries or offer.country in selector.all_countries)
        and (not selector.terms or offer.term in selector.terms)
    )


def admits(allow: Selector, deny: Selector, offer: Selectable, catalog: Catalog) -> bool:
    """Tell whether an offer is allowed and not denied; an empty `deny` denies nothing."""
    return matches(allow, offer, catalog) and (deny.is_any or not matches(deny, offer, catalog))


def _gpu_name(catalog: Catalog, name: str) -> str:
    try:
        return catalog.gpu(name).name
    except UnknownName:
        return name
