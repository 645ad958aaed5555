"""Selected nodes, or every single provider, region, country, GPU or term, take no more than this share of the cost."""

from __future__ import annotations

from collections import defaultdict

from planner.candidates.selection import matches
from planner.policy.facts import Bought, PlanFacts
from planner.policy.rule import Finding, Rule, at_most
from planner.policy.selectors import covers, in_words
from planner.spec import PolicySpec
from planner.spec.policies import Part, ShareSpec

UNKNOWN = "unknown"


def check(policy: PolicySpec, facts: PlanFacts) -> Finding:
    """Compare the largest share of the cost of all nodes, as the mean over all hours, with the limit."""
    rule: ShareSpec = policy.value
    costs: dict[str, float] = defaultdict(float)
    for node in facts.bought:
        if rule.each is not None:
            costs[_part(rule.each, node)] += node.usd_per_hour
        elif rule.match is not None and matches(rule.match, node, facts.catalog):
            costs[in_words(rule.match)] += node.usd_per_hour
    total = sum(node.usd_per_hour for node in facts.bought)
    if total <= 0.0 or not costs:
        return Finding(True, rule.share, 0.0)
    part, cost = max(costs.items(), key=lambda item: item[1])
    return at_most(rule.share, cost / total, part)


def is_looser(old: PolicySpec, new: PolicySpec) -> bool:
    """Tell whether the share was raised, or is one of fewer nodes or of other parts."""
    before, after = old.value, new.value
    if after.share > before.share or before.each != after.each:
        return True
    return before.match is not None and not covers(after.match, before.match)


def _part(each: Part, node: Bought) -> str:
    """Name the part of the cost that nodes count to; regions go by their provider too."""
    return {
        "provider": node.provider,
        "region": f"{node.provider} {node.region}",
        "country": node.country or UNKNOWN,
        "gpu": node.gpu,
        "term": node.term,
    }[each]


RULE = Rule("max_share", "share", check, is_looser)
