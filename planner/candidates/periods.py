"""Specs that are planned together as the program sees them: every offer, and every model that changes, once for each part.

A part is a period of hours, in each of the cases that there are: a single one where only hours differ, else the steps of a growing demand
or the scenarios that one fleet is to hold in. What is free to differ by part is a copy of its own. Models that are the same in all parts run
the same replicas in all. Copies of nodes that are bought for several parts at once name the group that has the same number.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

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
from planner.catalog import Catalog
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
class Case:
    """A spec with its catalog, its candidates and the periods of its hours, planned together with others.

    `share` is its part of the time that costs are a mean over. `name` is empty where it is the only one.
    """

    name: str
    spec: FleetSpec
    catalog: Catalog
    table: CandidateTable
    periods: tuple[Period, ...]
    share: float = 1.0


@dataclass(frozen=True)
class InPeriod:
    """One period of a case as a spec of its own, under the names and at the hourly prices of the spec that it comes from.

    Limits that are on all periods together are left out of it where there are several. `steady` are the models, workloads and candidates that are the
    same in all parts. `share` is that of all time, `mark` what copies for this part have in their names.
    """

    period: Period
    spec: FleetSpec
    table: CandidateTable
    steady: frozenset[str]
    case: str
    share: float
    mark: str

    def supply_name(self, base: str) -> str:
        """Return the name of the copy of an offer, entry or cell for this part."""
        return f"{base}{MARK}{self.mark}"

    def name(self, base: str) -> str:
        """Return the name of what a model, workload or candidate is in this period."""
        return base if base in self.steady else self.supply_name(base)

    def offer(self, name: str) -> str | None:
        """Return the offer that another one is the copy of in this period, None for the copies of other periods."""
        base = name.removesuffix(f"{MARK}{self.mark}")
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
    """A spec and its table with one copy of everything for each part, and the parts by themselves."""

    spec: FleetSpec
    table: CandidateTable
    parts: tuple[InPeriod, ...]


Rating = Callable[[FleetSpec], CandidateTable]
"""Rates the candidates of a variant of a spec."""


class Buying(Protocol):
    """Says how nodes of an offer are bought for several parts: for each by itself, or equally many for some of them."""

    def copied(self, offer: PricedOffer, part: InPeriod) -> PricedOffer:
        """Return the copy of an offer for a part, with its price, its share of time and its group."""


def expanded(cases: Sequence[Case], rated: Rating, buying: Buying | None = None) -> Expanded:
    """Return the spec and the candidates of cases expanded to their periods, with the supply and limits of the first.

    Candidates are those of the tables, rated anew (by `rated`) for models whose workloads mix in other shares in a period.
    """
    first = cases[0]
    steady = _steady(cases)
    parts = tuple(_in_period(case, period, steady, rated, len(cases) == 1) for case in cases for period in case.periods)
    models = {part.name(name): model for part in parts for name, model in part.spec.models.items()}
    workloads = {
        part.name(name): workload.model_copy(update={"model": part.name(workload.model)})
        for part in parts
        for name, workload in part.spec.workloads.items()
    }
    bought = buying or ByHours(first.table.supply)
    tables = [_copied(part, bought) for part in parts]
    candidates = {c.name: c for each in tables for c in each.candidates}
    for name in sorted(candidates.keys() & steady):
        candidates[name] = _in_all(candidates[name], parts)
    whole = replace(
        first.table,
        models={name: model for each in tables for name, model in each.models.items()},
        workloads={name: workload for each in tables for name, workload in each.workloads.items()},
        supply=replace(
            first.table.supply,
            offers=tuple(sorted((o for each in tables for o in each.supply.offers), key=lambda o: o.name)),
            stock=tuple(sorted((s for each in tables for s in each.supply.stock), key=lambda s: s.entry)),
            matched=tuple(
                frozenset(part.supply_name(n) for part in parts for n in own) for own in first.table.supply.matched
            ),
        ),
        candidates=tuple(candidates[name] for name in sorted(candidates)),
    )
    return Expanded(first.spec.model_copy(update={"models": models, "workloads": workloads}), whole, parts)


def _steady(cases: Sequence[Case]) -> frozenset[str]:
    """Return the models whose every workload has the same demand in all periods of the only case, their workloads and candidates.

    Of several cases each has replicas of its own, also of models that are the same in all of them.
    """
    if len(cases) > 1:
        return frozenset()
    table, periods = cases[0].table, cases[0].periods
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


def _in_period(case: Case, period: Period, steady: frozenset[str], rated: Rating, is_alone: bool) -> InPeriod:
    spec, table = case.spec, case.table
    named = () if is_alone else (case.name,)
    mark = "-".join((*named, period.name) if is_alone or len(case.periods) > 1 else named)
    if len(case.periods) == 1:
        return InPeriod(period, spec, table, steady, case.name, case.share, mark)
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
    own_spec = spec.model_copy(update={"workloads": workloads, "supply": supply})
    return InPeriod(period, own_spec, own, steady, case.name, case.share * period.share, mark)


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


class ByHours:
    """Nodes of long terms, owned ones and commitments over several kinds are the same in all periods; others are free.

    A commitment to one kind of node holds in every period by itself, and more of them may be had for some hours.
    """

    def __init__(self, supply: Supply) -> None:
        kinds = Counter(o.entry for o in supply.offers)
        self._committed = {s.entry for s in supply.stock if s.committed > 0 and kinds[s.entry] > 1}

    def copied(self, offer: PricedOffer, part: InPeriod) -> PricedOffer:
        """Return the copy of an offer, at a price that is its part of the mean over all hours."""
        is_same = offer.term in RESERVED_TERMS or offer.entry in self._committed
        return copy_of(offer, part, offer.name if is_same else "")


def _copied(part: InPeriod, buying: Buying) -> CandidateTable:
    """Return the table of a part under the names of its copies, at prices that are parts of the mean over all time."""
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
            offers=tuple(buying.copied(o, part) for o in table.supply.offers),
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


def copy_of(offer: PricedOffer, part: InPeriod, group: str) -> PricedOffer:
    """Return the copy of an offer for a part, which is bought as often as the others of its group."""
    return replace(
        offer,
        name=part.supply_name(offer.name),
        entry=part.supply_name(offer.entry),
        cell=part.supply_name(offer.cell),
        usd_per_node_h=offer.usd_per_node_h * part.share,
        period=part.mark,
        share=part.share,
        reserved=group,
    )
