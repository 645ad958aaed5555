"""All nodes that are paid for, and all pools, match this selector."""

from __future__ import annotations

from planner.policy.facts import PlanFacts
from planner.policy.rule import Finding, Rule
from planner.policy.selectors import covers, failing, in_words
from planner.spec import PolicySpec


def check(policy: PolicySpec, facts: PlanFacts) -> Finding:
    """List the offers that are paid for, and the pools, that do not match the selector."""
    found = list(failing(policy.value, facts))
    return Finding(not found, in_words(policy.value), ", ".join(found) or None)


def is_looser(old: PolicySpec, new: PolicySpec) -> bool:
    """Tell whether something is allowed now that was not."""
    return not covers(old.value, new.value)


RULE = Rule("require", "words", check, is_looser)
