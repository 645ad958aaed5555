"""A plan as one HTML page: for reviewers, for the archive, for print. Nothing in it is fetched from anywhere."""

from __future__ import annotations

from planner.plan.schema import Plan
from planner.report.content import Origin
from planner.report.html.page import page


def render(plan: Plan, origin: Origin | None = None, color: bool = False, width: int | None = None) -> str:  # noqa: ARG001
    """Return a plan as HTML; what the spec adds is shown where `origin` has it. Colour and width change nothing."""
    return page(plan, origin)
