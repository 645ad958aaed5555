"""What a spec asks of the shapes of one workload: each wish can be dropped, and relaxed step by step."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta

from planner.candidates.selection import admits
from planner.candidates.types import CandidateTable, Rejection, ResolvedWorkload
from planner.catalog import Catalog, CatalogOffer
from planner.explain.change import Change, Place, flow, with_value
from planner.explain.trials import Trials
from planner.spec import FleetSpec, OfferSpec, ParallelismSpec, Selector

SLOWER = (1.25, 1.5, 2.0, 4.0)
"""Limits that are tried, as multiples of what an idle replica reaches: at the floor itself a replica carries nothing."""
FORMATS = ("fp8", "int8", "int4", "nvfp4", "mxfp4")
KV_FORMATS = ("fp8",)
TENSOR_DEGREES = (1, 2, 4, 8, 16, 32)
TOKENS_STEP = 1024
MOST_TOKENS_SHARE = 0.99  # a longest sequence that cuts more requests than this leaves is no way out
YEAR = timedelta(days=365)


@dataclass(frozen=True)
class Wish:
    """A key of the spec that rules shapes out for a workload.

    `cause` is the rule of the candidates that it stands behind; `without` drops it; `changes` yields milder values.
    """

    key: str
    now: str
    cause: str
    without: Callable[[FleetSpec], FleetSpec]
    changes: Callable[[FleetSpec], Iterator[Change]]


def wishes_of(spec: FleetSpec, workload: str, table: CandidateTable, trials: Trials) -> list[Wish]:
    """Return the wishes behind what was ruled out for a workload, in the order in which shapes meet them."""
    asked = _Asked(spec, table, table.workloads[workload], trials)
    rules = {r.rule for r in asked.rejections}
    found: list[Wish] = []
    if not asked.is_admitted:
        found += [*asked.selectors(), *asked.regions(), *asked.terms()]
    if rules & {"hbm-fit", "layout", "format-support"}:
        found += [*asked.length(), *asked.formats(), *asked.degrees()]
    if "quality-floor" in rules:
        found += asked.quality()
    if rules & {"latency"}:
        found += asked.latencies()
        found += [] if rules & {"hbm-fit", "layout", "format-support"} else asked.degrees()
    found += asked.hardware()
    return list({wish.key: wish for wish in found}.values())


def rejections_of(table: CandidateTable, workload: str) -> list[Rejection]:
    """Return what was ruled out for a workload or for its whole model, offers left out."""
    model = table.workloads[workload].model
    return [r for r in table.rejections if r.model == model and r.workload in ("", workload)]


def is_admitted(spec: FleetSpec, table: CandidateTable, workload: str, catalog: Catalog) -> bool:
    """Tell whether any offer may serve a workload, by its selectors and those of its model, and by `spot`."""
    own, model = spec.workloads[workload], spec.models[spec.workloads[workload].model]
    return any(
        admits(model.allow, model.deny, o, catalog)
        and admits(own.allow, own.deny, o, catalog)
        and (own.spot is not None or not o.is_spot)
        for o in table.supply.offers
    )


def only(spec: FleetSpec, workload: str) -> FleetSpec:
    """Return a spec with one workload and its model alone."""
    model = spec.workloads[workload].model
    alone = {"models": {model: spec.models[model]}, "workloads": {workload: spec.workloads[workload]}}
    return spec.model_copy(update=alone)


@dataclass(frozen=True)
class _Asked:
    spec: FleetSpec
    table: CandidateTable
    workload: ResolvedWorkload
    trials: Trials

    @property
    def rejections(self) -> list[Rejection]:
        return rejections_of(self.table, self.workload.name)

    @property
    def is_admitted(self) -> bool:
        return is_admitted(self.spec, self.table, self.workload.name, self.trials.catalog)

    def latencies(self) -> Iterator[Wish]:
        """Latency limits that every shape misses even when idle, or that some shape misses alone."""
        limits = self.workload.spec.slo
        for key, now in sorted(limits.items()):
            floor_s = self._floor_s(key)
            if floor_s is not None:
                place: Place = ("workloads", self.workload.name, "slo", key)
                values = [v for v in (rounded_up(floor_s * factor) for factor in SLOWER) if v > now]
                steps = [(v, milliseconds(v)) for v in values]
                yield self._wish(place, milliseconds(now), "latency", math.inf, steps)

    def _floor_s(self, key: str) -> float | None:
        """Return the best that an idle replica reaches of one latency, among shapes that miss this limit alone."""
        alone = only(self.spec, self.workload.name)
        slo = {key: self.workload.spec.slo[key]}
        table = self.trials.table(with_value(alone, ("workloads", self.workload.name, "slo"), slo))
        return min((r.best_s for r in rejections_of(table, self.workload.name) if r.slo == key), default=None)

    def length(self) -> Iterator[Wish]:
        """The longest sequence, as short as the traffic allows."""
        now = self.table.models[self.workload.model].max_model_len
        least = self._least_length()
        if least >= now:
            return
        halves = [TOKENS_STEP * math.ceil(now / 2**i / TOKENS_STEP) for i in range(1, 12)]
        values = [n for n in dict.fromkeys([*halves, least]) if least <= n < now]
        place = ("models", self.workload.model, "max_model_len")
        yield self._wish(place, f"{now}", "hbm-fit", least, [(n, f"{n}") for n in sorted(values, reverse=True)])

    def _least_length(self) -> int:
        """Return the shortest longest sequence that leaves nearly all requests as they are."""
        traffic = self.workload.spec.traffic
        both = (traffic.input_tokens.lengths, traffic.output_tokens.lengths)
        needed = sum(lengths.quantile(MOST_TOKENS_SHARE) for lengths in both)
        return TOKENS_STEP * math.ceil(needed / TOKENS_STEP)

    def formats(self) -> Iterator[Wish]:
        """Formats that the user restricted."""
        for name, more in (("weights", FORMATS), ("kv_cache", KV_FORMATS)):
            own = getattr(self.spec.models[self.workload.model], name)
            if own is None:
                continue
            place = ("models", self.workload.model, name)
            others = [each for each in more if each not in own]
            wider = [(*own, each) for each in others]
            yield self._wish(place, flow(own), "hbm-fit", (*own, *others), [(w, flow(w)) for w in wider])

    def degrees(self) -> Iterator[Wish]:
        """Parallel degrees that the user restricted."""
        own = self.spec.models[self.workload.model].parallelism
        if own == ParallelismSpec():
            return
        place = ("models", self.workload.model, "parallelism")
        if own.tensor is None:
            yield self._wish(place, _degrees(own), "hbm-fit", ParallelismSpec(), [(ParallelismSpec(), "{}")])
            return
        more = [d for d in TENSOR_DEGREES if d not in own.tensor]
        wider = [tuple(sorted((*own.tensor, *more[: i + 1]))) for i in range(len(more))]
        yield self._wish((*place, "tensor"), flow(own.tensor), "hbm-fit", None, [(w, flow(w)) for w in wider])

    def quality(self) -> Iterator[Wish]:
        """The floor on quality."""
        model = self.table.models[self.workload.model]
        floor = model.spec.min_quality
        reached = sorted({e.recovery for e in model.quality.values() if 0.0 < e.recovery < floor}, reverse=True)
        lower = dict.fromkeys(math.floor(r * 1000.0) / 1000.0 for r in reached)
        place = ("models", self.workload.model, "min_quality")
        yield self._wish(place, _percent(floor), "quality-floor", 0.0, [(r, _percent(r)) for r in lower])

    def selectors(self) -> Iterator[Wish]:
        """Selectors that leave no offer."""
        holders = (("workloads", self.workload.name), ("models", self.workload.model))
        for section, name in holders:
            holder = getattr(self.spec, section)[name]
            for field in Selector.model_fields:
                own = getattr(holder.allow, field)
                place = (section, name, "allow", field)
                if isinstance(own, str):
                    yield self._wish(place, own, "selector", None, [(v, v) for v in self._on_offer(field) if v != own])
                elif own:
                    wider = [(*own, value) for value in self._on_offer(field) if value not in own]
                    yield self._wish(place, flow(own), "selector", (), [(w, flow(w)) for w in wider])
            if not holder.deny.is_any:
                text = _selector(holder.deny)
                yield self._wish((section, name, "deny"), text, "selector", Selector(), [(Selector(), "{}")])

    def _on_offer(self, field: str) -> list[str]:
        """Return what the offers have for a field of selectors, cheapest GPU first."""
        name = "country" if field == "countries" else field.removesuffix("s")
        offers = sorted(self.table.supply.offers, key=lambda o: (o.usd_per_node_h / o.gpus_per_node, o.name))
        return list(dict.fromkeys(value for o in offers if (value := str(getattr(o, name)))))

    def regions(self) -> Iterator[Wish]:
        """Regions of the offers, where the provider sells the hardware elsewhere too."""
        for place, label, offer in self._bought():
            if not offer.all_regions:
                continue
            elsewhere = sorted({o.region for o in self._sold(offer, any_region=True)} - set(offer.all_regions))
            everywhere = (*offer.all_regions, *elsewhere)
            is_one = offer.region is not None
            name = "region" if is_one else "regions"
            values = [((r, r) if is_one else ((*offer.regions, r), flow((*offer.regions, r)))) for r in elsewhere]
            now = offer.region or flow(offer.regions)

            def without(s: FleetSpec, place: Place = place, everywhere: tuple[str, ...] = everywhere) -> FleetSpec:
                return with_value(with_value(s, (*place, "region"), None), (*place, "regions"), everywhere)

            wish = self._wish((*place, name), now, "selector", None, values, label=label)
            yield Wish(wish.key, wish.now, wish.cause, without, wish.changes)

    def terms(self) -> Iterator[Wish]:
        """Ends of offers, terms without a price, and whether prices may be estimated."""
        ended = {r.shape for r in self.table.rejections if r.rule == "supply-ended"}
        unpriced = {r.shape for r in self.table.rejections if r.rule == "no-price"}
        for place, label, offer in self._offers():
            if label in ended and offer.until is not None and self.spec.planning.as_of is not None:
                later = self.spec.planning.as_of + YEAR
                yield self._wish(
                    (*place, "until"), f"{offer.until}", "supply-ended", None, [(later, f"{later}")], label
                )
            if label in unpriced and "on-demand" not in offer.terms:
                more = (*offer.terms, "on-demand")
                yield self._wish((*place, "terms"), flow(offer.terms), "no-price", more, [(more, flow(more))], label)
        if unpriced and not self.spec.planning.estimated_prices:
            yield self._wish(("planning", "estimated_prices"), "false", "no-price", True, [(True, "true")])

    def hardware(self) -> Iterator[Wish]:
        """GPUs of the offers, where the provider sells others at the same place."""
        for place, label, offer in self._bought():
            if offer.instances or not offer.gpus:
                continue
            own = {self.trials.catalog.gpu(g).name for g in offer.gpus}
            price: dict[str, float] = {}
            for listed in self._sold(offer, any_gpu=True):
                costs = [p / listed.gpus_per_node for t, p in listed.prices_usd_per_node_h.items() if t in offer.terms]
                price[listed.gpu] = min([*costs, price.get(listed.gpu, math.inf)])
            others = sorted((g for g in price if g not in own), key=lambda g: (price[g], g))
            wider = [(*offer.gpus, g) for g in others]
            everything = (*offer.gpus, *others)
            yield self._wish((*place, "gpus"), flow(offer.gpus), "", everything, [(w, flow(w)) for w in wider], label)

    def _offers(self) -> Iterator[tuple[Place, str, OfferSpec]]:
        supply = self.spec.supply
        for index, (label, offer) in enumerate(zip(supply.offer_labels(), supply.offers, strict=True)):
            yield ("supply", "offers", index), label, offer

    def _bought(self) -> Iterator[tuple[Place, str, OfferSpec]]:
        yield from (each for each in self._offers() if not each[2].is_owned)

    def _sold(self, offer: OfferSpec, any_region: bool = False, any_gpu: bool = False) -> list[CatalogOffer]:
        catalog = self.trials.catalog
        gpus = {catalog.gpu(g).name for g in offer.gpus}
        regions = {r.casefold() for r in offer.all_regions}
        return [
            o
            for o in catalog.offers(offer.provider)
            if (any_region or not regions or o.region.casefold() in regions) and (any_gpu or not gpus or o.gpu in gpus)
        ]

    def _wish(
        self,
        place: Place,
        now: str,
        cause: str,
        free: object,
        values: Sequence[tuple[object, str]],
        label: str | None = None,
    ) -> Wish:
        names = [str(each) for each in place]
        if label is not None:
            names[2] = label
        key = ".".join(names)

        def changes(spec: FleetSpec) -> Iterator[Change]:
            for value, text in values:
                yield Change(key, now, text, with_value(spec, place, value))

        return Wish(key, now, cause, lambda s: with_value(s, place, free), changes)


def rounded_up(seconds: float) -> float:
    """Return a time rounded up to two digits, as people write limits."""
    unit = 10.0 ** (math.floor(math.log10(seconds)) - 1)
    return math.ceil(seconds / unit - 1e-9) * unit


def milliseconds(seconds: float) -> str:
    """Write a latency limit as the spec does."""
    return f"{seconds:.6g} s" if seconds >= 1.0 else f"{seconds * 1e3:.6g} ms"


def _percent(share: float) -> str:
    return f"{100.0 * share:.4g} %"


def _degrees(own: ParallelismSpec) -> str:
    given = {name: flow(values) for name in sorted(own.model_fields_set) if (values := getattr(own, name))}
    return f"{{{', '.join(f'{name}: {values}' for name, values in given.items())}}}"


def _selector(own: Selector) -> str:
    given = {name: flow(values) for name in Selector.model_fields if (values := getattr(own, name))}
    return f"{{{', '.join(f'{name}: {values}' for name, values in given.items())}}}"
