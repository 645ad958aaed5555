"""What the same GPUs cost on demand: the measure of every commitment."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from planner.candidates.types import OnDemandPrice, PricedOffer
from planner.catalog import Catalog
from planner.spec.supply import OWNED

ON_DEMAND = "on-demand"


def on_demand_prices(offers: Iterable[PricedOffer], catalog: Catalog) -> Mapping[str, OnDemandPrice]:
    """Return the cheapest on-demand price of every GPU type that some offer has under another term, by GPU name.

    The offers of the spec come first; where none of them is on demand, the list prices of the whole catalog stand in.
    """
    offers = list(offers)
    wanted = {o.gpu for o in offers if o.term != ON_DEMAND}
    rentable = [o for o in offers if o.gpu in wanted and o.term == ON_DEMAND and o.provider != OWNED]
    found = _cheapest((o.gpu, OnDemandPrice(o.usd_per_node_h / o.gpus_per_node, o.name)) for o in rentable)
    missing = wanted - found.keys()
    if not missing:
        return found
    listed = (o for provider in sorted(catalog.providers()) for o in catalog.offers(provider) if o.gpu in missing)
    return found | _cheapest(
        (
            o.gpu,
            OnDemandPrice(
                o.prices_usd_per_node_h[ON_DEMAND] / o.gpus_per_node, f"{o.provider}/{o.region}/{o.instance}"
            ),
        )
        for o in listed
        if ON_DEMAND in o.prices_usd_per_node_h
    )


def _cheapest(prices: Iterable[tuple[str, OnDemandPrice]]) -> dict[str, OnDemandPrice]:
    best: dict[str, OnDemandPrice] = {}
    for gpu, price in prices:
        if gpu not in best or (price.usd_per_gpu_h, price.offer) < (best[gpu].usd_per_gpu_h, best[gpu].offer):
            best[gpu] = price
    return dict(sorted(best.items()))
