"""What each workload asks for and what the fleet gives it: capacity, latency margins, money."""

from __future__ import annotations

from collections.abc import Mapping

from planner.candidates.types import CandidateTable, ResolvedWorkload
from planner.plan.growth import Growth
from planner.plan.pools import PoolDraft
from planner.plan.schema import SloCheck, WorkloadPlan

SECONDS_PER_HOUR = 3600.0
TOKENS_PER_MILLION = 1e6


def plan_workloads(
    table: CandidateTable,
    growth: Growth,
    drafts: list[PoolDraft],
    costs: Mapping[str, float],
    hours_per_month: float,
) -> tuple[WorkloadPlan, ...]:
    """Return the workloads as the plan shows them, sorted by name; `costs` are USD/h by candidate."""
    shares = _cost_shares(drafts, costs)
    return tuple(_workload(w, growth, drafts, shares[w.name], hours_per_month) for w in table.workloads.values())


def _cost_shares(drafts: list[PoolDraft], costs: Mapping[str, float]) -> dict[str, float]:
    """Share the cost of each pool among its workloads by the replica time they take; USD/h by workload."""
    shares: dict[str, float] = {}
    for draft in drafts:
        busy = {w: r * draft.candidate.services[w].busy_s for w, r in sorted(draft.load.rates.items())}
        for workload, seconds in busy.items():
            part = costs[draft.candidate.name] * seconds / sum(busy.values())
            shares[workload] = shares.get(workload, 0.0) + part
    return shares


def _workload(
    workload: ResolvedWorkload,
    growth: Growth,
    drafts: list[PoolDraft],
    usd_per_h: float,
    hours_per_month: float,
) -> WorkloadPlan:
    mean = workload.mean_requests_per_s
    rate = mean if mean is not None else workload.peak_requests_per_s
    input_tokens, output_tokens = workload.mean_input_tokens, workload.mean_output_tokens
    usd_per_request = usd_per_h / (rate * SECONDS_PER_HOUR)
    return WorkloadPlan(
        name=workload.name,
        model=workload.model,
        demand_requests_per_s=workload.peak_requests_per_s,
        capacity_requests_per_s=growth.capacity[workload.name],
        slo=_slo(workload, drafts),
        usd_per_month=usd_per_h * hours_per_month,
        usd_per_million_tokens=usd_per_request * TOKENS_PER_MILLION / (input_tokens + output_tokens),
        usd_per_million_output_tokens=usd_per_request * TOKENS_PER_MILLION / output_tokens,
        at="peak" if mean is None else "mean",
        next_step_requests_per_s=growth.next_step[workload.name],
    )


def _slo(workload: ResolvedWorkload, drafts: list[PoolDraft]) -> tuple[SloCheck, ...]:
    checks: list[SloCheck] = []
    for metric, limit_s in sorted(workload.spec.slo.items()):
        predicted_s = max(d.state.latency_s[workload.name, metric] for d in drafts if workload.name in d.load.rates)
        margin = 1.0 - predicted_s / limit_s
        checks.append(SloCheck(metric=metric, limit_s=limit_s, predicted_s=predicted_s, margin=margin))
    return tuple(checks)
