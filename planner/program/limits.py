"""The nodes that can be bought, and the limits of the spec on them, as numbers of the program."""

from __future__ import annotations

from collections import defaultdict

from planner.candidates.types import CandidateTable, PricedOffer
from planner.program.data import CostShare, NodeOffer, Quota, bought_as, counted, shares_of_steps
from planner.spec import FleetSpec, LimitRuleSpec

UNITS = {"gpus": "GPUs", "nodes": "nodes", "vcpus": "vCPUs", "usd_per_month": "USD/h"}
"""Unit of a quota by what it limits."""


def node_offers(
    table: CandidateTable,
    quotas: tuple[Quota, ...],
    shares: tuple[CostShare, ...],
    paid: frozenset[str] = frozenset(),
) -> tuple[NodeOffer, ...]:
    """Return the offers worth buying from: those that some candidate may use, and those that are `paid` for or committed.

    Offers that a cheaper twin replaces are left out. A twin is an offer of unlimited stock in the same cell with nodes of
    the same size that counts the same for every limit, at no higher price.
    """
    cells = {cell for c in table.candidates for cell in c.cells}
    counted = {s.entry for s in table.supply.stock}
    committed = {s.entry for s in table.supply.stock if s.committed > 0}

    periods: dict[str, set[str]] = defaultdict(set)
    for o in table.supply.offers:
        periods[bought_as(o)].add(o.period)
    there = {name: frozenset(own if name else ()) for name, own in periods.items()}

    def twins(o: PricedOffer) -> tuple[object, ...]:
        taken = tuple(q.amounts.get(o.name) for q in quotas)
        # Where shares of the cost are limited, a dearer node also makes room for others.
        priced = tuple((o.name in s.offers, o.usd_per_node_h) for s in shares)
        # Nodes for single periods may be worth a higher price than those that are reserved for all.
        # So may be shorter terms, and nodes that are there in other periods, steps or scenarios.
        return (o.cell, o.gpus_per_node, taken, priced, there[bought_as(o)], o.term_steps)

    cheapest: dict[tuple[object, ...], PricedOffer] = {}
    for offer in sorted(table.supply.offers, key=lambda o: (o.usd_per_node_h, o.name)):
        if offer.entry not in counted:
            cheapest.setdefault(twins(offer), offer)
    kept = [
        o
        for o in table.supply.offers
        if o.entry in committed
        or (o.cell in cells and (o.entry in counted or o.name in paid or cheapest[twins(o)] is o))
    ]
    names = {o.name for o in kept}
    # In all periods, and in all steps of a growing demand, if worth buying in one.
    reserved = {bought_as(o) for o in kept if o.reserved}
    return tuple(node_offer(o) for o in table.supply.offers if o.name in names or bought_as(o) in reserved)


def node_offer(o: PricedOffer) -> NodeOffer:
    """Return a priced offer as the program sees it."""
    return NodeOffer(
        name=o.name,
        entry=o.entry,
        gpu=o.gpu,
        cell=o.cell,
        gpus_per_node=o.gpus_per_node,
        usd_per_node_h=o.usd_per_node_h,
        power_w=o.power_w,
        period=o.period,
        share=o.share,
        reserved=o.reserved,
        step=o.step,
        term_steps=o.term_steps,
    )


def quotas_of(spec: FleetSpec, table: CandidateTable) -> tuple[Quota, ...]:
    """Return the rules that limit GPUs, nodes, vCPUs or money, in the order of the spec."""
    hours = spec.planning.hours_per_month
    found: list[Quota] = []
    for number, (rule, names) in enumerate(zip(spec.supply.limits.rules, table.supply.matched, strict=True)):
        if rule.measure == "share":
            continue
        own = [o for o in table.supply.offers if o.name in names]
        if rule.measure == "usd_per_month":  # the one amount that adds up over periods
            for step, share in shares_of_steps(table.supply.offers).items():
                cost = {o.name: _amount(rule, o) for o in own if o.step == step}
                found.append(Quota(_quota_key(number, step), UNITS[rule.measure], cost, rule.most / hours * share))
            continue
        for period in sorted({o.period for o in table.supply.offers}) or [""]:
            amounts = {o.name: _amount(rule, o) for o in own if o.period == period}
            found.append(Quota(_quota_key(number, period), UNITS[rule.measure], amounts, rule.most))
    return tuple(found)


def cost_shares_of(spec: FleetSpec, table: CandidateTable) -> tuple[CostShare, ...]:
    """Return the rules that limit a share of the cost, in the order of the spec."""
    return tuple(
        CostShare(_quota_key(number, step), names, rule.share, step)
        for number, (rule, names) in enumerate(zip(spec.supply.limits.rules, table.supply.matched, strict=True))
        if rule.share is not None
        for step in shares_of_steps(table.supply.offers)
    )


def least_per_gpu(spec: FleetSpec, table: CandidateTable, gpu: str, period: str = "") -> float:
    """Return the least that a GPU of a type counts in the objective, on any node of the supply, in a period."""
    objective = spec.planning.objective
    own = [o for o in table.supply.offers if (o.gpu, o.period) == (gpu, period)]
    return min(counted(objective, o) / o.gpus_per_node for o in own)


def rule_key(number: int) -> str:
    """Return the key of a rule as plans name it."""
    return f"supply.limits.rules.{number}"


def _quota_key(number: int, period: str) -> str:
    return f"{rule_key(number)} in {period}" if period else rule_key(number)


def _amount(rule: LimitRuleSpec, offer: PricedOffer) -> float:
    """Return what one node of an offer takes of a rule; owned nodes have no virtual CPUs."""
    match rule.measure:
        case "gpus":
            return float(offer.gpus_per_node)
        case "nodes":
            return 1.0
        case "vcpus":
            return float(offer.vcpus or 0)
        case _:
            return offer.usd_per_node_h
