"""A spec with hourly demand as the program sees it: every offer, and every model whose demand changes, once for each period.

What is free to differ by period is a copy of its own. Models whose demand is the same at all hours run the same replicas in all. Copies of nodes that are reserved, committed or owned name the offer that
they are copies of, so that the program can buy the same number of them in all periods.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from planner.candidates.hours import Period
from planner.candidates.supply import OWNED_TERM
from planner.candidates.types import (
    Candidate,
    CandidateTable,
    PricedOffer,
    ResolvedWorkload,
    Service,
    Stock,
    Supply,
)
from planner.spec import FleetSpec, RateSpec, WorkloadSpec

RESERVED_TERMS = ("1y", "3y", OWNED_TERM)
SUMMED_MEASURES = ("usd_per_month", "share")  # limits on all periods together; the others hold in each
MARK = "@"
"""What comes between the name of something and that of the period that its copy is for."""
NO_DEMAND_SHARE = 1e-3  # of the peak: what a workload without demand in a period counts in the mix of its model


def base_of(name: str) -> str:
    """Return what the copy of that name is of, whatever its period."""
    return name.rpartition(MARK)[0]


@dataclass(frozen=True)
class InPeriod:
    """One period as a spec of its own, under the names and at the hourly prices of the spec that it comes from.

    Limits that are on all periods together are left out of it. `steady` are the models, workloads and candidates that are the
    same in all periods.
    """

    period: Period
    spec: FleetSpec
    table: CandidateTable
    steady: frozenset[str]

    def supply_name(self, base: str) -> str:
        """Return the name of the copy of an offer, entry or cell for this period."""
        return f"{base}{MARK}{self.period.name}"

    def name(self, base: str) -> str:
        """Return the name of what a model, workload or candidate is in this period."""
        return base if base in self.steady else self.supply_name(base)

    def offer(self, name: str) -> str | None:
        """Return the offer that another one is the copy of in this period, None for the copies of other periods."""
        base = name.removesuffix(f"{MARK}{self.period.name}")
        return base if base != name else None

    def restored(self, candidate: Candidate) -> Candidate:
        """Return what a candidate of this period, or of all, is a copy of."""
        own = [self.offer(cell) for cell in candidate.cells]
        services = {self.base(w) or w: service for w, service in candidate.services.items()}
        return replace(
            candidate,
            name=self.base(candidate.name) or candidate.name,
            shape=replace(candidate.shape, model=self.base(candidate.shape.model) or candidate.shape.model),
            cells=tuple(cell for cell in own if cell is not None),
            cells_by_period=(),
            services=services,
        )

    def base(self, name: str) -> str | None:
        """Return the model, workload or candidate that another one is in this period, None where it is in others only."""
        return name if name in self.steady else self.offer(name)


@dataclass(frozen=True)
class Expanded:
    """A spec and its table with one copy of everything for each period, and the periods by themselves."""

    spec: FleetSpec
    table: CandidateTable
    parts: tuple[InPeriod, ...]


def expanded(
    spec: FleetSpec,
    table: CandidateTable,
    periods: Sequence[Period],
    rated: Callable[[FleetSpec], CandidateTable],
) -> Expanded:
    """Return a spec and its candidates expanded to periods.

    Candidates are those of `table`, rated anew (by `rated`) for models whose workloads mix in other shares in a period.
    """
    steady = _steady(table, periods)
    parts = tuple(_in_period(spec, table, period, steady, rated) for period in periods)
    models = {part.name(name): model for part in parts for name, model in spec.models.items()}
    workloads = {
        part.name(name): workload.model_copy(update={"model": part.name(workload.model)})
        for part in parts
        for name, workload in part.spec.workloads.items()
    }
    reserved = _reserved(table.supply)
    tables = [_copied(part, reserved) for part in parts]
    candidates = {c.name: c for each in tables for c in each.candidates}
    for name in sorted(candidates.keys() & steady):
        candidates[name] = _in_all(candidates[name], parts)
    whole = replace(
        table,
        models={name: model for each in tables for name, model in each.models.items()},
        workloads={name: workload for each in tables for name, workload in each.workloads.items()},
        supply=replace(
            table.supply,
            offers=tuple(sorted((o for each in tables for o in each.supply.offers), key=lambda o: o.name)),
            stock=tuple(sorted((s for each in tables for s in each.supply.stock), key=lambda s: s.entry)),
            matched=tuple(
                frozenset(part.supply_name(n) for part in parts for n in own) for own in table.supply.matched
            ),
        ),
        candidates=tuple(candidates[name] for name in sorted(candidates)),
    )
    return Expanded(spec.model_copy(update={"models": models, "workloads": workloads}), whole, parts)


def _steady(table: CandidateTable, periods: Sequence[Period]) -> frozenset[str]:
    """Return the models whose every workload has the same demand in all periods, their workloads and candidates."""
    changing = {
        w.model for w in table.workloads.values() if len({period.requests_per_s[w.name] for period in periods}) > 1
    }
    models = table.models.keys() - changing
    workloads = {w.name for w in table.workloads.values() if w.model in models}
    return frozenset(models | workloads | {c.name for c in table.candidates if c.shape.model in models})


def _in_all(candidate: Candidate, parts: Sequence[InPeriod]) -> Candidate:
    """Return a candidate whose replicas lie on nodes in every period; its cells are those of one."""
    bases = [parts[-1].offer(cell) for cell in candidate.cells]
    cells = tuple(tuple(part.supply_name(base) for base in bases if base is not None) for part in parts)
    return replace(candidate, cells=tuple(sorted(c for own in cells for c in own)), cells_by_period=cells)


def _in_period(
    spec: FleetSpec,
    table: CandidateTable,
    period: Period,
    steady: frozenset[str],
    rated: Callable[[FleetSpec], CandidateTable],
) -> InPeriod:
    workloads = {
        name: _at_rate(workload, period.requests_per_s[name])
        for name, workload in spec.workloads.items()
        if period.requests_per_s[name] > 0.0
    }
    kept = [i for i, rule in enumerate(spec.supply.limits.rules) if rule.measure not in SUMMED_MEASURES]
    limits = spec.supply.limits.model_copy(update={"rules": tuple(spec.supply.limits.rules[i] for i in kept)})
    supply = spec.supply.model_copy(update={"limits": limits, "budget_usd_per_month": None})
    own = _of_period(spec, table, period, rated)
    own = replace(
        own,
        workloads={
            name: replace(
                own.workloads[name],
                spec=workload,
                peak_requests_per_s=workload.traffic.peak_requests_per_s(),
                mean_requests_per_s=workload.traffic.mean_requests_per_s(),
            )
            for name, workload in sorted(workloads.items())
        },
        candidates=tuple(_serving(c, workloads) for c in own.candidates if c.services.keys() & workloads.keys()),
        supply=replace(table.supply, matched=tuple(table.supply.matched[i] for i in kept)),
    )
    return InPeriod(period, spec.model_copy(update={"workloads": workloads, "supply": supply}), own, steady)


def _at_rate(workload: WorkloadSpec, requests_per_s: float) -> WorkloadSpec:
    """Return a workload with one rate instead of hourly ones; others stay as they are."""
    if workload.traffic.hourly is None:
        return workload
    rate = {"hourly": None, "rate": RateSpec.model_construct(peak=requests_per_s)}
    return workload.model_copy(update={"traffic": workload.traffic.model_copy(update=rate)})


def _serving(candidate: Candidate, workloads: Mapping[str, WorkloadSpec]) -> Candidate:
    return replace(candidate, services={w: s for w, s in candidate.services.items() if w in workloads})


def _of_period(
    spec: FleetSpec, table: CandidateTable, period: Period, rated: Callable[[FleetSpec], CandidateTable]
) -> CandidateTable:
    """Return the candidates of a period: those of the spec, but for models whose mix of workloads is another one then."""
    mixed = _mixed_otherwise(table.workloads.values(), period)
    if not mixed:
        return table
    changed = {
        name: _at_rate(w, period.requests_per_s[name] or NO_DEMAND_SHARE * w.traffic.peak_requests_per_s())
        if w.model in mixed
        else w
        for name, w in spec.workloads.items()
    }
    anew = rated(spec.model_copy(update={"workloads": changed}))
    allowed: dict[tuple[str, str], set[str]] = defaultdict(set)
    for c in table.candidates:
        allowed[c.shape.model, c.shape.name] |= c.services.keys()
    found = [c for c in table.candidates if c.shape.model not in mixed]
    for c in anew.candidates:
        services = {w: s for w, s in c.services.items() if w in allowed[c.shape.model, c.shape.name]}
        if c.shape.model in mixed and services:
            found.append(replace(c, services=services))
    return replace(table, candidates=tuple(sorted(found, key=lambda c: c.name)))


def _mixed_otherwise(workloads: Iterable[ResolvedWorkload], period: Period) -> set[str]:
    """Return the models whose workloads have other shares of the traffic in a period than at their peaks."""
    ratios: dict[str, set[float]] = defaultdict(set)
    for w in workloads:
        ratios[w.model].add(period.requests_per_s[w.name] / w.peak_requests_per_s)
    return {model for model, found in ratios.items() if len(found) > 1}


def _reserved(supply: Supply) -> set[str]:
    """Return the offers whose nodes are the same in all periods: long terms, owned, and commitments over several kinds.

    A commitment to one kind of node holds in every period by itself, and more of them may be had for some hours.
    """
    kinds = Counter(o.entry for o in supply.offers)
    committed = {s.entry for s in supply.stock if s.committed > 0 and kinds[s.entry] > 1}
    return {o.name for o in supply.offers if o.term in RESERVED_TERMS or o.entry in committed}


def _copied(part: InPeriod, reserved: set[str]) -> CandidateTable:
    """Return the table of a period under the names of its copies, at prices that are parts of the mean over all hours."""
    table = part.table
    return replace(
        table,
        models={part.name(name): replace(model, name=part.name(name)) for name, model in table.models.items()},
        workloads={
            part.name(name): replace(w, name=part.name(name), model=part.name(w.model))
            for name, w in table.workloads.items()
        },
        candidates=tuple(_copied_candidate(part, c) for c in table.candidates),
        supply=replace(
            table.supply,
            offers=tuple(_copied_offer(part, o, o.name in reserved) for o in table.supply.offers),
            stock=tuple(Stock(part.supply_name(s.entry), s.committed, s.available) for s in table.supply.stock),
        ),
    )


def _copied_candidate(part: InPeriod, candidate: Candidate) -> Candidate:
    services: dict[str, Service] = {part.name(w): s for w, s in candidate.services.items()}
    return replace(
        candidate,
        name=part.name(candidate.name),
        shape=replace(candidate.shape, model=part.name(candidate.shape.model)),
        cells=tuple(part.supply_name(cell) for cell in candidate.cells),
        services=services,
    )


def _copied_offer(part: InPeriod, offer: PricedOffer, is_reserved: bool) -> PricedOffer:
    return replace(
        offer,
        name=part.supply_name(offer.name),
        entry=part.supply_name(offer.entry),
        cell=part.supply_name(offer.cell),
        usd_per_node_h=offer.usd_per_node_h * part.period.share,
        period=part.period.name,
        share=part.period.share,
        reserved=offer.name if is_reserved else "",
    )
