"""Audited plans of fleets: at the peak, of all periods of the hours, and of each of the cases that are planned together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from planner.candidates.periods import Case, Expanded, InPeriod
from planner.candidates.types import Assumption
from planner.choose import Best
from planner.ground import Ground
from planner.plan.audit import audit, in_words
from planner.plan.build import build_plan, build_plan_of_periods
from planner.plan.figures import Violation
from planner.plan.fold import PeriodPlan
from planner.plan.fold_audit import audit_fold
from planner.plan.horizon import audit_growth, with_growth
from planner.plan.periods import in_period
from planner.plan.pools import draft_pools
from planner.plan.schema import Plan
from planner.prefer.keep import Fleet
from planner.solve.outcome import Solution


class BrokenPlan(RuntimeError):  # noqa: N818
    """A plan that its own audit refuses: a bug, never shown as solved."""


def planned(ground: Ground, whole: Expanded | None, best: Best, fleet: Fleet) -> Plan:
    """Return the audited plan of a fleet: that of today, with the steps to come where demand grows.

    Whether it is proven depends on the best one: what is kept is kept on purpose. Raises `BrokenPlan`.
    """
    if whole is None:
        return _planned_at_peak(ground, best, fleet)
    plans = planned_by_case(ground, whole, best, fleet)
    if ground.together is None or not ground.together.steps:
        return plans[0]
    plan = with_growth(plans, ground.together.steps, ground.spec, fleet.found.problem, fleet.found.solution)
    _refuse(audit_growth(plan, plans, ground.spec, fleet.found.solution))
    return plan


def planned_by_case(ground: Ground, whole: Expanded, best: Best, fleet: Fleet) -> tuple[Plan, ...]:
    """Return the audited plans of a fleet in each of the cases, in their order. Raises `BrokenPlan`."""
    return tuple(_planned_case(ground, case, whole, best, fleet) for case in ground.cases)


def _planned_at_peak(ground: Ground, best: Best, fleet: Fleet) -> Plan:
    found, catalog, constants = fleet.found, ground.catalog, ground.knowledge.constants
    table = replace(found.table, assumptions=(*ground.context.table.assumptions, *best.rerated))
    context = replace(ground.context, table=table)
    drafts = draft_pools(table, found.pools, constants)
    plan = build_plan(context, found.problem, found.solution, fleet.packing, drafts, constants, best.status)
    _refuse(audit(plan, ground.spec, table, catalog, constants, found.reroutes))
    return plan


def _planned_case(ground: Ground, case: Case, whole: Expanded, best: Best, fleet: Fleet) -> Plan:
    """Audit a fleet in each period of a case, and put the plans of several periods together."""
    assumed = (*ground.context.table.assumptions, *best.rerated)
    context = replace(ground.context, spec=case.spec, table=replace(case.table, assumptions=assumed))
    own = [part for part in whole.parts if part.case == case.name]
    parts = [PeriodPlan(part.period, _planned_part(ground, case, part, best, fleet, assumed)) for part in own]
    if len(parts) == 1:
        return parts[0].plan
    solution = fleet.found.solution if ground.together is None else _of_case(fleet.found.solution, parts)
    plan = build_plan_of_periods(context, fleet.found.problem, solution, parts, best.status)
    _refuse(audit_fold(plan, parts, case.spec, context.table, case.catalog), case.name)
    return plan


def _of_case(solution: Solution, parts: Sequence[PeriodPlan]) -> Solution:
    """Return the solution of one of several cases: nothing is proven about what it costs by itself."""
    cost = sum(p.period.share * p.plan.objective.value for p in parts if p.plan.objective is not None)
    return replace(solution, cost=cost, bound=cost)


def _planned_part(
    ground: Ground, case: Case, part: InPeriod, best: Best, fleet: Fleet, assumed: Sequence[Assumption]
) -> Plan:
    catalog, constants = case.catalog, ground.knowledge.constants
    own, nodes = in_period(part, fleet.found, fleet.packing)
    table = replace(own.table, assumptions=tuple(assumed))
    about = replace(ground.context, spec=part.spec, table=table)
    drafts = draft_pools(table, own.pools, constants)
    plan = build_plan(about, own.problem, own.solution, nodes, drafts, constants, best.status)
    _refuse(audit(plan, part.spec, own.table, catalog, constants, own.reroutes), part.mark)
    return plan


def _refuse(violations: tuple[Violation, ...], where: str = "") -> None:
    """Refuse a plan that its audit finds wrong, in a part where one is named."""
    if violations:
        raise BrokenPlan(f"{f'in {where}: ' if where else ''}{in_words(violations)}")
