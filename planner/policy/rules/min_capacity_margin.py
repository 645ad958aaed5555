"""The demand of every workload can grow by this share before the fleet no longer meets the spec."""

from __future__ import annotations

from planner.policy.facts import PlanFacts
from planner.policy.rule import Finding, Rule, at_least, is_lower
from planner.spec import PolicySpec


def check(policy: PolicySpec, facts: PlanFacts) -> Finding:
    """Compare the least growth that a workload bears, the others as planned, with the limit."""
    margins = [
        (w.next_step_requests_per_s / w.demand_requests_per_s - 1.0, w.name)
        for w in facts.workloads(policy.workloads)
        if w.demand_requests_per_s > 0.0
    ]
    return at_least(policy.value, *min(margins)) if margins else Finding(None, policy.value, None)


RULE = Rule("min_capacity_margin", "share", check, is_lower)
