"""Audit a plan of several periods: what holds over all of them, and that it says what the plans of its periods say.

The plan of each period is audited by itself, `planner.plan.audit`: demand, memory, latency, stock, spares and places.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from planner.candidates.periods import RESERVED_TERMS
from planner.candidates.selection import matches
from planner.candidates.types import CandidateTable, PricedOffer
from planner.catalog import Catalog
from planner.plan.audit import LIMIT_RTOL
from planner.plan.figures import MONEY_RTOL, RATE_RTOL, Violation
from planner.plan.fold import PeriodPlan
from planner.plan.schema import NodePlan, Objective, Plan
from planner.spec import FleetSpec


@dataclass(frozen=True)
class _Audit:
    plan: Plan
    objective: Objective
    parts: Sequence[PeriodPlan]
    spec: FleetSpec
    table: CandidateTable
    catalog: Catalog

    @property
    def hours(self) -> float:
        return self.spec.planning.hours_per_month

    def mean(self, by_period: Mapping[str, float]) -> float:
        """Return the mean over all hours of what is given by period."""
        return sum(p.hours_per_month * by_period[p.name] for p in self.plan.periods) / self.hours

    def offer(self, node: NodePlan) -> PricedOffer:
        return next(o for o in self.table.supply.offers if o.name == node.offer)

    def usd_per_h(self, node: NodePlan) -> float:
        """Return what the nodes of an offer cost as the mean over all hours, at the price of the supply."""
        return self.offer(node).usd_per_node_h * self.mean({p: float(n) for p, n in node.nodes_by_period.items()})


def audit_fold(
    plan: Plan, parts: Sequence[PeriodPlan], spec: FleetSpec, table: CandidateTable, catalog: Catalog
) -> tuple[Violation, ...]:
    """Return every violation of the spec by all periods together, and every figure that its periods do not bear out."""
    if plan.objective is None:
        return (Violation("money", "objective", "it is missing"),)
    subject = _Audit(plan, plan.objective, parts, spec, table, catalog)
    return tuple(v for check in CHECKS for v in check(subject))


def _hours(a: _Audit) -> Iterator[Violation]:
    """The periods are all hours, and what they are planned for is no less than what the hours ask for."""
    if not _same(sum(p.hours_per_month for p in a.plan.periods), a.hours):
        yield Violation("periods", "hours", f"they do not add up to {a.hours:g}")
    demand = a.plan.demand_by_period or {}
    for name, workload in a.spec.workloads.items():
        own = {period: rates[name] for period, rates in demand.items()}
        peak, mean = workload.traffic.peak_requests_per_s(), a.mean(own)
        hourly = workload.traffic.hourly
        least = peak if hourly is None else sum(hourly) / len(hourly)
        if not _same(max(own.values()), peak) or mean < least * (1.0 - RATE_RTOL):
            yield Violation(
                "periods", name, f"its periods have {mean:g} req/s, its hours {least:g} and {peak:g} at most"
            )


def _nodes(a: _Audit) -> Iterator[Violation]:
    """Nodes are those of the periods, at the prices of the supply; what is reserved is paid for in all periods alike."""
    for part in a.parts:
        shown = {n.offer: n.nodes_by_period[part.period.name] for n in a.plan.nodes}
        bought = {n.offer: n.nodes for n in part.plan.nodes}
        if {offer: n for offer, n in shown.items() if n} != bought:
            yield Violation("periods", part.period.name, "the nodes shown are not those of its plan")
    for node in a.plan.nodes:
        counts = node.nodes_by_period.values()
        if node.nodes != max(counts):
            yield Violation("periods", node.offer, f"{node.nodes} nodes are not the most of any period")
        if node.term in RESERVED_TERMS and len(set(counts)) > 1:
            yield Violation("reserved", node.offer, "its nodes are not the same in all periods")
        if not _same(node.usd_per_hour, a.usd_per_h(node)):
            yield Violation(
                "money", node.offer, f"its nodes cost {a.usd_per_h(node):g} USD/h, not {node.usd_per_hour:g}"
            )


def _money(a: _Audit) -> Iterator[Violation]:
    """The cost is the mean over the periods, weighted by their hours, and pools and idle nodes share it."""
    total = sum(a.usd_per_h(n) for n in a.plan.nodes)
    costs = {p.period.name: p.plan.objective.usd_per_hour for p in a.parts if p.plan.objective is not None}
    shown = a.objective
    idle = shown.idle_committed_usd_per_month / a.hours
    sums = (
        ("cost", shown.usd_per_hour, total),
        ("mean", shown.usd_per_hour, a.mean(costs)),
        ("peak", shown.peak_usd_per_hour, max(costs.values())),
        ("month", shown.usd_per_month, total * a.hours),
        ("pools", sum(p.usd_per_hour for p in a.plan.pools) + idle, total),
        ("workloads", sum(w.usd_per_month for w in a.plan.workloads) + idle * a.hours, total * a.hours),
        ("committed", sum(c.usd_per_month for c in a.plan.commitments), shown.committed_usd_per_month),
        ("idle", sum(c.idle_usd_per_month for c in a.plan.commitments), shown.idle_committed_usd_per_month),
    )
    for name, value, due in sums:
        if not _same(value, due):
            yield Violation("money", name, f"{value:g} is not {due:g}")
    if shown.minimised == "cost" and not _same(shown.value, total + shown.preference_penalty):
        yield Violation("money", "value", f"the value {shown.value:g} is not the cost {total:g}")
    if shown.bound > shown.value * (1.0 + MONEY_RTOL):
        yield Violation("money", "bound", f"the bound {shown.bound:g} is above the value {shown.value:g}")


def _limits(a: _Audit) -> Iterator[Violation]:
    """Budget, money and shares of the cost are limited over all periods, GPU types too."""
    costs = [(a.offer(n), a.usd_per_h(n)) for n in a.plan.nodes]
    total = sum(cost for _, cost in costs)
    budget = a.spec.supply.budget_usd_per_month
    if budget is not None and total * a.hours > budget * (1.0 + MONEY_RTOL):
        yield Violation("budget", "supply.budget", f"{total * a.hours:,.2f} of {budget:,.2f} USD/month")
    for number, rule in enumerate(a.spec.supply.limits.rules):
        own = sum(cost for offer, cost in costs if matches(rule.match, offer, a.catalog))
        taken = {"usd_per_month": own * a.hours, "share": own / total if total > 0.0 else 0.0}.get(rule.measure, 0.0)
        if taken > rule.most * (1.0 + LIMIT_RTOL):
            yield Violation("limits", f"rules.{number}", f"{taken:g} {rule.measure} of {rule.most:g}")
    types, in_use = a.spec.supply.limits.gpu_types, {p.gpu for p in a.plan.pools}
    if types is not None and len(in_use) > types:
        yield Violation("limits", "gpu_types", f"{len(in_use)} GPU types of {types}")


def _pools(a: _Audit) -> Iterator[Violation]:
    """Pools have the replicas and the traffic of the periods, and rates of each workload at its peak sum to its demand."""
    for part in a.parts:
        name = part.period.name
        shown, planned = Counter[str](), Counter[str]()
        for pool in a.plan.pools:
            shown[pool.model] += pool.replicas_by_period[name]
        for pool in part.plan.pools:
            planned[pool.model] += pool.replicas
        if +shown != planned:
            yield Violation("periods", name, "the replicas shown are not those of its plan")
        yield from _traffic(a, part)
    served = Counter[str]()
    for pool in a.plan.pools:
        served.update(pool.workloads)
        if pool.replicas != max(pool.replicas_by_period.values()):
            yield Violation("periods", pool.name, f"{pool.replicas} replicas are not the most of any period")
        if sum(place.replicas for place in pool.placement) != pool.replicas:
            yield Violation("placement", pool.name, "the placement does not add up to the replicas")
    for name, workload in a.spec.workloads.items():
        due = workload.traffic.peak_requests_per_s() * (1.0 + a.spec.reliability_of(workload.model).headroom)
        if abs(served[name] - due) > RATE_RTOL * due:
            yield Violation("demand", name, f"{served[name]:g} of {due:g} req/s are served")


def _traffic(a: _Audit, part: PeriodPlan) -> Iterator[Violation]:
    """The rates shown for a period are those of its plan, and none is on a pool without replicas then."""
    name = part.period.name
    shown, planned = Counter[str](), Counter[str]()
    for pool in a.plan.pools:
        rates = (pool.workloads_by_period or {}).get(name, {})
        shown.update(rates)
        if rates and not pool.replicas_by_period[name]:
            yield Violation("periods", pool.name, f"it serves something in {name}, and has no replica then")
        if pool.period == name and not _same(sum(rates.values()), pool.predicted.requests_per_s):
            yield Violation("periods", pool.name, f"its prediction is not for the traffic of {name}")
    for pool in part.plan.pools:
        planned.update(pool.workloads)
    for workload, due in planned.items():
        if abs(shown[workload] - due) > RATE_RTOL * due:
            yield Violation("periods", workload, f"{shown[workload]:g} of {due:g} req/s are shown in {name}")


def _latency(a: _Audit) -> Iterator[Violation]:
    """No prediction shown is better than that of any period."""
    shown = {(w.name, c.metric): c.predicted_s for w in a.plan.workloads for c in w.slo}
    for part in a.parts:
        for workload in part.plan.workloads:
            for check in workload.slo:
                if shown[workload.name, check.metric] < check.predicted_s:
                    yield Violation("latency", workload.name, f"{check.metric} is worse in {part.period.name}")


CHECKS: tuple[Callable[[_Audit], Iterator[Violation]], ...] = (_hours, _nodes, _money, _limits, _pools, _latency)


def _same(shown: float, due: float) -> bool:
    return abs(shown - due) <= MONEY_RTOL * max(1.0, abs(due))
