"""The nodes to buy as a table for spreadsheets and procurement."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from planner.export.documents import Document
from planner.export.placed import PlacedPool
from planner.export.target import Target, Written
from planner.plan.schema import NodePlan, Plan
from planner.report.figures import visible

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
FORMULA_STARTS = (*"=+-@\t\r\n", *"\uff1d\uff0b\uff0d\uff20")
"""Spreadsheets take cells that start so for formulas, some also where the signs are the full-width ones."""


def _write(plan: Plan, placed: Sequence[PlacedPool]) -> Written:  # noqa: ARG001
    stream = io.StringIO()
    table = csv.writer(stream, lineterminator="\n", quoting=csv.QUOTE_ALL)
    table.writerow(COLUMNS)
    hours = sum(period.hours_per_month for period in plan.periods)
    for node in plan.nodes:
        table.writerow([_safe(cell) for cell in _row(plan, node, hours)])
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


def _safe(cell: str) -> str:
    """Return a cell on one line that no spreadsheet runs as a formula."""
    return visible(f"'{cell}" if cell.startswith(FORMULA_STARTS) else cell)


TARGET = Target(
    name="csv",
    sentence="the nodes to buy, with terms, prices and their sources",
    ending=".csv",
    write=_write,
    has_comment=False,
)
