"""What an API would cost in place of the fleet, and from which rate on the fleet is cheaper."""

from __future__ import annotations

from collections.abc import Mapping

from planner.candidates.types import ResolvedWorkload
from planner.plan.io import with_digest
from planner.plan.schema import ApiComparison, Plan, PlanAssumption, WorkloadPlan
from planner.plan.workloads import SECONDS_PER_HOUR, TOKENS_PER_MILLION
from planner.spec.api import ApiSpec


def with_apis(plan: Plan, workloads: Mapping[str, ResolvedWorkload]) -> Plan:
    """Return a plan in which each workload whose spec has prices of an API is compared with it."""
    prices = {name: w.spec.compare_api for name, w in workloads.items() if w.spec.compare_api is not None}
    if plan.objective is None or not prices:
        return plan
    paid = paid_usd_per_month(plan.workloads, plan.objective.usd_per_month)
    hours = sum(p.hours_per_month for p in plan.periods)
    compared = tuple(
        w.model_copy(update={"api": compare(prices[w.name], workloads[w.name], w, paid[w.name], hours)})
        if w.name in prices
        else w
        for w in plan.workloads
    )
    assumed = tuple(
        PlanAssumption(key=f"workloads.{name}.compare_api.cached_input", value="the price of input", source="default")
        for name, price in prices.items()
        if price.cached_input_usd_per_mtok is None and workloads[name].spec.traffic.cached_input_share() > 0.0
    )
    return with_digest(plan.model_copy(update={"workloads": compared, "assumptions": (*plan.assumptions, *assumed)}))


def paid_usd_per_month(workloads: tuple[WorkloadPlan, ...], total: float) -> dict[str, float]:
    """Share all that is paid, idle nodes included, among workloads by what the nodes they lie on cost; by name."""
    used = sum(w.usd_per_month for w in workloads)
    if used <= 0.0:
        return {w.name: total / len(workloads) for w in workloads}
    return {w.name: total * (w.usd_per_month / used) for w in workloads}


def compare(
    prices: ApiSpec, workload: ResolvedWorkload, planned: WorkloadPlan, paid: float, hours_per_month: float
) -> ApiComparison:
    """Compare a workload with an API at the rate that its money per token is computed at.

    `paid` is what the fleet pays for it in USD per month. It is held fixed: the break-even rate is the one at which the
    API costs as much, R = paid / (3600 h c), with h hours per month and c USD per request. Its share of what the fleet
    carries is against the mean rate at which demand, grown alike in all hours, reaches the capacity.
    """
    cached = workload.spec.traffic.cached_input_share()
    usd_per_request = usd_per_request_of(prices, workload.mean_input_tokens, cached, workload.mean_output_tokens)
    mean = workload.mean_requests_per_s
    rate = workload.peak_requests_per_s if mean is None else mean
    seconds = SECONDS_PER_HOUR * hours_per_month
    usd_per_month = usd_per_request * rate * seconds
    break_even = paid / seconds / usd_per_request
    most = rate * planned.capacity_requests_per_s / planned.demand_requests_per_s
    return ApiComparison(
        name=prices.name,
        cached_input_share=cached,
        usd_per_request=usd_per_request,
        requests_per_s=rate,
        usd_per_month=usd_per_month,
        self_hosted_usd_per_month=paid,
        cheaper="self" if paid <= usd_per_month else "api",
        break_even_requests_per_s=break_even,
        break_even_utilization=break_even / most,
    )


def usd_per_request_of(prices: ApiSpec, input_tokens: float, cached_share: float, output_tokens: float) -> float:
    """Return what an API takes for a request of these mean lengths, a share of whose prompt it finds cached."""
    cached_price = prices.cached_input_usd_per_mtok
    cached_price = prices.input_usd_per_mtok if cached_price is None else cached_price
    usd_per_mtok_of_input = prices.input_usd_per_mtok * (1.0 - cached_share) + cached_price * cached_share
    return (input_tokens * usd_per_mtok_of_input + output_tokens * prices.output_usd_per_mtok) / TOKENS_PER_MILLION
