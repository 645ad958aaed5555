"""Evaluate policies on a finished plan."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date

from planner.plan.schema import PolicyOutcome, PolicyResult, PolicyWaiver
from planner.policy.facts import PlanFacts
from planner.policy.placed import PlacedPolicy
from planner.policy.rule import Finding, all_rules
from planner.spec import PolicySpec


def evaluate(policies: Iterable[PlacedPolicy], facts: PlanFacts) -> tuple[PolicyResult, ...]:
    """Return the outcome of every policy in the order given; waivers hold until their last day."""
    return tuple(_result(each, facts) for each in policies)


def _result(each: PlacedPolicy, facts: PlanFacts) -> PolicyResult:
    policy = each.policy
    finding = all_rules()[policy.rule].check(policy, facts)
    waiver = _waiver(policy, facts.as_of)
    return PolicyResult(
        id=policy.label,
        rule=policy.rule,
        outcome=_outcome(policy, finding, waiver),
        limit=finding.limit,
        actual=finding.actual,
        path=each.path,
        at=finding.at,
        file=each.file,
        waiver=waiver,
    )


def _waiver(policy: PolicySpec, as_of: date) -> PolicyWaiver | None:
    waive = policy.waive
    if waive is None:
        return None
    return PolicyWaiver(reason=waive.reason, by=waive.by, until=waive.until.isoformat(), expired=as_of > waive.until)


def _outcome(policy: PolicySpec, finding: Finding, waiver: PolicyWaiver | None) -> PolicyOutcome:
    if finding.holds is None:
        return "not_evaluated"
    if finding.holds:
        return "ok"
    return "waived" if waiver is not None and not waiver.expired else policy.level


def denies(results: Sequence[PolicyResult]) -> bool:
    """Tell whether some policy denies the plan."""
    return any(r.outcome == "deny" for r in results)
