"""Audit a fleet that runs against a spec and catalog of today, without looking for another one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from planner import __version__
from planner.diagnostics import Span
from planner.pipeline import Options, Prepared, make_plan, today
from planner.plan.schema import Plan, PolicyResult, SloCheck, WorkloadPlan
from planner.policy import placed
from planner.prefer.broken import Broken
from planner.review.verification import (
    BrokenLimit,
    Place,
    Repair,
    Stale,
    Verification,
    VerifiedLimit,
    VerifiedWorkload,
)
from planner.spec import FleetSpec, WorkloadSpec
from planner.spec.keys import locate
from planner.stand import Stood, stand

DEPLOYED = "deployed"
REPAIR_GAP = 0.02
"""Proven distance from the best fleet that is enough to say what a repair costs."""


@dataclass(frozen=True)
class Subject:
    """What is verified: a saved plan, or, without one, what the spec says is deployed; `name` is the file of the plan."""

    plan: Plan | None
    name: str = DEPLOYED


def verify(prepared: Prepared, subject: Subject, options: Options, *, repairs: bool = True) -> Verification:
    """Return whether a fleet satisfies the spec as it runs, with what it breaks and the cheapest repair.

    `options.prefer` is the plan of the subject. Raises what `stand` raises.
    """
    stood = stand(prepared, options)
    policies = stood.plan.policies if stood.plan is not None else _unjudged(prepared, options)
    repair = None
    if stood.plan is None and repairs:
        rough = replace(options, gap=max(REPAIR_GAP, prepared.spec.planning.gap))
        repair = _repair(make_plan(today(prepared), rough), stood.usd_per_month)
    return Verification(
        fleet=prepared.spec.fleet,
        subject=subject.name,
        spec=prepared.loaded.path,
        as_of=stood.as_of.isoformat(),
        holds=stood.plan is not None,
        broken=tuple(_broken(prepared, b) for b in stood.broken),
        stale=tuple(_stale(subject.plan, stood)),
        rerouted=stood.rerouted,
        workloads=tuple(_workloads(prepared.spec, subject.plan, stood)),
        usd_per_month=stood.usd_per_month,
        planned_usd_per_month=_usd_per_month(subject.plan),
        policies=policies,
        repair=repair,
    )


def place_of(span: Span | None) -> Place | None:
    """Return a place as records have it."""
    if span is None:
        return None
    return Place(path=span.path, line=span.line, column=span.column, end_column=span.end_column)


def _unjudged(prepared: Prepared, options: Options) -> tuple[PolicyResult, ...]:
    """Return the policies as not evaluated: there is no plan that they could be about."""
    every = (*placed(prepared.spec.policies), *options.policies)
    return tuple(
        PolicyResult(
            id=p.policy.label,
            rule=p.policy.rule,
            outcome="not_evaluated",
            limit=None,
            actual=None,
            path=p.path,
            file=p.file,
        )
        for p in every
    )


def _usd_per_month(plan: Plan | None) -> float | None:
    return None if plan is None or plan.objective is None else plan.objective.usd_per_month


def _repair(plan: Plan, paid: float | None) -> Repair:
    """Return what the plan that changes least amounts to; `paid` is what the fleet that runs costs, USD/month."""
    cost, preferred = _usd_per_month(plan), plan.preferred
    return Repair(
        status=plan.status,
        usd_per_month=cost,
        usd_per_month_delta=None if cost is None or paid is None else cost - paid,
        changes=() if preferred is None else preferred.changes,
        infeasible=plan.infeasible,
    )


def _broken(prepared: Prepared, broken: Broken) -> BrokenLimit:
    key = _key(prepared.spec, broken)
    return BrokenLimit(
        check=broken.check,
        subject=broken.subject,
        period=broken.period or None,
        reason=broken.reason,
        key=key,
        metric=broken.metric or None,
        limit=broken.limit,
        actual=broken.actual,
        place=place_of(locate(prepared.loaded, key)),
    )


def _key(spec: FleetSpec, broken: Broken) -> str:
    """Return the key of the spec that asks for what is broken."""
    subject = broken.subject
    if broken.key:
        return broken.key
    if broken.check == "latency":
        return f"workloads.{subject}.slo.{broken.metric}"
    if subject in spec.workloads:
        return f"workloads.{subject}"
    if broken.check == "loss" and subject in spec.models:
        return "reliability" if spec.models[subject].reliability is None else f"models.{subject}.reliability"
    if subject in spec.models:
        return f"models.{subject}"
    return "workloads"


def _stale(plan: Plan | None, stood: Stood) -> Iterator[Stale]:
    """Yield what the plan was made with that is another today."""
    if plan is None:
        return
    then, now = plan.digests, stood.digests
    pairs = [
        ("spec", then.spec, now.spec),
        ("catalog", then.catalog, now.catalog),
        ("calibration", then.calibration, now.calibration),
        ("planner", plan.versions.planner, __version__),
        ("date", plan.as_of, stood.as_of.isoformat()),
    ]
    changed = [Stale.model_validate({"what": w, "then": a, "now": b}) for w, a, b in pairs if a != b]
    yield from changed
    if plan.certificate is not None and any(s.what in ("spec", "catalog", "calibration") for s in changed):
        yield Stale(what="certificate", then=plan.certificate.replayed.verdict, now="not replayed since")


def _workloads(spec: FleetSpec, plan: Plan | None, stood: Stood) -> Iterator[VerifiedWorkload]:
    planned = {} if plan is None else {w.name: w for w in plan.workloads}
    today = {} if stood.plan is None else {w.name: w for w in stood.plan.workloads}
    for name in sorted(planned.keys() | spec.workloads.keys()):
        asked, before, now = spec.workloads.get(name), planned.get(name), today.get(name)
        model = before.model if before is not None else spec.workloads[name].model
        yield VerifiedWorkload(
            name=name,
            model=model,
            demand_requests_per_s=None if asked is None else asked.traffic.peak_requests_per_s(),
            planned_requests_per_s=None if before is None else before.demand_requests_per_s,
            holds_to_requests_per_s=None if now is None else now.next_step_requests_per_s,
            slo=tuple(_limits(asked, before, _predicted(now, name, stood))),
        )


def _predicted(now: WorkloadPlan | None, name: str, stood: Stood) -> dict[str, float]:
    """Return the latencies that are predicted today by SLO key."""
    if now is not None:
        return {check.metric: check.predicted_s for check in now.slo}
    return {key: seconds for (workload, key), seconds in stood.predicted_s.items() if workload == name}


def _limits(
    asked: WorkloadSpec | None, before: WorkloadPlan | None, predicted: Mapping[str, float]
) -> Iterator[VerifiedLimit]:
    limits = {} if asked is None else asked.slo
    planned: dict[str, SloCheck] = {} if before is None else {c.metric: c for c in before.slo}
    for metric in sorted(limits.keys() | planned.keys()):
        limit_s, seconds, check = limits.get(metric), predicted.get(metric), planned.get(metric)
        yield VerifiedLimit(
            metric=metric,
            limit_s=limit_s,
            predicted_s=seconds if limit_s is not None else None,
            margin=None if limit_s is None or seconds is None else 1.0 - seconds / limit_s,
            planned_limit_s=None if check is None else check.limit_s,
            planned_s=None if check is None else check.predicted_s,
            planned_margin=None if check is None else check.margin,
        )
