"""The scenarios that nodes were bought for: where they hold, where those for the spec alone would not, and what that costs."""

from __future__ import annotations

import json
from collections.abc import Iterator

from planner.plan.schema import Plan, RobustPlan, ScenarioPlan
from planner.report import figures
from planner.report.content import Block, Table, texts

_MOST_ROWS = 30
_MOST_VALUES = 3
_HOLDS, _FAILS = "holds", "FAILS"
_NOTE = (
    "Nodes are the same in all scenarios; replicas and routing are planned for each. Holds: a fleet on these nodes was found and audited; "
    "fails: proven that there is none."
)
_DECIDES = "Decides: the nodes were chosen with it in the program; the others were tried on them."


def robust_lines(robust: RobustPlan) -> Iterator[str]:
    """Yield what holding in scenarios comes to, for the head of a report."""
    count = len(robust.scenarios)
    asked = "all" if robust.hold_in == 1.0 else f"at least {figures.share(robust.hold_in)}"
    yield f"These nodes hold in {robust.held:,} of {figures.count(count, 'scenario')} ({asked} asked for), and for the spec as it is."
    nominal = figures.usd(robust.nominal_usd_per_month)
    yield (
        f"The cheapest nodes for the spec alone cost {nominal} per month and hold in {robust.nominal_held:,}: "
        f"holding in the others costs {figures.usd(robust.extra_usd_per_month)} per month more."
    )


def robustness(plan: Plan) -> Block | None:
    """Return the scenarios of a robust plan: those that decide or fail somewhere first, the rest counted."""
    if plan.robust is None:
        return None
    rows = sorted(plan.robust.scenarios, key=lambda s: (not s.decides, s.holds, s.nominal_holds))
    shown, left = rows[:_MOST_ROWS], len(rows) - _MOST_ROWS
    notes = [_NOTE, _DECIDES] + (
        [f"{left:,} more hold on these nodes." if all(s.holds for s in rows[_MOST_ROWS:]) else f"{left:,} more."]
        if left > 0
        else []
    )
    return Table(
        "Scenarios",
        texts("Scenario", "This plan", "Spec alone", "Decides", "Otherwise than in the spec"),
        tuple(map(_row, shown)),
        tuple(notes),
    )


def _row(scenario: ScenarioPlan) -> tuple[str, ...]:
    values = [f"{figures.visible(key)} {figures.visible(_shown(text))}" for key, text in scenario.values.items()]
    return (
        figures.visible(scenario.name),
        _HOLDS if scenario.holds else _FAILS,
        _HOLDS if scenario.nominal_holds else _FAILS,
        "yes" if scenario.decides else "-",
        figures.listed(values, _MOST_VALUES),
    )


def _shown(text: str) -> str:
    """Return a value without the quotes that YAML does not need."""
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return value if isinstance(value, str) else text
