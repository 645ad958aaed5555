"""Put the plan together from a solution, and from an infeasible problem."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from planner.candidates.hours import PEAK
from planner.candidates.hours import Period as HoursTogether
from planner.candidates.types import CandidateTable
from planner.physics.constants import SpeedConstants
from planner.plan.commitments import plan_commitments
from planner.plan.fold import PeriodPlan, folded
from planner.plan.growth import Growth, growth_of
from planner.plan.io import with_digest
from planner.plan.nodes import plan_nodes
from planner.plan.pools import PoolDraft, plan_pools, pool_costs
from planner.plan.replayed import Certificate
from planner.plan.schema import (
    Digests,
    InfeasibleReport,
    Objective,
    Period,
    Plan,
    PlanAssumption,
    PolicyResult,
    Preferred,
    Rejections,
    Status,
    Versions,
)
from planner.plan.spares import spares_of
from planner.plan.workloads import plan_workloads
from planner.program.data import FleetProblem, minimises_cost_alone, penalties
from planner.solve.outcome import Solution
from planner.solve.packing import Packing
from planner.spec import FleetSpec


@dataclass(frozen=True)
class Context:
    """What a plan says about where it comes from; `periods` are what its hours are planned in."""

    spec: FleetSpec
    table: CandidateTable
    as_of: date
    digests: Digests
    versions: Versions
    periods: tuple[HoursTogether, ...] = ()


def build_plan(
    context: Context,
    problem: FleetProblem,
    solution: Solution,
    packing: Packing,
    drafts: list[PoolDraft],
    constants: SpeedConstants,
    status: Status,
    growth: Growth | None = None,
) -> Plan:
    """Return the plan of a solved or unproven fleet, with its digest. Its `growth` is found out where it is not known."""
    spec, table = context.spec, context.table
    hours = spec.planning.hours_per_month
    nodes = plan_nodes(table, packing)
    usd_per_h = sum(n.usd_per_hour for n in nodes)
    commitments = plan_commitments(spec, table, packing)
    spares = spares_of(table, problem, solution, [(d.candidate, d.load) for d in drafts], constants)
    growth = growth or growth_of(table, problem, solution, constants)
    plan = Plan(
        fleet=spec.fleet,
        status=status,
        as_of=context.as_of.isoformat(),
        objective=Objective(
            minimised=spec.planning.objective,
            value=solution.cost,
            bound=solution.bound,
            usd_per_hour=usd_per_h,
            peak_usd_per_hour=usd_per_h,
            usd_per_month=usd_per_h * hours,
            bound_usd_per_hour=solution.bound if minimises_cost_alone(problem) else None,
            preference_penalty=penalties(problem, solution.replicas),
            gap=solution.gap,
            committed_usd_per_month=sum(c.usd_per_month for c in commitments),
            idle_committed_usd_per_month=sum(c.idle_usd_per_month for c in commitments),
        ),
        periods=(Period(name=PEAK, hours_per_month=hours),),
        pools=plan_pools(table, problem, packing, drafts, spares),
        workloads=plan_workloads(table, growth, drafts, pool_costs(problem, packing), hours),
        max_load_factor=growth.common_factor,
        nodes=nodes,
        commitments=commitments,
        candidates=len(table.candidates),
        rejections=rejections(table),
        assumptions=assumptions(table),
        policies=(),
        digests=context.digests,
        versions=context.versions,
    )
    return with_digest(plan)


def build_plan_of_periods(
    context: Context,
    problem: FleetProblem,
    solution: Solution,
    parts: Sequence[PeriodPlan],
    status: Status,
) -> Plan:
    """Return the plan of a fleet that was planned for all periods at once, from those of its periods, with its digest."""
    objective = Objective(
        minimised=context.spec.planning.objective,
        value=solution.cost,
        bound=solution.bound,
        usd_per_hour=0.0,
        peak_usd_per_hour=0.0,
        usd_per_month=0.0,
        bound_usd_per_hour=solution.bound if minimises_cost_alone(problem) else None,
        preference_penalty=penalties(problem, solution.replicas),
        gap=solution.gap,
        committed_usd_per_month=0.0,
        idle_committed_usd_per_month=0.0,
    )
    whole = _empty(context, status).model_copy(update={"objective": objective})
    return with_digest(folded(parts, context.table, whole))


def infeasible_plan(context: Context, report: InfeasibleReport) -> Plan:
    """Return the plan that says why no fleet meets the spec, with its digest."""
    return with_digest(_empty(context, "infeasible").model_copy(update={"infeasible": report}))


def unsolved_plan(context: Context, reason: str) -> Plan:
    """Return the plan that says why there is none although none was proven impossible, with its digest."""
    return with_digest(_empty(context, "unproven").model_copy(update={"unsolved": reason}))


def with_certificate(plan: Plan, certificate: Certificate) -> Plan:
    """Return a plan with the certificate of its replay, and its digest."""
    return with_digest(plan.model_copy(update={"certificate": certificate}))


def with_preferred(plan: Plan, preferred: Preferred) -> Plan:
    """Return a plan that says what became of the fleet that was to be kept, with its digest."""
    return with_digest(plan.model_copy(update={"preferred": preferred}))


def with_policies(plan: Plan, policies: Sequence[PolicyResult]) -> Plan:
    """Return a plan with the outcome of its policies, and its digest."""
    return with_digest(plan.model_copy(update={"policies": tuple(policies)}))


def _empty(context: Context, status: Status) -> Plan:
    hours = context.spec.planning.hours_per_month
    return Plan(
        fleet=context.spec.fleet,
        status=status,
        as_of=context.as_of.isoformat(),
        objective=None,
        periods=(Period(name=PEAK, hours_per_month=hours),),
        pools=(),
        workloads=(),
        nodes=(),
        candidates=len(context.table.candidates),
        rejections=rejections(context.table),
        assumptions=assumptions(context.table),
        policies=(),
        digests=context.digests,
        versions=context.versions,
    )


def rejections(table: CandidateTable) -> Rejections:
    """Count the rejections of a table by rule."""
    return Rejections(total=len(table.rejections), by_rule=table.rejection_counts)


def assumptions(table: CandidateTable) -> tuple[PlanAssumption, ...]:
    """Return the assumptions of a table, with the evidence for the formats that its candidates use."""
    found = [PlanAssumption(key=a.key, value=a.value, source=a.source) for a in table.assumptions]
    pairs = sorted({(c.shape.model, c.shape.weights, c.shape.kv_cache) for c in table.candidates})
    for model, weights, kv_cache in pairs:
        evidence = table.models[model].quality[weights, kv_cache]
        if evidence.level != "native":
            scores = f"{evidence.n} {'score' if evidence.n == 1 else 'scores'}"
            value = f"{evidence.recovery * 100:.1f} % of native quality ({evidence.level} evidence, {scores})"
            found.append(
                PlanAssumption(
                    key=f"models.{model}.quality.{weights}+kv-{kv_cache}", value=value, source=evidence.source
                )
            )
    return tuple(found)
