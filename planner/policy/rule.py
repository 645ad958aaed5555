"""What a policy rule is: how it judges a plan, and when one limit is looser than another."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Literal

from planner.policy.facts import PlanFacts
from planner.spec import PolicySpec

Unit = Literal["usd", "usd_per_mtok", "share", "days", "words"]
"""What the numbers of a rule count; `words` are text, and a class, a verdict or names."""

ROUNDED_DIGITS = 9  # a saved plan has twelve, and a limit is to hold in the plan as it is in its file


@dataclass(frozen=True)
class Finding:
    """What a rule found: whether it holds (None: nothing to judge), limit and actual value, and what has the latter."""

    holds: bool | None
    limit: float | str
    actual: float | str | None
    at: str | None = None


@dataclass(frozen=True)
class Rule:
    """A rule of the grammar. `is_looser(old, new)` tells whether some plan may pass the new policy and not the old one."""

    name: str
    unit: Unit
    check: Callable[[PolicySpec, PlanFacts], Finding]
    is_looser: Callable[[PolicySpec, PolicySpec], bool]


@cache
def all_rules() -> Mapping[str, Rule]:
    """Return every rule of the package `rules` by name: a new file there is a new rule."""
    package = importlib.import_module("planner.policy.rules")
    modules = [importlib.import_module(f"{package.__name__}.{m.name}") for m in pkgutil.iter_modules(package.__path__)]
    return {module.RULE.name: module.RULE for module in sorted(modules, key=lambda m: str(m.RULE.name))}


def is_higher(old: PolicySpec, new: PolicySpec) -> bool:
    """Tell whether a limit was raised: looser where it says the most."""
    return bool(new.value > old.value)


def is_lower(old: PolicySpec, new: PolicySpec) -> bool:
    """Tell whether a limit was lowered: looser where it says the least."""
    return bool(new.value < old.value)


def at_most(limit: float, actual: float, at: str | None = None) -> Finding:
    """Compare a value with the most that it may be."""
    return Finding(round(actual, ROUNDED_DIGITS) <= limit, limit, actual, at)


def at_least(limit: float, actual: float, at: str | None = None) -> Finding:
    """Compare a value with the least that it may be."""
    return Finding(round(actual, ROUNDED_DIGITS) >= limit, limit, actual, at)
