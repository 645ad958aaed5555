"""No nodes that are paid for, and no pools, match this selector."""

from __future__ import annotations

from planner.policy.facts import PlanFacts
from planner.policy.rule import Finding, Rule
from planner.policy.selectors import covers, in_words, matching
from planner.spec import PolicySpec


def check(policy: PolicySpec, facts: PlanFacts) -> Finding:
    """List the offers that are paid for, or the pools, although the selector forbids them."""
    found = list(matching(policy.value, facts))
    return Finding(not found, in_words(policy.value), ", ".join(found) or None)


def is_looser(old: PolicySpec, new: PolicySpec) -> bool:
    """Tell whether something that was forbidden no longer is."""
    return not covers(new.value, old.value)


RULE = Rule("forbid", "words", check, is_looser)
