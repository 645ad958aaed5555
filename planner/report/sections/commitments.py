"""Nodes that are paid for whether used or not, against renting the same GPUs on demand."""

from __future__ import annotations

from planner.plan.schema import Commitment, Plan
from planner.report import figures
from planner.report.content import Block, Table, numbers, texts

_NOTES = (
    "In use: GPUs of these nodes that replicas take. Break-even: share of the GPU hours that must be in use for the nodes to "
    "cost no more than those hours on demand.",
)


def commitments(plan: Plan) -> Block | None:
    """Return the nodes that are paid for in any case, one offer a row."""
    if not plan.commitments:
        return None
    columns = texts("Offer", "GPUs", "Until") + numbers("Nodes", "Idle", "In use", "$/month", "Idle $/month")
    columns += numbers("On demand $/GPU/h", "Break-even")
    return Table("Paid whether used or not", columns, tuple(_row(c) for c in plan.commitments), _NOTES)


def _row(commitment: Commitment) -> tuple[str, ...]:
    on_demand, break_even = commitment.on_demand_usd_per_gpu_hour, commitment.break_even_utilization
    return (
        figures.visible(commitment.offer),
        f"{commitment.gpus_per_node} x {figures.visible(commitment.gpu)}",
        figures.visible(commitment.until or "-"),
        f"{commitment.nodes:,}",
        f"{commitment.idle_nodes:,}",
        figures.share(commitment.gpu_utilization),
        figures.amount(commitment.usd_per_month),
        figures.amount(commitment.idle_usd_per_month),
        figures.amount(on_demand) if on_demand is not None else "-",
        figures.share(break_even) if break_even is not None else "-",
    )
