"""The scenarios of a sweep: as tables for people, as rows for spreadsheets and data frames."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from planner.report import figures
from planner.report.content import Block, Column, Lines, Table
from planner.report.rows import as_csv, safe_cell
from planner.sweep.answer import Sweep
from planner.sweep.row import Row, RowStatus

QUANTILES = (0.1, 0.5, 0.9)
MOST_REASONS = 20
_OUTCOMES: Mapping[RowStatus, str] = {
    "solved": "planned",
    "unproven": "planned without reaching the gap",
    "infeasible": "without any fleet",
    "invalid": "that are no spec",
    "failed": "that failed",
}


def blocks(sweep: Sweep) -> list[Block]:
    """Return a row for every scenario, and below it what they come to."""
    titles = [Column("#", is_number=True), *(Column(figures.visible(key)) for key in sweep.keys)]
    found = [Column("$/month", is_number=True), Column("Gap", is_number=True), Column("GPUs", is_number=True)]
    grows = any(row.usd_over_horizon is not None for row in sweep.scenarios)
    found[1:1] = [Column("$ over the horizon", is_number=True)] if grows else []
    columns = (*titles, *found, Column("Nodes"), Column("Least margin"))
    rows = tuple(tuple(_cells(row, sweep.keys, grows)) for row in sweep.scenarios)
    title = f"{figures.visible(sweep.fleet)}: {figures.count(len(rows), 'scenario')}"
    return [Table(title, columns, rows, tuple(_reasons(sweep.scenarios))), Lines("Summary", tuple(_summary(sweep)))]


def csv_text(sweep: Sweep) -> str:
    """Return a line for every scenario; text is safe for spreadsheets."""
    return as_csv([{k: safe_cell(v) if isinstance(v, str) else v for k, v in row.items()} for row in flat(sweep)])


def parquet(sweep: Sweep) -> bytes:
    """Return the rows as a Parquet file. Needs pyarrow."""
    import pyarrow
    import pyarrow.parquet

    rows = flat(sweep)
    kinds = {int: pyarrow.int64(), float: pyarrow.float64(), str: pyarrow.string()}
    schema = pyarrow.schema([(name, kinds[kind]) for name, kind in _columns(sweep).items()])
    file = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows, schema), file)
    return file.getvalue()


def flat(sweep: Sweep) -> list[dict[str, Any]]:
    """Return a row of plain values for every scenario, all with the same columns."""
    return [{name: _flat(row).get(name) for name in _columns(sweep)} for row in sweep.scenarios]


def _columns(sweep: Sweep) -> dict[str, type]:
    workloads = sorted({name for row in sweep.scenarios for name in row.margins})
    return {
        "scenario": int,
        **dict.fromkeys(sweep.keys, str),
        "status": str,
        "usd_per_month": float,
        "bound_usd_per_month": float,
        "usd_over_horizon": float,
        "gap": float,
        "gpus": int,
        "nodes": str,
        **{f"margin.{name}": float for name in workloads},
        "denied": str,
        "plan": str,
        "reason": str,
    }


def _flat(row: Row) -> Mapping[str, Any]:
    data = row.model_dump(exclude={"values", "nodes", "margins", "denied"})
    margins = {f"margin.{name}": margin for name, margin in row.margins.items()}
    return {**data, **row.values, **margins, "nodes": nodes_of(row) or None, "denied": ", ".join(row.denied) or None}


def nodes_of(row: Row) -> str:
    """Return the nodes of a scenario on one line."""
    return ", ".join(f"{count} x {name}" for name, count in row.nodes.items())


def _cells(row: Row, keys: Sequence[str], grows: bool) -> Iterator[str]:
    yield str(row.scenario)
    yield from (figures.visible(row.values[key]) for key in keys)
    if row.usd_per_month is None or row.gap is None:
        yield from (*(("-",) if grows else ()), "-", "-", "-", row.status, "-")
        return
    yield figures.amount(row.usd_per_month)
    if grows:
        yield "-" if row.usd_over_horizon is None else figures.amount(row.usd_over_horizon)
    yield figures.gap(row.gap)
    yield str(row.gpus)
    yield figures.visible(nodes_of(row))
    least = min(row.margins.items(), key=lambda item: (item[1], item[0]), default=None)
    yield "-" if least is None else f"{figures.share(least[1])} {figures.visible(least[0])}"


def _reasons(rows: Sequence[Row]) -> Iterator[str]:
    """Yield why scenarios have no fleet, each reason with the scenarios that it holds for."""
    numbers: dict[str, list[int]] = {}
    for row in rows:
        if row.reason is not None:
            numbers.setdefault(row.reason, []).append(row.scenario)
    for reason, where in list(numbers.items())[:MOST_REASONS]:
        listed = ", ".join(map(str, where[:MOST_REASONS])) + (", …" if len(where) > MOST_REASONS else "")
        yield f"{listed}: {figures.visible(' '.join(reason.split()))}"


def _summary(sweep: Sweep) -> Iterator[str]:
    counts = Counter(row.status for row in sweep.scenarios)
    yield ", ".join(f"{counts[status]} {words}" for status, words in _OUTCOMES.items() if counts[status]) + "."
    costs = sorted((row.usd_per_month, row.scenario) for row in sweep.scenarios if row.usd_per_month is not None)
    if not costs:
        return
    (least, first), (most, last) = costs[0], costs[-1]
    first_step = " of the first step" if any(row.usd_over_horizon is not None for row in sweep.scenarios) else ""
    yield f"Cost per month{first_step}: {figures.usd(least)} (scenario {first}) to {figures.usd(most)} (scenario {last})."
    if sweep.mode == "sample":
        shown = (f"{figures.share(q)}: {figures.usd(_quantile([cost for cost, _ in costs], q))}" for q in QUANTILES)
        yield f"Share of the scenarios with a fleet that cost at most: {', '.join(shown)}."
    denied = sum(1 for row in sweep.scenarios if row.denied)
    if denied:
        yield f"Policies deny {figures.count(denied, 'scenario')}."


def _quantile(values: Sequence[float], share: float) -> float:
    """Return the least of some sorted values that so large a share of them does not exceed."""
    return values[max(0, -int(-share * len(values) // 1) - 1)]
