"""The parts of a report on a plan, one module each, in the order that they are read."""

from __future__ import annotations

from planner.plan.schema import Plan
from planner.report.content import Block, Origin
from planner.report.sections.api import api
from planner.report.sections.certificate import certificate, certified_latency
from planner.report.sections.commitments import commitments
from planner.report.sections.growth import growth_steps, purchases
from planner.report.sections.headline import headline
from planner.report.sections.infeasible import infeasible
from planner.report.sections.nodes import nodes
from planner.report.sections.notes import assumptions, excluded, rejections
from planner.report.sections.periods import by_period, periods
from planner.report.sections.policies import policies
from planner.report.sections.pools import limits, measurements, memory, pools, predictions
from planner.report.sections.preferred import preferred
from planner.report.sections.robust import robustness
from planner.report.sections.workloads import latency, workloads

SECTIONS = (
    headline,
    certificate,
    preferred,
    pools,
    nodes,
    periods,
    by_period,
    robustness,
    growth_steps,
    purchases,
    commitments,
    workloads,
    api,
    latency,
    certified_latency,
    predictions,
    measurements,
    memory,
    limits,
    policies,
    rejections,
    assumptions,
    excluded,
)


def blocks(plan: Plan, origin: Origin | None = None) -> list[Block]:
    """Return everything that a report says about a plan; sections that do not apply are left out."""
    found = [block for block in (section(plan) for section in SECTIONS) if block is not None]
    if plan.infeasible is not None:
        found[1:1] = infeasible(plan.infeasible, origin)
    return found
