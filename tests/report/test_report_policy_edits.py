"""Edits of policies in words."""

from __future__ import annotations

from planner.policy import edits, placed
from planner.policy.placed import PlacedPolicy
from planner.report.policy_edits import edits_table
from planner.spec import load_policies


def policies(text: str, file: str | None = None) -> tuple[PlacedPolicy, ...]:
    """Return the policies of a list in flow style."""
    found = load_policies(f"policies: [{text}]\n", "f.yaml").policies
    assert found is not None
    return placed(found, file)


def test_edits_in_words() -> None:
    old = policies(
        "{max_monthly_cost: 400k USD, id: cap}, {forbid: {gpus: [T4]}}, {min_latency_margin: 5 %, workloads: [chat]},"
        " {max_share: {each: provider, share: 60 %}, id: share}, {max_price_age: 1 day, id: old}"
    )
    new = policies(
        "{max_monthly_cost: 500k USD, id: cap, level: warn, waive: {reason: launch | week, by: ops, until: 2027-01-31}},"
        " {min_latency_margin: 5 %}, {max_share: {match: {provider: aws}, share: 60 %}, id: share},"
        " {min_certificate: pass}, {max_price_age: 1 day, id: age}",
        "org.yaml",
    )
    table = edits_table(edits(old, new))

    assert table is not None
    assert table.rows == (
        ("cap", "limit", "$400,000", "$500,000", "loosens", "org.yaml policies[0]"),
        ("cap", "level", "deny", "warn", "loosens", "org.yaml policies[0]"),
        ("cap", "waiver", "-", "until 2027-01-31 by ops: launch | week", "loosens", "org.yaml policies[0]"),
        ("forbid", "removed", "forbid gpus: T4", "-", "loosens", "policies[1]"),
        ("min_latency_margin", "workloads", "chat", "all", "tightens", "org.yaml policies[1]"),
        (
            "share",
            "limit",
            "each provider: 60 %",
            "providers: aws: 60 %",
            "loosens and tightens",
            "org.yaml policies[2]",
        ),
        ("age", "id", "old", "age", "neither", "org.yaml policies[4]"),
        ("min_certificate", "added", "-", "min_certificate pass", "tightens", "org.yaml policies[3]"),
    )


def test_nothing_to_tell() -> None:
    same = policies("{max_gap: 1 %}")

    assert edits_table(edits(same, same)) is None
