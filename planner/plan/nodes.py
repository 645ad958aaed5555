"""The nodes to buy, and what they cost."""

from __future__ import annotations

from planner.candidates.types import CandidateTable, PricedOffer
from planner.plan.pools import PEAK
from planner.plan.schema import NodePlan, PriceTag
from planner.solve.packing import Packing

LONG_TERMS = ("1y", "3y")


def plan_nodes(table: CandidateTable, packing: Packing) -> tuple[NodePlan, ...]:
    """Return the nodes that are paid for, sorted by offer."""
    offers = {o.name: o for o in table.supply.offers}
    return tuple(_node(offers[name], count) for name, count in packing.count().items())


def _node(offer: PricedOffer, count: int) -> NodePlan:
    return NodePlan(
        offer=offer.name,
        provider=offer.provider,
        region=offer.region,
        instance=offer.instance,
        gpu=offer.gpu,
        gpus_per_node=offer.gpus_per_node,
        term=offer.term,
        nodes=count,
        nodes_by_period={PEAK: count},
        usd_per_node_hour=offer.usd_per_node_h,
        usd_per_hour=offer.usd_per_node_h * count,
        price=PriceTag.model_validate(
            {"basis": offer.price.basis, "date": offer.price.date, "source": offer.price.source}
        ),
    )


def committed_usd_per_h(table: CandidateTable, packing: Packing) -> tuple[float, float]:
    """Return the cost of nodes paid whether used or not, and of those among them that hold no replica, in USD/h.

    These are committed and owned nodes, and all nodes bought for a year or more.
    """
    offers = {o.name: o for o in table.supply.offers}
    committed = {s.entry: s.committed for s in table.supply.stock if s.committed > 0}
    long = [offers[n.offer] for n in packing.nodes if offers[n.offer].term in LONG_TERMS]
    total = sum(o.usd_per_node_h for o in long if o.entry not in committed)
    idle = 0.0
    for entry, count in sorted(committed.items()):
        nodes = [n for n in packing.nodes if offers[n.offer].entry == entry]
        nodes.sort(key=lambda n: (not n.occupants, offers[n.offer].usd_per_node_h))
        total += sum(offers[n.offer].usd_per_node_h for n in nodes[:count])
        idle += sum(offers[n.offer].usd_per_node_h for n in nodes[:count] if not n.occupants)
    return total, idle
