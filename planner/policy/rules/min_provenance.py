"""The speed of every pool is known at least this well: A is best, D is worst."""

from __future__ import annotations

from planner.policy.facts import PlanFacts
from planner.policy.rule import Finding, Rule, is_higher
from planner.spec import PolicySpec


def check(policy: PolicySpec, facts: PlanFacts) -> Finding:
    """Compare the worst provenance class of any pool with the least: later letters are worse."""
    worst = max(facts.plan.pools, key=lambda p: p.band.provenance, default=None)
    if worst is None:
        return Finding(None, policy.value, None)
    return Finding(worst.band.provenance <= policy.value, policy.value, worst.band.provenance, worst.name)


RULE = Rule("min_provenance", "words", check, is_higher)
