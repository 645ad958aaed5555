"""The scenarios that one fleet is to hold in: from a file, or drawn; each a variant of the spec with the same supply to buy from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from planner.candidates.supply import build_supply
from planner.diagnostics import Diagnostic, DiagnosticError, Span
from planner.pipeline import Prepared, prepare
from planner.spec.scenario_file import LoadedScenarios
from planner.sweep.base import Base, Place, UnknownKeyError, reason_of
from planner.sweep.scenario import Scenario
from planner.units import UnitError

SAME_FOR_ALL = ("growth", "deployed", "policies")
"""Sections that scenarios must leave as they are."""


@dataclass(frozen=True)
class Case:
    """A scenario by name, with the spec and the catalog that it makes."""

    name: str
    scenario: Scenario
    prepared: Prepared


def cases_of_file(loaded: LoadedScenarios, base: Base) -> tuple[Case, ...]:
    """Return the cases of a file. Raises `DiagnosticError` with every scenario that makes no spec, at its place."""
    found: list[Diagnostic] = list(loaded.diagnostics)
    cases: list[Case] = []
    for index, spec in enumerate(loaded.scenarios or ()):
        place = (
            Span(loaded.path, 1, 1, 2) if loaded.document is None else loaded.document.span(("scenarios", index, "set"))
        )
        try:
            cases.append(_case(spec.name, Scenario(index + 1, tuple(spec.set.items())), base))
        except DiagnosticError as error:
            found += [_at(place, spec.name, reason_of(error))]
        except (UnknownKeyError, UnitError) as error:
            label = f"did you mean `{error.meant}`?" if isinstance(error, UnknownKeyError) and error.meant else ""
            found += [_at(place, spec.name, reason_of(error), label)]
    if loaded.scenarios is None or found:
        raise DiagnosticError(found)
    return tuple(cases)


def cases_drawn(scenarios: Sequence[Scenario], base: Base) -> tuple[Case, ...]:
    """Return the cases of draws. Raises `DiagnosticError` where one makes no spec."""
    cases: list[Case] = []
    for scenario in scenarios:
        name = f"draw {scenario.number}"
        try:
            cases.append(_case(name, scenario, base))
        except (DiagnosticError, UnknownKeyError, UnitError) as error:
            raise DiagnosticError([Diagnostic("scenario/invalid", f"{name}: {reason_of(error)}")]) from None
    return tuple(cases)


def _case(name: str, scenario: Scenario, base: Base) -> Case:
    places: dict[Place, str] = {}
    for key, _ in scenario.values:
        if (place := base.place(key)) in places:
            raise UnknownKeyError(f"`{places[place]}` and `{key}` are the same key: keep one")
        places[place] = key
    loaded, catalog = base.variant(scenario.values)
    catalog.check_changes()
    prepared = prepare(loaded, catalog)
    _check(prepared, base)
    return Case(name, scenario, prepared)


def _check(prepared: Prepared, base: Base) -> None:
    """Refuse what is decided before a scenario comes true: prices, limits, and what is minimised. Raises `DiagnosticError`."""
    spec, before = prepared.spec, base.loaded.spec
    assert before is not None
    own, first = spec.supply, before.supply
    changed = [name for name in SAME_FOR_ALL if getattr(spec, name) != getattr(before, name)]
    changed += ["supply.limits"] * (own.limits != first.limits)
    changed += ["supply.budget"] * (own.budget_usd_per_month != first.budget_usd_per_month)
    changed += ["planning"] * (spec.planning != before.planning)
    changed += ["calibration"] * (prepared.catalog.calibration() != base.catalog.calibration())
    if changed:
        raise _refused(f"`{changed[0]}` is the same in all scenarios: it is decided before one of them comes true")
    supply, then = build_supply(before, base.catalog), build_supply(spec, prepared.catalog)
    stock = {s.entry: s for s in supply.stock}
    for each in then.stock:
        if each != stock.get(each.entry):
            raise _refused(
                f"{each.entry} has other nodes: a scenario may take all of them away, with `nodes: 0` "
                "(and `committed: 0` where some are committed), or none"
            )
    prices = {o.name: o.usd_per_node_h for o in supply.offers}
    kinds = {o.name: (o.provider, o.region, o.instance, o.gpu, o.gpus_per_node, o.term) for o in supply.offers}
    for offer in then.offers:
        if offer.name not in prices:
            raise _refused(f"{offer.name} is not on offer in the spec: scenarios only take offers away")
        if kinds[offer.name] != (
            offer.provider, offer.region, offer.instance, offer.gpu, offer.gpus_per_node, offer.term
        ):  # fmt: skip
            raise _refused(f"the nodes of {offer.name} are other ones: what is bought is decided before")
        if offer.usd_per_node_h != prices[offer.name]:
            raise _refused(
                f"the price of {offer.name} is another one: nodes are bought at those of the spec; `planner sweep` tries prices"
            )


def _refused(message: str) -> DiagnosticError:
    return DiagnosticError([Diagnostic("scenario/decided-before", message)])


def _at(place: Span, name: str, reason: str, label: str = "") -> Diagnostic:
    return Diagnostic("scenario/invalid", f"{name}: {reason}", place, label=label)
