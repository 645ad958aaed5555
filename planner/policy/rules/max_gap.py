"""The plan is proven to be this close to the best there is."""

from __future__ import annotations

from planner.policy.facts import PlanFacts
from planner.policy.rule import Finding, Rule, at_most, is_higher
from planner.spec import PolicySpec


def check(policy: PolicySpec, facts: PlanFacts) -> Finding:
    """Compare the gap to the proven bound, as a share of the value, with the limit."""
    objective = facts.plan.objective
    return at_most(policy.value, objective.gap) if objective is not None else Finding(None, policy.value, None)


RULE = Rule("max_gap", "share", check, is_higher)
