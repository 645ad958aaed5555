"""Nodes that are paid for whether used or not: what they cost, how much of them is idle, and when they pay."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

from planner.candidates.types import CandidateTable, PricedOffer
from planner.plan.schema import Commitment
from planner.solve.packing import PackedNode, Packing
from planner.spec import FleetSpec

LONG_TERMS = ("1y", "3y")


def plan_commitments(spec: FleetSpec, table: CandidateTable, packing: Packing) -> tuple[Commitment, ...]:
    """Return the commitments of a fleet, one for each offer, sorted by offer.

    These are the committed nodes of every supply entry (owned: all of them), those that hold replicas first, and all nodes
    bought for a year or more.
    """
    offers = {o.name: o for o in table.supply.offers}
    by_offer: dict[str, list[PackedNode]] = defaultdict(list)
    for node in _committed(table, packing, offers):
        by_offer[node.offer].append(node)
    return tuple(_commitment(spec, table, offers[name], by_offer[name]) for name in sorted(by_offer))


def _committed(table: CandidateTable, packing: Packing, offers: Mapping[str, PricedOffer]) -> Iterator[PackedNode]:
    left = {s.entry: s.committed for s in table.supply.stock}
    used_first = sorted(packing.nodes, key=lambda n: (not n.occupants, offers[n.offer].usd_per_node_h))
    for node in used_first:
        entry = offers[node.offer].entry
        if left.get(entry, 0) > 0:
            left[entry] -= 1
            yield node
        elif offers[node.offer].term in LONG_TERMS or not node.occupants:
            yield node


def _commitment(spec: FleetSpec, table: CandidateTable, offer: PricedOffer, nodes: list[PackedNode]) -> Commitment:
    entry = dict(zip(spec.supply.offer_labels(), spec.supply.offers, strict=True))[offer.entry]
    hours = spec.planning.hours_per_month
    idle = sum(1 for n in nodes if not n.occupants)
    other = table.supply.on_demand.get(offer.gpu)
    per_gpu = offer.usd_per_node_h / offer.gpus_per_node
    return Commitment(
        offer=offer.name,
        gpu=offer.gpu,
        gpus_per_node=offer.gpus_per_node,
        term=offer.term,
        until=entry.until.isoformat() if entry.until is not None else None,
        upfront=(entry.upfront or "none") if offer.term in LONG_TERMS else None,
        nodes=len(nodes),
        idle_nodes=idle,
        gpu_utilization=sum(n.gpus - n.idle_gpus for n in nodes) / sum(n.gpus for n in nodes),
        usd_per_month=offer.usd_per_node_h * len(nodes) * hours,
        idle_usd_per_month=offer.usd_per_node_h * idle * hours,
        on_demand_usd_per_gpu_hour=other.usd_per_gpu_h if other is not None else None,
        on_demand_offer=other.offer if other is not None else None,
        break_even_utilization=per_gpu / other.usd_per_gpu_h if other is not None else None,
    )
