"""The monthly cost rises by no more than this against a baseline plan."""

from __future__ import annotations

from planner.policy.facts import PlanFacts
from planner.policy.rule import ROUNDED_DIGITS, Finding, Rule, at_most, is_higher
from planner.spec import PolicySpec


def check(policy: PolicySpec, facts: PlanFacts) -> Finding:
    """Compare the rise of the monthly cost with the limit; without a baseline plan nothing has risen or fallen."""
    limit, before = policy.value, facts.baseline_usd_per_month
    if before is None:
        return Finding(None, limit, None)
    if before <= 0.0:  # whatever is paid after nothing is more than any share of it
        return Finding(facts.usd_per_month <= 0.0, limit, None)
    return at_most(limit, round(facts.usd_per_month / before - 1.0, ROUNDED_DIGITS))


RULE = Rule("max_monthly_cost_increase", "share", check, is_higher)
