"""What was considered for every workload, as a table."""

from __future__ import annotations

from collections.abc import Sequence

from planner.report import figures
from planner.report.content import Block, Table, numbers, texts
from planner.study import Considered

_COSTS = (
    "At full use: what the planned demand, headroom included, would take of such replicas at the cheapest price per GPU, were replicas "
    "and nodes divisible, none spare, and none shared. Whole replicas, whole nodes and sharing decide what is best; the proof covers "
    "them all."
)
_NEAREST = "Ruled out: the shape of that GPU type which came nearest. `planner explain PLAN --why-not SHAPE` plans with one that is possible."


def considered(rows: Sequence[Considered]) -> Block:
    """Return the best shape on every GPU type for every workload, and why the fleet does not use it."""
    columns = texts("Workload", "Model", "GPU", "Shape", "Verdict") + numbers("At full use, $/h") + texts("Why")
    return Table(
        "Shapes considered",
        columns,
        tuple(
            (
                figures.visible(row.workload),
                figures.visible(row.model),
                figures.visible(row.gpu),
                figures.visible(row.shape),
                row.verdict,
                figures.amount(row.usd_per_hour) if row.usd_per_hour is not None else "-",
                figures.visible(row.why),
            )
            for row in rows
        ),
        (_COSTS, _NEAREST),
    )
