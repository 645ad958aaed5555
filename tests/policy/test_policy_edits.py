"""What a change does to policies, and what it is judged by."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from judging import AS_OF, policies_of, prod

from planner.catalog import Catalog
from planner.policy import PlacedPolicy, PlanFacts, both_sides, edits, evaluate

LOOSER, TIGHTER, BOTH, NEITHER = (True, False), (False, True), (True, True), (False, False)


def effect(old: str, new: str) -> tuple[bool, bool]:
    """Return whether the one edit from one policy to another loosens, and whether it tightens."""
    (edit,) = edits(policies_of(f"{{{old}}}"), policies_of(f"{{{new}}}"))
    assert edit.kind == "changed"
    return edit.loosens, edit.tightens


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("max_monthly_cost: 1k USD", "max_monthly_cost: 2k USD", LOOSER),
        ("max_monthly_cost_increase: 5 %", "max_monthly_cost_increase: 4 %", TIGHTER),
        ("max_cost_per_million_tokens: 1 USD/Mtok", "max_cost_per_million_tokens: 2 USD/Mtok", LOOSER),
        ("max_gap: 1 %", "max_gap: 2 %", LOOSER),
        ("max_price_age: 30 day", "max_price_age: 1 day", TIGHTER),
        ("min_latency_margin: 5 %", "min_latency_margin: 1 %", LOOSER),
        ("min_capacity_margin: 5 %", "min_capacity_margin: 10 %", TIGHTER),
        ("min_provenance: A", "min_provenance: C", LOOSER),
        ("min_certificate: inconclusive", "min_certificate: pass", TIGHTER),
        ("min_certificate: pass", "min_certificate: inconclusive", LOOSER),
        ("max_share: {each: provider, share: 60 %}", "max_share: {each: provider, share: 70 %}", LOOSER),
        ("max_share: {each: provider, share: 60 %}", "max_share: {each: region, share: 60 %}", BOTH),
        ("max_share: {match: {regions: [us-*]}, share: 60 %}", "max_share: {match: {}, share: 60 %}", TIGHTER),
        ("max_share: {match: {}, share: 60 %}", "max_share: {match: {provider: aws}, share: 50 %}", BOTH),
        ("forbid: {gpus: [T4]}", "forbid: {gpus: [T4, L4]}", TIGHTER),
        ("forbid: {gpus: [T4]}", "forbid: {gpus: [L4]}", BOTH),
        ("forbid: {gpus: [T4]}", "forbid: {gpus: [T4], regions: [us-*]}", LOOSER),
        ("forbid: {regions: [us-*]}", "forbid: {regions: [us-west-2]}", LOOSER),
        ("forbid: {regions: [us-west-2]}", "forbid: {regions: ['*']}", TIGHTER),
        ("forbid: {regions: [us-west-?]}", "forbid: {regions: [us-*]}", TIGHTER),
        ("forbid: {regions: [us-*]}", "forbid: {regions: [us-??????]}", LOOSER),
        ("forbid: {regions: [us-?]}", "forbid: {regions: ['us-[ab]']}", BOTH),
        ("require: {countries: [DE]}", "require: {countries: [DE, FR]}", LOOSER),
        ("require: {countries: [DE]}", "require: {countries: [DE], kv_cache: [bf16]}", TIGHTER),
        ("max_gap: 1 %", "max_gap: 1 %, level: warn", LOOSER),
        ("max_gap: 1 %, level: warn", "max_gap: 2 %", BOTH),
        ("max_gap: 1 %", "max_gap: 1 %, id: gap", NEITHER),
        ("min_latency_margin: 5 %", "min_latency_margin: 5 %, workloads: [chat]", LOOSER),
        ("min_latency_margin: 5 %, workloads: [chat]", "min_latency_margin: 5 %, workloads: [chat, code]", TIGHTER),
    ],
)
def test_edits_loosen_or_tighten(old: str, new: str, expected: tuple[bool, bool]) -> None:
    assert effect(old, new) == expected
    assert effect(new, old) == expected[::-1]


WAIVE = "waive: {{reason: launch, by: ops, until: {}}}"


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("", WAIVE.format("2027-01-31"), LOOSER),
        (WAIVE.format("2027-01-31"), WAIVE.format("2027-02-28"), LOOSER),
        (WAIVE.format("2027-01-31"), WAIVE.format("2026-12-31"), TIGHTER),
        (WAIVE.format("2027-01-31"), "waive: {reason: other, by: me, until: 2027-01-31}", NEITHER),
    ],
)
def test_waivers_are_edits(old: str, new: str, expected: tuple[bool, bool]) -> None:
    before, after = (", ".join(part for part in ("max_gap: 1 %", waive) if part) for waive in (old, new))
    assert effect(before, after) == expected
    assert effect(after, before) == expected[::-1]


def test_added_removed_and_moved_policies() -> None:
    old = policies_of("{max_gap: 1 %}, {forbid: {gpus: [T4]}}, {max_monthly_cost: 1 USD, id: cap}")
    new = policies_of("{max_monthly_cost: 1 USD, id: cap}, {max_gap: 1 %}, {min_certificate: pass}")
    found = edits(old, new)
    assert [(e.kind, (e.old or e.new).policy.label, e.loosens, e.tightens) for e in found] == [  # type: ignore[union-attr]
        ("removed", "forbid", True, False),
        ("added", "min_certificate", False, True),
    ]


def test_policies_of_one_rule_keep_their_partners() -> None:
    """Both have the label of their rule; the one that did not change is not taken for the other."""
    old = policies_of("{forbid: {gpus: [T4]}}, {forbid: {gpus: [L4]}}")
    new = policies_of("{forbid: {gpus: [L4]}}, {forbid: {gpus: [T4, A10G]}}")
    (edit,) = edits(old, new)
    assert (edit.kind, [c.of for c in edit.changes], edit.loosens) == ("changed", ["limit"], False)


def judged_by(old: str, new: str, catalog: Catalog) -> list[tuple[str | None, str]]:
    """Return file and outcome of the policies that a change from one list to another is judged by."""
    sides = both_sides(policies_of(old, "main:fleet.yaml"), policies_of(new))
    return [(r.file, r.outcome) for r in evaluate(sides, PlanFacts(prod(), catalog, AS_OF))]


def test_a_change_cannot_loosen_its_own_policy(catalog: Catalog) -> None:
    assert judged_by("{max_monthly_cost: 1 USD}", "{max_monthly_cost: 1M USD}", catalog) == [
        (None, "ok"),
        ("main:fleet.yaml", "deny"),
    ]
    assert judged_by("{max_monthly_cost: 1 USD}", "{max_monthly_cost: 1 USD, level: warn}", catalog) == [
        (None, "warn"),
        ("main:fleet.yaml", "deny"),
    ]
    assert judged_by("{max_monthly_cost: 1 USD}", "", catalog) == [("main:fleet.yaml", "deny")]


def test_a_waiver_does_not_waive_before_it_is_merged(catalog: Catalog) -> None:
    waived = f"{{max_monthly_cost: 1 USD, {WAIVE.format('2027-01-31')}}}"
    assert ("main:fleet.yaml", "deny") in judged_by("{max_monthly_cost: 1 USD}", waived, catalog)
    assert judged_by(waived, waived, catalog) == [(None, "waived")]


def test_a_stricter_policy_counts_at_once(catalog: Catalog) -> None:
    assert judged_by("{max_monthly_cost: 1M USD}", "{max_monthly_cost: 1 USD}", catalog) == [
        (None, "deny"),
        ("main:fleet.yaml", "ok"),
    ]


CHOICES = (
    "{max_gap: 1 %}",
    "{max_gap: 2 %}",
    "{max_gap: 1 %, id: a}",
    "{min_certificate: pass}",
    "{forbid: {gpus: [T4]}}",
)
LISTS = st.lists(st.sampled_from(CHOICES), max_size=4).filter(lambda texts: texts.count(CHOICES[2]) < 2)


@given(LISTS, LISTS)
def test_every_policy_is_told_of_once(old: list[str], new: list[str]) -> None:
    before, after = (policies_of(", ".join(texts)) for texts in (old, new))
    found = edits(before, after)
    gone = [e.old for e in found if e.old is not None]
    come = [e.new for e in found if e.new is not None]
    same = len(before) - len(gone)
    assert len(after) - len(come) == same
    assert len(set(map(id, gone))) == len(gone)
    assert len(set(map(id, come))) == len(come)
    sides: tuple[PlacedPolicy, ...] = both_sides(before, after)
    assert all(any(s.policy == p.policy for s in sides) for p in (*before, *after))
