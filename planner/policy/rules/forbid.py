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
    given = {
        "countries": selector.all_countries,
        "gpus": selector.gpus,
        "providers": selector.all_providers,
        "regions": selector.all_regions,
        "terms": selector.terms,
    }
    limit = ", ".join(f"{key}: {'|'.join(values)}" for key, values in given.items() if values)
    return Finding(not found, limit, ", ".join(found) or None)
