"""The plan of a growing fleet: that of today, what each later step needs, what to buy when, and what it all costs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date

from planner.candidates.growth import TERM_MONTHS, Step, months_after, steps_in_term
from planner.plan.figures import MONEY_RTOL, Violation
from planner.plan.io import with_digest
from planner.plan.pools import pool_shape
from planner.plan.schema import GrowthPlan, GrowthPool, GrowthStep, NodePlan, Plan, Purchase
from planner.program.data import FleetProblem, minimises_cost_alone
from planner.solve.outcome import Solution
from planner.solve.packing import bought_by
from planner.spec import FleetSpec


@dataclass(frozen=True)
class _Term:
    """Nodes of an offer of a long term: how many there are in each step, and how many of them are committed to already.

    Those count as bought in the first step. `until` is the day on which the offer, and any term of it, ends.
    """

    node: NodePlan
    counts: tuple[int, ...]
    committed: int
    until: date | None

    def lasts_on(self, day: date) -> bool:
        """Tell whether there are nodes in a step that is due on a day."""
        return self.until is None or day <= self.until


def with_growth(
    plans: Sequence[Plan], steps: Sequence[Step], spec: FleetSpec, problem: FleetProblem, solution: Solution
) -> Plan:
    """Return the plan of the first step, with those to come. `plans` are those of the `steps`; what was minimised is over all."""
    first = plans[0]
    assert first.objective is not None
    assert spec.growth is not None
    horizon, hours = spec.growth.horizon_months, spec.planning.hours_per_month
    purchases = _purchases(plans, steps, spec)
    bound = solution.bound * hours * horizon if minimises_cost_alone(problem) else None
    growth = GrowthPlan(
        horizon_months=horizon,
        growth_per_month={name: spec.growth_of(name) for name in sorted(spec.workloads)},
        usd=sum(_usd_per_month(plan) * step.months for plan, step in zip(plans, steps, strict=True)),
        bound_usd=bound,
        usd_after_horizon=sum(p.usd_after_horizon for p in purchases),
        steps=tuple(
            _step(plan, step, before) for plan, step, before in zip(plans, steps, (None, *plans[:-1]), strict=True)
        ),
        purchases=purchases,
    )
    objective = first.objective.model_copy(
        update={"value": solution.cost, "bound": solution.bound, "gap": solution.gap, "bound_usd_per_hour": None}
    )
    return with_digest(first.model_copy(update={"objective": objective, "growth": growth}))


def audit_growth(plan: Plan, plans: Sequence[Plan], spec: FleetSpec, solution: Solution) -> tuple[Violation, ...]:
    """Return every figure of a growing fleet that the plans of its steps do not bear out."""
    return tuple(_audited(plan, plans, spec, solution))


def _audited(plan: Plan, plans: Sequence[Plan], spec: FleetSpec, solution: Solution) -> Iterator[Violation]:
    growth = plan.growth
    if growth is None or spec.growth is None:
        yield Violation("growth", "growth", "it is missing")
        return
    due = sum(_usd_per_month(p) * step.months for p, step in zip(plans, growth.steps, strict=True))
    hours = spec.planning.hours_per_month * growth.horizon_months
    if abs(growth.usd - due) > MONEY_RTOL * max(1.0, due):
        yield Violation("growth", "usd", f"{growth.usd:g} is not {due:g}")
    penalty = sum(
        p.objective.preference_penalty * s.months for p, s in zip(plans, growth.steps, strict=True) if p.objective
    )
    shown = growth.usd / hours + penalty / growth.horizon_months
    if spec.planning.objective == "cost" and abs(shown - solution.cost) > MONEY_RTOL * max(1.0, shown):
        yield Violation("growth", "usd", f"it is {shown:g} USD/h in the mean, and {solution.cost:g} was minimised")
    for each in _terms(plans, spec):
        lasts = steps_in_term(spec.growth, each.node.term)
        bought = {p.first_month: p.nodes for p in growth.purchases if p.offer == each.node.offer}
        by_step = [bought.get(s.first_month, 0) for s in growth.steps]
        by_step[0] += each.committed
        for now, (count, step) in enumerate(zip(each.counts, growth.steps, strict=True)):
            there = (
                sum(by_step[max(0, now - lasts + 1) : now + 1]) if each.lasts_on(date.fromisoformat(step.due)) else 0
            )
            if count != there:
                yield Violation(
                    "term", each.node.offer, f"{count} nodes in step {now + 1} are not those whose term runs"
                )


def _usd_per_month(plan: Plan) -> float:
    assert plan.objective is not None
    return plan.objective.usd_per_month


def _step(plan: Plan, step: Step, before: Plan | None) -> GrowthStep:
    nodes, earlier = _nodes(plan), {} if before is None else _nodes(before)
    more = {offer: nodes.get(offer, 0) - earlier.get(offer, 0) for offer in sorted(nodes.keys() | earlier.keys())}
    return GrowthStep(
        first_month=step.first_month,
        months=step.months,
        due=step.due.isoformat(),
        requests_per_s={w.name: w.demand_requests_per_s for w in plan.workloads},
        usd_per_month=_usd_per_month(plan),
        nodes=nodes,
        change={offer: count for offer, count in more.items() if count},
        pools=tuple(
            GrowthPool(name=p.name, model=p.model, shape=pool_shape(p), replicas=p.replicas) for p in plan.pools
        ),
    )


def _nodes(plan: Plan) -> dict[str, int]:
    return {n.offer: n.nodes for n in plan.nodes}


def _terms(plans: Sequence[Plan], spec: FleetSpec) -> Iterator[_Term]:
    """Yield the nodes of every offer of a long term, sorted by offer."""
    entries = dict(zip(spec.supply.offer_labels(), spec.supply.offers, strict=True))
    left = {name: 0 if entry.is_owned else entry.committed or 0 for name, entry in entries.items()}
    found = {n.offer: n for plan in reversed(plans) for n in plan.nodes if n.term in TERM_MONTHS}
    for offer, node in sorted(found.items()):
        counts = tuple(_nodes(plan).get(offer, 0) for plan in plans)
        entry = _entry_of(node)
        committed = min(counts[0], left[entry])
        left[entry] -= committed
        yield _Term(node, counts, committed, entries[entry].until)


def _entry_of(node: NodePlan) -> str:
    """Return the entry of the spec that a node is from: its offer is named after that, and the kind of node."""
    return node.offer.removesuffix(f"/{node.region}/{node.instance}/{node.term}")


def _purchases(plans: Sequence[Plan], steps: Sequence[Step], spec: FleetSpec) -> tuple[Purchase, ...]:
    """Return what is bought when, the earliest first: as late as the nodes of each step allow."""
    assert spec.growth is not None
    found: list[Purchase] = []
    for each in _terms(plans, spec):
        bought = bought_by(each.counts, steps_in_term(spec.growth, each.node.term))
        bought[0] -= each.committed
        found += [_purchase(each, step, count, steps, spec) for step, count in zip(steps, bought, strict=True) if count]
    return tuple(sorted(found, key=lambda p: (p.first_month, p.offer)))


def _purchase(each: _Term, step: Step, count: int, steps: Sequence[Step], spec: FleetSpec) -> Purchase:
    assert spec.growth is not None
    node, months, horizon = each.node, TERM_MONTHS[each.node.term], spec.growth.horizon_months
    ends = months_after(step.due, months)
    after = sum(
        each.lasts_on(months_after(steps[0].due, month)) for month in range(horizon, step.first_month - 1 + months)
    )
    usd_per_month = count * node.usd_per_hour / node.nodes * spec.planning.hours_per_month
    return Purchase(
        offer=node.offer,
        term=node.term,
        nodes=count,
        first_month=step.first_month,
        due=step.due.isoformat(),
        until=(ends if each.until is None else min(ends, each.until)).isoformat(),
        usd_per_month=usd_per_month,
        usd_after_horizon=usd_per_month * after,
    )
