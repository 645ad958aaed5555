"""The predictions leave this share of every latency limit."""

from __future__ import annotations

from planner.policy.facts import PlanFacts
from planner.policy.rule import Finding, Rule, at_least, is_lower
from planner.spec import PolicySpec


def check(policy: PolicySpec, facts: PlanFacts) -> Finding:
    """Compare the share that is left of the tightest latency limit with the least."""
    margins = [(c.margin, f"{w.name} {c.metric}") for w in facts.workloads(policy.workloads) for c in w.slo]
    return at_least(policy.value, *min(margins)) if margins else Finding(None, policy.value, None)


RULE = Rule("min_latency_margin", "share", check, is_lower)
