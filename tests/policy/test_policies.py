"""What level and waiver make of a rule, and where results lead back to."""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path

import pytest
from judging import AS_OF, judged, only, policies_of, prod

from planner.catalog import Catalog
from planner.plan.build import with_policies
from planner.plan.io import dump, loads
from planner.policy import PlanFacts, denies, evaluate
from planner.policy.rule import all_rules
from planner.spec import PolicySpec, load_policies

LAST_DAY = date(2027, 1, 31)
WAIVE = "waive: {reason: launch, by: ops, until: 2027-01-31}"


@pytest.mark.parametrize(("level", "outcome"), [("deny", "deny"), ("warn", "warn")])
def test_levels(level: str, outcome: str, catalog: Catalog) -> None:
    found = only(f"{{max_monthly_cost: 1 USD, level: {level}}}", catalog)
    assert found.outcome == outcome
    assert denies([found]) == (outcome == "deny")


@pytest.mark.parametrize(
    ("as_of", "outcome", "expired"),
    [
        (date(2026, 1, 1), "waived", False),
        (LAST_DAY, "waived", False),
        (date(2027, 2, 1), "deny", True),
        (date(2028, 1, 1), "deny", True),
    ],
)
def test_a_waiver_holds_until_its_last_day(as_of: date, outcome: str, expired: bool, catalog: Catalog) -> None:
    found = only(f"{{max_monthly_cost: 1 USD, {WAIVE}}}", catalog, as_of=as_of)
    assert found.outcome == outcome
    assert found.waiver is not None
    assert found.waiver.expired == expired
    assert (found.waiver.reason, found.waiver.by, found.waiver.until) == ("launch", "ops", "2027-01-31")


def test_a_waiver_of_a_policy_that_holds_changes_nothing(catalog: Catalog) -> None:
    assert only(f"{{max_monthly_cost: 900k USD, {WAIVE}}}", catalog).outcome == "ok"


def test_results_keep_their_order_and_lead_back_to_their_file(catalog: Catalog) -> None:
    facts = PlanFacts(prod(), catalog, AS_OF)
    own = policies_of("{forbid: {gpus: [T4]}, id: b}, {max_monthly_cost: 1 USD, id: a}")
    found = evaluate((*own, *policies_of("{max_gap: 1 %}", "org.yaml")), facts)
    assert [(r.id, r.file, r.path) for r in found] == [
        ("b", None, "policies[0]"),
        ("a", None, "policies[1]"),
        ("max_gap", "org.yaml", "policies[0]"),
    ]
    assert denies(found)


def test_results_survive_in_a_saved_plan(catalog: Catalog) -> None:
    text = f"{{max_monthly_cost: 1 USD, {WAIVE}}}, {{min_latency_margin: 5 %}}, {{max_gap: 1 %}}"
    plan = with_policies(prod(), judged(text, catalog))
    saved = dump(plan)
    again = loads(saved.encode(), "plan.json")
    assert [(r.outcome, r.at) for r in again.policies] == [(r.outcome, r.at) for r in plan.policies]
    assert '"file"' not in saved  # what there is not is left out
    assert saved.count('"waiver"') == 1


def test_plans_of_older_releases_keep_their_bytes() -> None:
    saved = dump(prod())
    assert '"at": null' not in saved
    assert "waiver" not in saved
    assert "country" not in saved
    assert prod().digests.plan in saved


def test_the_examples_of_the_manual_are_right() -> None:
    page = (Path(__file__).parents[2] / "planner" / "manual" / "policies.md").read_text(encoding="utf-8")
    examples = [load_policies(text, "policies.md") for text in re.findall(r"^```yaml\n(.*?)^```", page, re.M | re.S)]
    assert [found.diagnostics for found in examples] == [(), ()]
    rules = re.findall(r"^\| `([^`…]+)` \|", page, re.M)
    assert load_policies("policies:\n" + "".join(f"  - {{{rule}}}\n" for rule in rules), "rules").diagnostics == ()


def test_every_rule_of_the_grammar_has_a_module() -> None:
    assert set(all_rules()) == set(PolicySpec.RULES)
