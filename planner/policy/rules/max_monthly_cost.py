"""The fleet costs no more than this per month."""

from __future__ import annotations

from planner.policy.facts import Finding, PlanFacts
from planner.spec import PolicySpec

NAME = "max_monthly_cost"


def check(policy: PolicySpec, facts: PlanFacts) -> Finding:
    """Compare the monthly cost, in USD, with the limit."""
    limit = policy.max_monthly_cost_usd or 0.0
    return Finding(facts.usd_per_month <= limit, limit, facts.usd_per_month)
