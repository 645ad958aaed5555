"""List prices that are paid are no older than this."""

from __future__ import annotations

import re
from datetime import date

from planner.policy.facts import PlanFacts
from planner.policy.rule import Finding, Rule, at_most, is_higher
from planner.spec import PolicySpec
from planner.units import SECONDS_PER_DAY

OWN_PRICES = "own prices only"
UNDATED = "unknown"
_DATE = re.compile(r"(\d{4})(?:-(\d{2})(?!\d))?(?:-(\d{2})(?!\d))?", re.ASCII)


def check(policy: PolicySpec, facts: PlanFacts) -> Finding:
    """Compare the age of the oldest price that is paid, in days, with the limit.

    Owned hardware and prices of the user's own have no date and no age; discounts on a list are as old as the list.
    """
    limit = policy.value / SECONDS_PER_DAY
    listed = [(earliest(n.price.date), n.offer) for n in facts.plan.nodes if n.price.date]
    undated = [offer for day, offer in listed if day is None]
    if undated:
        return Finding(False, limit, UNDATED, undated[0])
    dated = [(day, offer) for day, offer in listed if day is not None]
    if not dated:
        return Finding(True, limit, OWN_PRICES)
    day, offer = min(dated)
    return at_most(limit, float(max((facts.as_of - day).days, 0)), offer)


def earliest(text: str) -> date | None:
    """Return the first day that the date of a price list may mean, such as `2026-05`, `2026` or `2025-12..2026-08`."""
    found = _DATE.match(text)
    try:
        return date(*(int(part or 1) for part in found.groups())) if found else None
    except ValueError:
        return None


RULE = Rule("max_price_age", "days", check, is_higher)
