"""The steps of a frontier: as a table, as rows, and as a picture."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from html import escape
from typing import Any, Literal

from planner.report import figures
from planner.report.content import Block, Column, Table
from planner.report.rows import as_csv
from planner.report.sweep import nodes_of
from planner.sweep.frontier import Frontier, Step

Picture = Literal["svg", "png", "html"]
INCHES = (7.0, 4.2)
_SHOWN: Mapping[str, Callable[[float], str]] = {
    "s": figures.seconds,
    "GPUs": lambda value: f"{value:,.0f}",
    "W": lambda value: f"{figures.number(value / 1e3)} kW",
    "share": lambda value: f"{figures.number(100.0 * value)} %",
}
_NEXT = {"dearer": "dearer", "no-fleet": "no fleet", "end": "end of the range"}
COLUMNS = ("limit", "usd_per_month", "bound_usd_per_month", "gap", "gpus", "nodes", "dearer_at", "next", "plan")
_EXACTNESS = {"s": "1 %", "GPUs": "one GPU", "W": "1 %", "share": "one point"}
_NOTE = "Each row: the best fleet from this limit on. Tighter: what is proven at the next tighter limit at which costs are told apart."


def blocks(frontier: Frontier) -> list[Block]:
    """Return a row for every step, the tightest limit first."""
    columns = (Column("Limit", True), Column("$/month", True), Column("Gap", True), Column("GPUs", True))
    rows = tuple(_row(frontier, step) for step in frontier.steps)
    title = f"{figures.visible(frontier.fleet)}: {figures.visible(frontier.trade)}"
    found = _NOTE if rows else "No fleet meets the spec at any of these limits."
    planned = f"{figures.count(frontier.planned, 'limit')} of {figures.visible(frontier.key)} planned"
    exactness = (
        f"steps are found to {_EXACTNESS[frontier.unit]}"
        if frontier.complete
        else "there are too many for exact steps: look at a smaller range with --between"
    )
    notes = (found, f"{planned}; {exactness}.")
    return [Table(title, (*columns, Column("Nodes"), Column("Tighter")), rows, notes)]


def csv_text(frontier: Frontier) -> str:
    """Return a line for every step."""
    return as_csv([_flat(step) for step in frontier.steps], COLUMNS)


def picture(frontier: Frontier, kind: Picture) -> bytes:
    """Return the frontier drawn as stairs; the same bytes for the same steps."""
    if kind != "html":
        return _drawn(frontier, kind)
    from planner.report.table import print_blocks

    svg = _drawn(frontier, "svg").decode()
    text = escape(print_blocks(blocks(frontier)))
    title = escape(figures.visible(f"{frontier.fleet}: {frontier.trade}"))
    head = f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title></head>\n'
    return f"{head}<body>\n{svg[svg.index('<svg') :]}<pre>{text}</pre>\n</body></html>\n".encode()


def _row(frontier: Frontier, step: Step) -> tuple[str, ...]:
    shown, row = _SHOWN[frontier.unit], step.row
    at = "" if step.dearer_at is None else f" at {shown(step.dearer_at)}"
    return (
        shown(step.limit),
        figures.amount(row.usd_per_month or 0.0),
        figures.gap(row.gap or 0.0),
        str(row.gpus),
        figures.visible(nodes_of(row)),
        f"{_NEXT[step.next]}{at}",
    )


def _flat(step: Step) -> Mapping[str, Any]:
    known = {**step.row.model_dump(), **step.model_dump(), "nodes": nodes_of(step.row)}
    return {column: known[column] for column in COLUMNS}


def _drawn(frontier: Frontier, kind: Literal["svg", "png"]) -> bytes:
    import warnings

    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    file = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": "planner", "text.parse_math": False, "svg.fonttype": "none"}):
        figure = Figure(figsize=INCHES, layout="constrained")
        (FigureCanvasSVG if kind == "svg" else FigureCanvasAgg)(figure)
        axes = figure.add_subplot()
        limits = [step.limit for step in frontier.steps]
        costs = [step.row.usd_per_month or 0.0 for step in frontier.steps]
        stairs = axes.step([*limits, frontier.loosest], [*costs, *(costs or [0.0])[-1:]], where="post")
        axes.plot(limits, costs, "o", color=stairs[0].get_color())
        axes.set_xlabel(f"{figures.visible(frontier.key)} in {frontier.unit}")
        axes.set_ylabel("USD per month")
        axes.set_ylim(bottom=0.0)
        axes.set_title(figures.visible(f"{frontier.fleet}: {frontier.trade}"))
        with warnings.catch_warnings(action="ignore"):  # a name may have characters that no font here has
            figure.savefig(file, format=kind, metadata={"Date": None} if kind == "svg" else {"Software": None})
    return file.getvalue()
