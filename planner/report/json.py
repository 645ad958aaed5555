"""A plan as JSON: the documented interface for programs."""

from __future__ import annotations

from planner.plan.io import dump
from planner.plan.schema import Plan
from planner.report.content import Origin


def render(plan: Plan, origin: Origin | None = None, color: bool = False, width: int | None = None) -> str:  # noqa: ARG001
    """Return a plan as one JSON object, the same bytes as in a saved plan; the other arguments change nothing."""
    return dump(plan)
