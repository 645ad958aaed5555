"""A key of a spec that rules shapes out, and what several modules ask about shapes that were ruled out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from planner.candidates.selection import admits
from planner.candidates.types import CandidateTable, PricedOffer, Rejection, ResolvedWorkload
from planner.catalog import Catalog
from planner.explain.change import Change, Place, change_at, key_of, with_value
from planner.explain.trials import Trials
from planner.spec import FleetSpec


@dataclass(frozen=True)
class Wish:
    """A key of the spec that rules shapes out for a workload.

    `cause` is the rule of the candidates that it stands behind; `without` drops it; `changes` yields milder values.
    """

    place: Place
    key: str
    now: str
    cause: str
    without: Callable[[FleetSpec], FleetSpec]
    changes: Callable[[FleetSpec], Iterator[Change]]


@dataclass(frozen=True)
class Asked:
    """A workload of a spec that no candidate serves, and the means to ask why."""

    spec: FleetSpec
    table: CandidateTable
    workload: ResolvedWorkload
    trials: Trials

    @property
    def rejections(self) -> list[Rejection]:
        """What was ruled out for the workload."""
        return rejections_of(self.table, self.workload.name)

    def wish(self, place: Place, now: str, cause: str, free: object, values: Sequence[tuple[object, str]]) -> Wish:
        """Return the wish at a place: the value that drops it, and milder ones with their texts."""

        def changes(spec: FleetSpec) -> Iterator[Change]:
            return (change_at(spec, place, now, text, value) for value, text in values)

        return Wish(place, key_of(self.spec, place), now, cause, lambda s: with_value(s, place, free), changes)


def rejections_of(table: CandidateTable, workload: str) -> list[Rejection]:
    """Return what was ruled out for a workload or for its whole model, offers left out."""
    model = table.workloads[workload].model
    return [r for r in table.rejections if r.model == model and r.workload in ("", workload)]


def selected(spec: FleetSpec, table: CandidateTable, workload: str, catalog: Catalog) -> list[PricedOffer]:
    """Return the offers that may serve a workload by its selectors and those of its model."""
    own, model = spec.workloads[workload], spec.models[spec.workloads[workload].model]
    return [
        o
        for o in table.supply.offers
        if admits(model.allow, model.deny, o, catalog) and admits(own.allow, own.deny, o, catalog)
    ]


def is_admitted(spec: FleetSpec, table: CandidateTable, workload: str, catalog: Catalog) -> bool:
    """Tell whether any offer may serve a workload, by its selectors and those of its model, and by `spot`."""
    has_spot = spec.workloads[workload].spot is not None
    return any(has_spot or not o.is_spot for o in selected(spec, table, workload, catalog))


def only(spec: FleetSpec, workload: str) -> FleetSpec:
    """Return a spec with one workload and its model alone."""
    model = spec.workloads[workload].model
    alone = {"models": {model: spec.models[model]}, "workloads": {workload: spec.workloads[workload]}}
    return spec.model_copy(update=alone)
