"""No node of the fleet matches this selector."""

from __future__ import annotations

from planner.candidates.selection import matches
from planner.policy.facts import Finding, PlanFacts
from planner.spec import PolicySpec

NAME = "forbid"


def check(policy: PolicySpec, facts: PlanFacts) -> Finding:
    """List the offers that are paid for although the selector forbids them."""
    selector = policy.forbid
    assert selector is not None
    found = [o.name for o in facts.offers if matches(selector, o, facts.catalog)]
    given = {k: list(v) for k, v in selector.model_dump().items() if v}
    limit = ", ".join(f"{key}: {'|'.join(values)}" for key, values in sorted(given.items()))
    return Finding(not found, limit, ", ".join(found) or None)
