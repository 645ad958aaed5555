"""The plan has a certificate of a replay with at least this verdict."""

from __future__ import annotations

from planner.plan.replayed import VERDICTS
from planner.policy.facts import PlanFacts
from planner.policy.rule import Finding, Rule
from planner.spec import PolicySpec


def check(policy: PolicySpec, facts: PlanFacts) -> Finding:
    """Compare the verdict of the certificate with the least; a plan that was not replayed has none."""
    certificate = facts.plan.certificate
    if certificate is None:
        return Finding(False, policy.value, "none")
    verdict = certificate.replayed.verdict
    return Finding(VERDICTS.index(verdict) <= VERDICTS.index(policy.value), policy.value, verdict)


def is_looser(old: PolicySpec, new: PolicySpec) -> bool:
    """Tell whether a worse verdict is enough."""
    return VERDICTS.index(new.value) > VERDICTS.index(old.value)


RULE = Rule("min_certificate", "words", check, is_looser)
