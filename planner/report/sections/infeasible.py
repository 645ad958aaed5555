"""Why no fleet meets a spec, at the lines of the spec that are in the way, and the changes that were tried and work."""

from __future__ import annotations

from planner.diagnostics import Diagnostic, Span
from planner.plan.schema import Conflict, InfeasibleReport, Relaxation
from planner.report import figures
from planner.report.content import Block, Excerpt, Lines, Origin, Table, keys, numbers, texts

CODE = "solve/infeasible"


def infeasible(report: InfeasibleReport, origin: Origin | None) -> list[Block]:
    """Return the finding with its reasons, and the changes that make the spec feasible.

    Without the spec at hand, the keys that conflict are listed instead of marked.
    """
    blocks: list[Block] = [Excerpt(finding(report, origin), origin.sources if origin else {})]
    if report.conflict and origin is None:
        blocks.append(_keys(report.conflict))
    if report.relaxations:
        blocks.append(_ways(report.relaxations))
    return blocks


def finding(report: InfeasibleReport, origin: Origin | None) -> Diagnostic:
    """Return the report as a diagnostic: the keys that conflict marked in the spec, the reasons below."""
    places = _places(report, origin)
    first, *others = places or [(None, "")]
    return Diagnostic(
        CODE,
        "no fleet meets this spec",
        first[0],
        label=first[1],
        help=tuple(figures.visible(line) for line in report.reason.splitlines()),
        related=tuple((span, label) for span, label in others if span is not None),
    )


def _places(report: InfeasibleReport, origin: Origin | None) -> list[tuple[Span | None, str]]:
    """Return the places of the keys that conflict, each place once, with what stands there."""
    labels: dict[Span, list[str]] = {}
    for conflict in report.conflict if origin is not None else ():
        span = origin.locate(conflict.key) if origin is not None else None
        if span is not None:
            labels.setdefault(span, []).append(figures.visible(conflict.key))
    return [(span, f"in the way: {figures.listed(dict.fromkeys(keys), 3)}") for span, keys in labels.items()]


def _keys(conflict: tuple[Conflict, ...]) -> Block:
    return Lines("Keys in the way", tuple(f"{figures.visible(c.key)}: {figures.visible(c.value)}" for c in conflict))


def _ways(relaxations: tuple[Relaxation, ...]) -> Block:
    """Return the changes, one a row; those that only help together share the number of their way."""
    columns = numbers("Way") + keys("Key") + texts("From", "To") + numbers("Fleet then costs, $/h")
    several = len({r.way for r in relaxations}) < len(relaxations)
    notes = ("Changes of one way are made together.",) if several else ()
    return Table("What would make it feasible", columns, tuple(_row(r) for r in relaxations), notes)


def _row(relaxation: Relaxation) -> tuple[str, ...]:
    cost = relaxation.usd_per_hour
    return (
        f"{relaxation.way}",
        figures.visible(relaxation.key),
        figures.visible(relaxation.from_),
        figures.visible(relaxation.to),
        figures.amount(cost) if cost is not None else "-",
    )
