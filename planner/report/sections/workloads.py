"""The workloads: demand against capacity, money, and every latency limit against its prediction."""

from __future__ import annotations

from planner.plan.schema import Plan, SloCheck, WorkloadPlan
from planner.report import figures
from planner.report.content import Block, Table, numbers, texts

_AT_PEAK = (
    "Demand and capacity in req/s at peak. Holds to: demand at which this fleet no longer meets every rule of the spec."
)
_IN_PERIODS = (
    "Demand in req/s at the highest hour. Holds to: the same at which this fleet no longer meets every rule of the spec, were all "
    "hours to grow alike; capacity counts in the same way. The period with least room decides."
)
_WORST = "Predicted: the worst of any period."


def workloads(plan: Plan) -> Block | None:
    """Return what each workload asks for, what it gets, and what it costs."""
    if not plan.workloads:
        return None
    columns = texts("Workload", "Model") + numbers("Demand", "Capacity", "Used", "Holds to")
    columns += numbers("$/month", "$/Mtok", "$/Mtok out") + texts("At")
    notes = [
        _AT_PEAK if plan.demand_by_period is None else _IN_PERIODS,
        "$/Mtok: over input and output tokens, at the rate named under At.",
    ]
    if plan.max_load_factor is not None:
        notes.append(f"All demands at once: this fleet holds {figures.number(plan.max_load_factor)} times as much.")
    return Table("Workloads", columns, tuple(_workload(w) for w in plan.workloads), tuple(notes))


def _workload(workload: WorkloadPlan) -> tuple[str, ...]:
    capacity = workload.capacity_requests_per_s
    return (
        figures.visible(workload.name),
        figures.visible(workload.model),
        figures.number(workload.demand_requests_per_s),
        figures.number(capacity),
        figures.share(workload.demand_requests_per_s / capacity) if capacity > 0.0 else "",
        figures.number(workload.next_step_requests_per_s),
        figures.amount(workload.usd_per_month),
        figures.amount(workload.usd_per_million_tokens),
        figures.amount(workload.usd_per_million_output_tokens),
        workload.at,
    )


def latency(plan: Plan) -> Block | None:
    """Return every latency limit with its prediction, worst pool first."""
    rows = [_limit(workload.name, check) for workload in plan.workloads for check in workload.slo]
    if not rows:
        return None
    columns = texts("Workload", "Limit on") + numbers("Predicted", "Limit", "Margin")
    return Table("Latency", columns, tuple(rows), () if plan.demand_by_period is None else (_WORST,))


def _limit(workload: str, check: SloCheck) -> tuple[str, ...]:
    return (
        figures.visible(workload),
        metric_name(figures.visible(check.metric)),
        figures.seconds(check.predicted_s),
        figures.seconds(check.limit_s),
        figures.share(check.margin),
    )


def metric_name(key: str) -> str:
    """Return a latency key as people write it: `ttft_p95` is `TTFT p95`."""
    metric, _, percentile = key.partition("_")
    return f"{metric.upper()} {percentile}".strip()
