"""Policies on a plan: what each rule finds, and what level and waiver make of it."""

from __future__ import annotations

from datetime import date

import pytest
from planned import AS_OF, SMALL, problem_of, spec_of

from planner.candidates.types import PricedOffer
from planner.catalog import Catalog
from planner.plan.schema import PolicyResult
from planner.policy import denies, evaluate
from planner.policy.evaluate import all_checks
from planner.policy.facts import PlanFacts

LAST_DAY = date(2027, 1, 31)
WAIVE = "waive: {reason: launch, by: ops, until: 2027-01-31}"


@pytest.fixture(scope="module")
def offers(catalog: Catalog) -> tuple[PricedOffer, ...]:
    """Offers of L40S and A10G nodes of AWS in the United States."""
    _, table, _ = problem_of(SMALL, catalog)
    return table.supply.offers


def results(
    policies: str,
    catalog: Catalog,
    offers: tuple[PricedOffer, ...] = (),
    cost: float = 1000.0,
    as_of: date = AS_OF,
    before: float | None = None,
) -> tuple[PolicyResult, ...]:
    spec = spec_of(f"{SMALL}policies: [{policies}]\n", catalog)
    return evaluate(spec, PlanFacts(cost, offers, catalog, before), as_of)


@pytest.mark.parametrize(("cost", "outcome"), [(999.0, "ok"), (1000.0, "ok"), (1000.01, "deny")])
def test_cost_is_compared_with_its_limit(cost: float, outcome: str, catalog: Catalog) -> None:
    (found,) = results("{max_monthly_cost: 1000 USD}", catalog, cost=cost)
    assert (found.outcome, found.limit, found.actual) == (outcome, 1000.0, cost)
    assert (found.id, found.rule, found.path) == ("max_monthly_cost", "max_monthly_cost", "policies[0]")


def test_a_rule_that_needs_a_baseline_is_left_open(catalog: Catalog) -> None:
    (found,) = results("{max_monthly_cost_increase: 15 %, id: growth}", catalog)
    assert (found.id, found.outcome, found.actual) == ("growth", "not_evaluated", None)
    assert not denies([found])


@pytest.mark.parametrize(
    ("before", "outcome", "actual"),
    [
        (1000.0, "ok", 0.0),
        (2000.0, "ok", -0.5),
        (1000.0 / 1.15, "ok", 0.15),
        (800.0, "deny", 0.25),
        (0.0, "deny", None),
    ],
)
def test_a_rise_is_compared_with_its_baseline(
    before: float, outcome: str, actual: float | None, catalog: Catalog
) -> None:
    (found,) = results("{max_monthly_cost_increase: 15 %}", catalog, before=before)
    assert (found.outcome, found.limit, found.actual) == (outcome, 0.15, actual)


@pytest.mark.parametrize(
    ("selector", "outcome"),
    [
        ("gpus: [T4]", "ok"),
        ("gpus: [L40S]", "deny"),
        ("gpus: [l40s]", "deny"),
        ("providers: [gcp]", "ok"),
        ("regions: [us-*]", "deny"),
        ("regions: [eu-*]", "ok"),
        ("countries: [US]", "deny"),
        ("countries: [DE]", "ok"),
        ("terms: [on-demand]", "deny"),
        ("gpus: [L40S], countries: [DE]", "ok"),
        ("gpus: [L40S], countries: [US]", "deny"),
    ],
)
def test_forbidden_offers(selector: str, outcome: str, catalog: Catalog, offers: tuple[PricedOffer, ...]) -> None:
    (found,) = results(f"{{forbid: {{{selector}}}}}", catalog, offers)
    assert found.outcome == outcome
    assert (found.actual is None) == (outcome == "ok")


def test_forbidden_offers_are_named(catalog: Catalog, offers: tuple[PricedOffer, ...]) -> None:
    (found,) = results("{forbid: {gpus: [A10G], countries: [US]}}", catalog, offers)
    assert found.limit == "countries: US, gpus: A10G"
    assert str(found.actual).split(", ") == [o.name for o in offers if o.gpu == "A10G"]


@pytest.mark.parametrize(("level", "outcome"), [("deny", "deny"), ("warn", "warn")])
def test_levels(level: str, outcome: str, catalog: Catalog) -> None:
    (found,) = results(f"{{max_monthly_cost: 1 USD, level: {level}}}", catalog)
    assert found.outcome == outcome
    assert denies([found]) == (outcome == "deny")


@pytest.mark.parametrize(
    ("as_of", "outcome"),
    [(date(2026, 1, 1), "waived"), (LAST_DAY, "waived"), (date(2027, 2, 1), "deny"), (date(2028, 1, 1), "deny")],
)
def test_a_waiver_holds_until_its_last_day(as_of: date, outcome: str, catalog: Catalog) -> None:
    (found,) = results(f"{{max_monthly_cost: 1 USD, {WAIVE}}}", catalog, as_of=as_of)
    assert found.outcome == outcome


def test_a_waiver_of_a_policy_that_holds_changes_nothing(catalog: Catalog) -> None:
    (found,) = results(f"{{max_monthly_cost: 9000 USD, {WAIVE}}}", catalog)
    assert found.outcome == "ok"


def test_results_keep_the_order_of_the_spec(catalog: Catalog, offers: tuple[PricedOffer, ...]) -> None:
    found = results("{forbid: {gpus: [T4]}, id: b}, {max_monthly_cost: 1 USD, id: a}", catalog, offers)
    assert [(r.id, r.path) for r in found] == [("b", "policies[0]"), ("a", "policies[1]")]
    assert denies(found)


def test_every_rule_has_a_module() -> None:
    assert list(all_checks()) == ["forbid", "max_monthly_cost", "max_monthly_cost_increase"]
