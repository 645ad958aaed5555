"""Priced offers: what one node of an instance type costs in one region."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

TERMS = ("on-demand", "spot", "1y", "3y")
Basis = Literal["listed", "derived"]


@dataclass(frozen=True, slots=True)
class CatalogOffer:
    """One instance type in one region, with its listed prices in USD per node and hour by term.

    Only terms that are really sold are in `prices_usd_per_node_h`; sums of components that nobody sells as such are
    in `unsold_usd_per_node_h`. `country` is an ISO 3166 code, empty where the region does not fix one. `price_date`
    is an ISO date, or a range or year as the source gives it: then `stale_unknown` is true.
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
    stale_unknown: bool
    basis: Basis
    source: str
    doubts: tuple[str, ...]
    spot_only: bool

    @property
    def terms(self) -> tuple[str, ...]:
        """Terms with a listed price, in the order of `TERMS`."""
        return tuple(t for t in TERMS if t in self.prices_usd_per_node_h)
