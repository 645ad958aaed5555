"""Evaluate all policies of a spec on a finished plan."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Sequence
from datetime import date

from planner.plan.schema import PolicyOutcome, PolicyResult
from planner.policy.facts import Finding, PlanFacts
from planner.spec import FleetSpec, PolicySpec

Check = Callable[[PolicySpec, PlanFacts], Finding]


def all_checks() -> dict[str, Check]:
    """Return the check of every rule of the package `rules`: a new file there is a new rule."""
    package = importlib.import_module("planner.policy.rules")
    modules = [importlib.import_module(f"{package.__name__}.{m.name}") for m in pkgutil.iter_modules(package.__path__)]
    return {module.NAME: module.check for module in sorted(modules, key=lambda m: str(m.NAME))}


def evaluate(spec: FleetSpec, facts: PlanFacts, as_of: date) -> tuple[PolicyResult, ...]:
    """Return the outcome of every policy, in the order of the spec; waivers hold until their last day."""
    checks = all_checks()
    results: list[PolicyResult] = []
    for number, policy in enumerate(spec.policies):
        finding = checks[policy.rule](policy, facts)
        results.append(
            PolicyResult(
                id=policy.label,
                rule=policy.rule,
                outcome=_outcome(policy, finding, as_of),
                limit=finding.limit,
                actual=finding.actual,
                path=f"policies[{number}]",
            )
        )
    return tuple(results)


def _outcome(policy: PolicySpec, finding: Finding, as_of: date) -> PolicyOutcome:
    if finding.holds is None:
        return "not_evaluated"
    if finding.holds:
        return "ok"
    if policy.waive is not None and as_of <= policy.waive.until:
        return "waived"
    return "deny" if policy.level == "deny" else "warn"


def denies(results: Sequence[PolicyResult]) -> bool:
    """Tell whether some policy denies the plan."""
    return any(r.outcome == "deny" for r in results)
