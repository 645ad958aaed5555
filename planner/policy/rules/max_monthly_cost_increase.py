"""The monthly cost rises by no more than this against a baseline plan."""

from __future__ import annotations

from planner.policy.facts import Finding, PlanFacts
from planner.spec import PolicySpec

NAME = "max_monthly_cost_increase"


def check(policy: PolicySpec, facts: PlanFacts) -> Finding:
    """Leave the rule open: without a baseline plan nothing has risen or fallen."""
    del facts
    return Finding(None, policy.max_monthly_cost_increase, None)
