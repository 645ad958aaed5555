"""A million tokens, input and output, of no workload cost more than this."""

from __future__ import annotations

from planner.policy.facts import PlanFacts
from planner.policy.rule import Finding, Rule, at_most, is_higher
from planner.spec import PolicySpec


def check(policy: PolicySpec, facts: PlanFacts) -> Finding:
    """Compare the dearest workload, in USD per million tokens, with the limit."""
    costs = [(w.usd_per_million_tokens, w.name) for w in facts.workloads(policy.workloads)]
    return at_most(policy.value, *max(costs)) if costs else Finding(None, policy.value, None)


RULE = Rule("max_cost_per_million_tokens", "usd_per_mtok", check, is_higher)
