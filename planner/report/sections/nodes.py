"""The nodes to buy, and where their prices come from."""

from __future__ import annotations

from planner.plan.schema import NodePlan, Plan
from planner.report import figures
from planner.report.content import Block, Table, numbers, texts

_NOTE = "Nodes: the most in any period. $/h: the mean over all hours."


def nodes(plan: Plan) -> Block | None:
    """Return the nodes that are paid for, one offer a row."""
    if not plan.nodes:
        return None
    columns = texts("Offer", "Provider", "Region", "Instance", "GPUs", "Term") + numbers("Nodes", "$/node/h", "$/h")
    notes = () if plan.demand_by_period is None else (_NOTE,)
    return Table("Nodes to buy", columns + texts("Price"), tuple(_node(n) for n in plan.nodes), notes)


def _node(node: NodePlan) -> tuple[str, ...]:
    return (
        figures.visible(_entry(node)),
        figures.visible(node.provider),
        figures.visible(node.region),
        figures.visible(node.instance),
        f"{node.gpus_per_node} x {figures.visible(node.gpu)}",
        figures.visible(node.term),
        f"{node.nodes:,}",
        figures.amount(node.usd_per_node_hour),
        figures.amount(node.usd_per_hour),
        figures.visible(f"{node.price.basis} {node.price.date}".strip()),
    )


def _entry(node: NodePlan) -> str:
    """Return the user's name of an offer, without the region, instance and term that have columns of their own."""
    listed = f"/{node.region}/{node.instance}/{node.term}"
    return node.offer.removesuffix(listed).removesuffix(f"/{node.term}")
