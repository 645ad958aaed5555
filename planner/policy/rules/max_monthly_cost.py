"""The fleet costs no more than this per month."""

from __future__ import annotations

from planner.policy.facts import PlanFacts
from planner.policy.rule import Finding, Rule, at_most, is_higher
from planner.spec import PolicySpec


def check(policy: PolicySpec, facts: PlanFacts) -> Finding:
    """Compare the monthly cost, in USD, with the limit."""
    return at_most(policy.value, facts.usd_per_month)


RULE = Rule("max_monthly_cost", "usd", check, is_higher)
