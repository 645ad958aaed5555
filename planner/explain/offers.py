"""Why a plan does not use an offer: the rule that excludes it, or what a fleet costs with workloads on it alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from planner.candidates.selection import admits, matches
from planner.candidates.types import CandidateTable, PricedOffer
from planner.explain.answer import Answer, difference
from planner.explain.causes import cause_of
from planner.explain.change import flow
from planner.explain.trials import Trials
from planner.plan.schema import Plan, Pool
from planner.spec import FleetSpec, LimitRuleSpec, Selector

SPOT_TERM = "spot"
NO_FLEET = "no-fleet"
CHOSEN = "chosen"


@dataclass(frozen=True)
class AskedOffers:
    """Offers that are asked about under one name, and the plan that does or does not use them."""

    plan: Plan
    spec: FleetSpec
    table: CandidateTable
    trials: Trials
    name: str
    offers: tuple[PricedOffer, ...]

    def answers(self, models: Sequence[str], asked: frozenset[str]) -> list[Answer]:
        """Return, for each model, how its pools use the offers, or why they do not; `asked` are the workloads meant.

        At most one fleet is planned for each model.
        """
        return [*self._idle(), *(answer for model in models for answer in self._of_model(model, asked))]

    @cached_property
    def _names(self) -> frozenset[str]:
        return frozenset(o.name for o in self.offers)

    def _idle(self) -> Iterator[Answer]:
        """Say which of the nodes that are paid for hold no pool."""
        idle = [c for c in self.plan.commitments if c.offer in self._names and c.idle_nodes]
        if idle:
            nodes = ", ".join(f"{_count(c.idle_nodes)} of {c.offer}" for c in idle)
            yield Answer("", self.name, "", CHOSEN, f"paid for, and without a replica: {nodes}")

    def _of_model(self, model: str, asked: frozenset[str]) -> Iterator[Answer]:
        own = frozenset(w for w in asked if self.table.workloads[w].model == model)
        users = [p for p in self.plan.pools if p.model == model and (own & set(p.workloads) or not p.workloads)]
        nodes_for = {p.name: self._nodes_for(p) for p in users}
        used = {n: count for nodes in nodes_for.values() for n, count in nodes.items()}
        mine = {n: count for n, count in used.items() if n in self._names}
        if mine:
            nodes = self._nodes(mine)
            where = "on it" if mine == used else "on it among others"
            pools = ", ".join(name for name, nodes in nodes_for.items() if mine.keys() & nodes.keys())
            yield Answer(model, self.name, "", CHOSEN, f"the plan serves {_named(own)} {where}: {nodes} ({pools})")
        if own and (not mine or mine != used):
            yield from self._alone(model, own, f"{self.name} alone" if mine else self.name)

    def _nodes(self, counts: Mapping[str, int]) -> str:
        """Write nodes by offer; where hours are planned in periods, counts are those of the most in any period."""
        most = "at most " if len(self.plan.periods) > 1 else ""
        return most + ", ".join(f"{_count(count)} of {name}" for name, count in sorted(counts.items()))

    def _nodes_for(self, pool: Pool) -> dict[str, int]:
        """Return the nodes of the plan, at most in any period, that may hold the replicas of a pool; by offer.

        Where hours are planned in periods, a pool names the places of one of them only.
        """
        places = {(at.provider, at.region) for at in pool.placement}
        return {
            n.offer: n.nodes
            for n in self.plan.nodes
            if n.gpu == pool.gpu
            and (n.term == SPOT_TERM) == pool.spot
            and pool.gpus_per_node in (None, n.gpus_per_node)
            and (len(self.plan.periods) > 1 or (n.provider, n.region) in places)
        }

    def _alone(self, model: str, own: frozenset[str], subject: str) -> Iterator[Answer]:
        """Say which rule keeps workloads of a model off the offers, and plan a fleet with the others on them alone."""
        held_to: dict[str, frozenset[str]] = {}
        refused: dict[str, tuple[str, str]] = {}
        for workload in sorted(own):
            open_to = [o for o in self.offers if not self._refusal(workload, o)]
            barred = self._barred(workload, open_to)
            if barred is None:
                held_to[workload] = frozenset(o.name for o in open_to)
            else:
                refused[workload] = barred
        table = self.trials.table(self.spec, held_to) if held_to else self.table
        for workload in [w for w in held_to if not any(w in c.services for c in table.candidates)]:
            cause = cause_of(self.spec, table, workload, self.trials.catalog)
            refused[workload] = cause.rule or NO_FLEET, f"on it, {cause.reasons[0]}"
            del held_to[workload]
            table = self.trials.table(self.spec, held_to)
        if len(refused) > 1 and len(refused) == len(own) and len(set(refused.values())) == 1:
            yield Answer(model, subject, "", *next(iter(refused.values())))
        else:
            yield from (Answer(model, subject, w, rule, reason) for w, (rule, reason) in sorted(refused.items()))
        if held_to:
            yield self._priced(model, table, frozenset(held_to), subject)

    def _priced(self, model: str, table: CandidateTable, own: frozenset[str], subject: str) -> Answer:
        """Plan the fleet with some workloads of a model on the offers alone, and compare it with the plan."""
        found = self.trials.plan_on(self.spec, table)
        if found is None or found.objective is None or self.plan.objective is None:
            limits = ", ".join(self._limits_on())
            reason = f"no fleet that serves {_named(own)} on it alone was found within all limits"
            return Answer(model, subject, "", NO_FLEET, f"{reason}: {limits}" if limits else reason)
        pools = [p for p in found.pools if p.model == model and own & set(p.workloads)]
        bought = [n for n in found.nodes if n.offer in self._names]
        nodes = self._nodes({n.offer: n.nodes for n in bought})
        short = _named(dict.fromkeys(p.limited_by for p in pools))
        reason = f"{_named(own)} on it alone: {nodes}; short of {short}"
        cost = found.objective.usd_per_hour
        more = difference(cost, self.plan.objective.usd_per_hour)
        return Answer(model, subject, "", "allowed", reason, cost, more)

    def _refusal(self, workload: str, offer: PricedOffer) -> tuple[str, str] | None:
        """Return the rule that keeps a workload off an offer, with the key that says so; None where none does."""
        own = self.spec.workloads[workload]
        model = self.spec.models[own.model]
        for path, allow, deny in (
            (f"models.{own.model}", model.allow, model.deny),
            (f"workloads.{workload}", own.allow, own.deny),
        ):
            if not matches(allow, offer, self.trials.catalog):
                return "selector", f"{path}.allow is {_text(allow)}"
            if not admits(Selector(), deny, offer, self.trials.catalog):
                return "selector", f"{path}.deny is {_text(deny)}"
        if offer.is_spot and own.spot is None:
            return "spot", f"workloads.{workload} has no `spot`, so that no spot node serves it"
        return None

    def _barred(self, workload: str, open_to: Sequence[PricedOffer]) -> tuple[str, str] | None:
        """Return the rule that keeps all of a workload off all the offers; None where they may serve it alone."""
        own = self.spec.workloads[workload]
        if not open_to:
            refusals = dict.fromkeys(refusal for o in self.offers if (refusal := self._refusal(workload, o)))
            return next(iter(refusals))[0], "; ".join(reason for _, reason in refusals)
        if own.spot is not None and own.spot.max_share < 1.0 and all(o.is_spot for o in open_to):
            return "spot", f"workloads.{workload}.spot.max_share is {own.spot.max_share:.4g}, and all of it is spot"
        zones = sorted({o.zone for o in open_to})
        if self.table.models[own.model].reliability.survive == "zone" and len(zones) == 1:
            return "survive", f"reliability.survive of {own.model} is zone, and all of it is in {zones[0]}"
        too_low = [dict.fromkeys(self._too_low(o)) for o in open_to]
        if all(too_low):
            return "limits", "; ".join(dict.fromkeys(reason for reasons in too_low for reason in reasons))
        return None

    def _too_low(self, offer: PricedOffer) -> Iterator[str]:
        """Yield the limits of the spec that leave no room for a single node of an offer."""
        for key, most, node in self._limits(offer):
            if most < node or most <= 0.0:
                yield f"{key} is {_amount(key, most)}" + (f", a node takes {_amount(key, node)}" if node else "")

    def _limits(self, offer: PricedOffer) -> Iterator[tuple[str, float, float]]:
        """Yield the limits that an offer falls under: key, most, and what a node takes of it.

        Of money a node takes what it is bought for, which may be few hours: that counts as nothing.
        """
        limits = self.spec.supply.limits
        for name, most in limits.gpus.items():
            if self.trials.catalog.gpu(name).name == offer.gpu:
                yield f"supply.limits.gpus.{name}", float(most), float(offer.gpus_per_node)
        if limits.power_w is not None:
            yield "supply.limits.power", limits.power_w, offer.power_w
        for number, (rule, names) in enumerate(zip(limits.rules, self.table.supply.matched, strict=True)):
            if offer.name in names:
                yield f"supply.limits.rules.{number}.{rule.measure}", rule.most, _taken(rule, offer)

    def _limits_on(self) -> list[str]:
        """Return the limits that the offers fall under, as the spec gives them."""
        entries = {o.entry for o in self.offers}
        found = [
            f"supply.offers.{label}.nodes is {offer.nodes}"
            for label, offer in zip(self.spec.supply.offer_labels(), self.spec.supply.offers, strict=True)
            if label in entries and offer.nodes is not None
        ]
        found += [f"{key} is {_amount(key, most)}" for o in self.offers for key, most, _ in self._limits(o)]
        budget = self.spec.supply.budget_usd_per_month
        found += [f"supply.budget is {budget:g}"] if budget is not None else []
        return list(dict.fromkeys(found))


def _amount(key: str, value: float) -> str:
    return f"{100.0 * value:g} %" if key.endswith(".share") else f"{value:g}"


def _taken(rule: LimitRuleSpec, offer: PricedOffer) -> float:
    amounts: Mapping[str, float] = {
        "gpus": float(offer.gpus_per_node),
        "nodes": 1.0,
        "vcpus": float(offer.vcpus or 0),
    }
    return amounts.get(rule.measure, 0.0)


def _count(nodes: int) -> str:
    return f"{nodes} node" if nodes == 1 else f"{nodes} nodes"


def _named(words: frozenset[str] | Mapping[str, None]) -> str:
    return " and ".join(sorted(words) if isinstance(words, frozenset) else words)


def _text(selector: Selector) -> str:
    """Write a selector as a spec does."""
    given = selector.model_dump(exclude_defaults=True, by_alias=True)
    return f"{{{', '.join(f'{key}: {v if isinstance(v, str) else flow(v)}' for key, v in given.items())}}}"
