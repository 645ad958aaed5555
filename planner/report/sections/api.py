"""Workloads against the API that their spec names: money at the planned load, and where both cost the same."""

from __future__ import annotations

from planner.plan.schema import ApiComparison, Plan, WorkloadPlan
from planner.report import figures
from planner.report.content import Block, Table, numbers, texts

_MONEY = (
    "Used: cost of the nodes that the workload lies on, by its share of their time. Paid: with its share of nodes that "
    "idle; over all workloads, everything that is paid."
)
_BREAK_EVEN = (
    "Break-even: mean rate at which the API costs what is paid for the workload on this fleet as planned. Of capacity: "
    "that rate as a share of the most that this fleet carries of it, the day keeping its shape; above 100 % the API is "
    "cheaper at any load that this fleet carries. Nodes are whole: a smaller load may do with a smaller fleet, which only "
    "a plan for it can tell."
)
_AT_PEAK = (
    "At peak: the spec gives no mean rate, and an API is paid for what is used: with a mean, as in `rate: {peak: 12 req/s, "
    "mean: 5 req/s}`, it takes less."
)
_NOT_COMPARED = (
    "Not compared: quality of the answers, latency, rate limits and availability of the API, and what its cache finds."
)
_COMMITTED = "Whatever is committed is paid until it ends, with the API too."


def api(plan: Plan) -> Block | None:
    """Return every workload that is compared with an API."""
    rows = [_row(workload, workload.api) for workload in plan.workloads if workload.api is not None]
    if not rows:
        return None
    columns = texts("Workload", "API") + numbers("req/s") + texts("At")
    columns += numbers("API $/month", "Used $/month", "Paid $/month")
    columns += texts("Cheaper") + numbers("Break-even req/s", "Of capacity")
    notes = [_MONEY, _BREAK_EVEN, _NOT_COMPARED]
    if any(w.api is not None and w.at == "peak" for w in plan.workloads):
        notes.insert(0, _AT_PEAK)
    if plan.commitments:
        notes.append(_COMMITTED)
    return Table("Against an API", columns, tuple(rows), tuple(notes))


def _row(workload: WorkloadPlan, compared: ApiComparison) -> tuple[str, ...]:
    return (
        figures.visible(workload.name),
        figures.visible(compared.name or "-"),
        figures.number(compared.requests_per_s),
        workload.at,
        figures.amount(compared.usd_per_month),
        figures.amount(workload.usd_per_month),
        figures.amount(compared.self_hosted_usd_per_month),
        "this fleet" if compared.cheaper == "self" else "the API",
        figures.number(compared.break_even_requests_per_s),
        figures.share(compared.break_even_utilization),
    )
