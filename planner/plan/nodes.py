"""The nodes to buy, and what they cost."""

from __future__ import annotations

from planner.candidates.hours import PEAK
from planner.candidates.types import CandidateTable, PricedOffer
from planner.plan.schema import NodePlan, PriceTag
from planner.solve.packing import Packing


def plan_nodes(table: CandidateTable, packing: Packing) -> tuple[NodePlan, ...]:
    """Return the nodes that are paid for, sorted by offer."""
    offers = {o.name: o for o in table.supply.offers}
    return tuple(_node(offers[name], count) for name, count in packing.count().items())


def _node(offer: PricedOffer, count: int) -> NodePlan:
    return NodePlan(
        offer=offer.name,
        provider=offer.provider,
        region=offer.region,
        country=offer.country or None,
        instance=offer.instance,
        gpu=offer.gpu,
        gpus_per_node=offer.gpus_per_node,
        term=offer.term,
        nodes=count,
        nodes_by_period={PEAK: count},
        usd_per_node_hour=offer.usd_per_node_h,
        usd_per_hour=offer.usd_per_node_h * count,
        power_w=offer.power_w * count,
        price=PriceTag.model_validate(
            {"basis": offer.price.basis, "date": offer.price.date, "source": offer.price.source}
        ),
    )
