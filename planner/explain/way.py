"""What an explanation of an infeasible spec finds."""

from __future__ import annotations

from dataclasses import dataclass

from planner.explain.change import Change
from planner.explain.trials import Variant
from planner.plan.schema import Conflict, Plan


@dataclass(frozen=True)
class Way:
    """Changes of the user's spec to be made together, and the plan that they lead to."""

    changes: tuple[Change, ...]
    plan: Plan
    serves_less: bool = False

    @property
    def usd_per_h(self) -> float:
        """What the fleet of the plan costs."""
        assert self.plan.objective is not None
        return self.plan.objective.usd_per_hour


@dataclass(frozen=True)
class Finding:
    """The keys in the way of a spec, the reasons, and the ways out."""

    conflict: tuple[Conflict, ...]
    reasons: tuple[str, ...]
    ways: tuple[Way, ...]


def way_to(variant: Variant, plan: Plan, serves_less: bool = False) -> Way:
    """Return the way to a variant of the user's spec that was planned."""
    return Way(variant.changes, plan, serves_less)
