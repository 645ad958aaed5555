"""Priced offers: what one node of an instance type costs in one region."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Annotated, Literal

from pydantic import Field, Strict

from planner.catalog.base import Positive, Record, Text, Texts, Whole

Term = Literal["on-demand", "spot", "1y", "3y"]

TERMS: tuple[Term, ...] = ("on-demand", "spot", "1y", "3y")
"""Terms of purchase, in the order of a price row."""

Basis = Literal["listed", "derived"]
PriceRow = Annotated[list[Positive | None], Field(min_length=1, max_length=len(TERMS))]


@dataclass(frozen=True, slots=True)
class CatalogOffer:
    """One instance type in one region, with its prices in USD per node and hour by term.

    `prices_usd_per_node_h` holds only terms that are sold; `unsold_usd_per_node_h` holds sums of components that nobody
    sells as such. `country` is an ISO 3166 code, empty where the region does not fix one. `price_date` is an ISO date,
    or a range or year as the source gives it.
    """

    provider: str
    region: str
    country: str
    instance: str
    gpu: str
    gpus_per_node: int
    vcpus: int | None
    memory_gib: float | None
    prices_usd_per_node_h: Mapping[str, float]
    unsold_usd_per_node_h: Mapping[str, float]
    price_date: str
    basis: Basis
    source: str
    doubts: tuple[str, ...]

    @property
    def terms(self) -> tuple[str, ...]:
        """Terms with a price, in the order of `TERMS`."""
        return tuple(t for t in TERMS if t in self.prices_usd_per_node_h)

    @property
    def spot_only(self) -> bool:
        """Tell whether spot is the only term sold."""
        return self.terms == ("spot",)

    @property
    def price_day(self) -> date | None:
        """The exact day of the price, or None when the source gives no day."""
        return exact_day(self.price_date)

    @property
    def stale_unknown(self) -> bool:
        """Tell whether the age of the price cannot be known."""
        return self.price_day is None


class PriceList(Record):
    """Where a group of prices is from; `basis` is derived when they were computed from other prices."""

    date: Text
    basis: Basis
    source: Text
    doubts: Texts = ()


class Instance(Record):
    """One instance type: its GPUs and, by price list and region, its rows of prices in the order of `TERMS`.

    `terms` limits what is sold; absent, every priced term is.
    """

    instance: Text
    gpu: Text
    gpus: Whole
    vcpus: Whole | None = None
    memory_gib: Positive | None = None
    terms: Annotated[tuple[Term, ...], Strict(False)] = TERMS
    doubts: Texts = ()
    prices: dict[Text, dict[Text, PriceRow]]


class OfferFile(Record):
    """The content of `offers/<provider>.yaml`."""

    provider: Text
    price_lists: dict[Text, PriceList]
    instances: Annotated[tuple[Instance, ...], Strict(False)]


def exact_day(text: str) -> date | None:
    """Return the day that `text` names as an ISO date, or None for ranges, years and months."""
    if not re.fullmatch(r"\d{4}-\d{2}-\d{2}", text):
        return None
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


def expand(file: OfferFile, countries: Mapping[str, str]) -> tuple[CatalogOffer, ...]:
    """Return one offer per instance and region, sorted. Rows of unknown price lists are left out; `check` names them."""
    offers = (offer for instance in file.instances for offer in _of_instance(file, instance, countries))
    return tuple(sorted(offers, key=lambda o: (o.instance, o.gpu, o.gpus_per_node, o.region, o.memory_gib or 0.0)))


def _of_instance(file: OfferFile, instance: Instance, countries: Mapping[str, str]) -> Iterator[CatalogOffer]:
    for list_name, regions in instance.prices.items():
        prices = file.price_lists.get(list_name)
        if prices is None:
            continue
        for region, row in regions.items():
            named = {t: p for t, p in zip(TERMS, row, strict=False) if p is not None}
            yield CatalogOffer(
                provider=file.provider,
                region=region,
                country=countries.get(region, ""),
                instance=instance.instance,
                gpu=instance.gpu,
                gpus_per_node=instance.gpus,
                vcpus=instance.vcpus,
                memory_gib=instance.memory_gib,
                prices_usd_per_node_h={t: p for t, p in named.items() if t in instance.terms},
                unsold_usd_per_node_h={t: p for t, p in named.items() if t not in instance.terms},
                price_date=prices.date,
                basis=prices.basis,
                source=prices.source,
                doubts=(*prices.doubts, *instance.doubts),
            )
