"""The nodes to buy as a table for spreadsheets and procurement."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from planner.export.documents import Document
from planner.export.placed import PlacedPool
from planner.export.target import Target, Written
from planner.plan.schema import NodePlan, Plan
from planner.report.rows import safe_cell

COLUMNS = (
    "offer",
    "provider",
    "region",
    "instance",
    "gpu",
    "gpus_per_node",
    "term",
    "nodes",
    "gpus",
    "price_basis",
    "price_date",
    "price_source",
    "usd_per_node_hour",
    "usd_per_hour",
    "usd_per_month",
    "fleet",
    "plan",
)


def _write(plan: Plan, placed: Sequence[PlacedPool]) -> Written:  # noqa: ARG001
    stream = io.StringIO()
    table = csv.writer(stream, lineterminator="\n", quoting=csv.QUOTE_ALL)
    table.writerow(COLUMNS)
    hours = sum(period.hours_per_month for period in plan.periods)
    for node in plan.nodes:
        table.writerow([safe_cell(cell) for cell in _row(plan, node, hours)])
    return Written((Document("nodes", stream.getvalue()),))


def _row(plan: Plan, node: NodePlan, hours: float) -> list[str]:
    return [
        node.offer,
        node.provider,
        node.region,
        node.instance,
        node.gpu,
        str(node.gpus_per_node),
        node.term,
        str(node.nodes),
        str(node.nodes * node.gpus_per_node),
        node.price.basis,
        node.price.date,
        node.price.source,
        f"{node.usd_per_node_hour:.4f}",
        f"{node.usd_per_hour:.4f}",
        f"{node.usd_per_hour * hours:.2f}",
        plan.fleet,
        plan.digests.plan,
    ]


TARGET = Target(
    name="csv",
    sentence="the nodes to buy, with terms, prices and their sources",
    ending=".csv",
    write=_write,
    has_comment=False,
)
