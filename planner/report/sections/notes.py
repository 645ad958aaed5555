"""What stands under a plan: what was ruled out, what was assumed, what is not included."""

from __future__ import annotations

from collections.abc import Iterable

from planner.plan.schema import Plan, PlanAssumption
from planner.report import figures
from planner.report.content import Block, Lines, Table, keys, texts

MOST_VALUES = 2


def rejections(plan: Plan) -> Block | None:
    """Return how many shapes each rule excluded."""
    if not plan.rejections.total:
        return None
    by_rule = sorted(plan.rejections.by_rule.items(), key=lambda item: (-item[1], item[0]))
    parts = (f"{figures.visible(rule)} {count:,}" for rule, count in by_rule)
    return Lines(f"Ruled out: {figures.count(plan.rejections.total, 'shape')}", (f"By rule: {', '.join(parts)}.",))


def assumptions(plan: Plan) -> Block | None:
    """Return what the answer rests on, one line per kind; the plan in JSON has each with its source."""
    if not plan.assumptions:
        return None
    names = sorted({w.name for w in plan.workloads} | {w.model for w in plan.workloads}, key=len, reverse=True)
    kinds: dict[str, dict[str, list[str]]] = {}
    for assumption in plan.assumptions:
        kind, name = _kind(assumption, names)
        kinds.setdefault(kind, {}).setdefault(figures.visible(assumption.value), []).append(name)
    lines = tuple(f"{kind}: {_values(values)}" for kind, values in kinds.items())
    return Lines("Assumptions", (*lines, f"As of {figures.visible(plan.as_of)}. Each with its source: --format json."))


def every_assumption(plan: Plan) -> Block | None:
    """Return each assumption with its source."""
    if not plan.assumptions:
        return None
    rows = tuple(tuple(map(figures.visible, (a.key, a.value, a.source))) for a in plan.assumptions)
    note = f"As of {figures.visible(plan.as_of)}."
    return Table("Each with its source", keys("Of") + texts("Value", "Source"), rows, (note,))


def _kind(assumption: PlanAssumption, names: Iterable[str]) -> tuple[str, str]:
    """Split a key into its kind and the name in it: `workloads.chat.traffic.hourly` is traffic.hourly of chat."""
    section, _, rest = figures.visible(assumption.key).partition(".")
    if section not in ("workloads", "models"):
        return (section, rest) if section == "prices" else (f"{section}.{rest}".rstrip("."), "")
    name = next((n for n in names if rest.startswith(f"{n}.")), rest.partition(".")[0])
    return rest[len(name) + 1 :] or section, name


def _values(values: dict[str, list[str]]) -> str:
    shown = list(values.items())[:MOST_VALUES]
    parts = [f"{value} ({figures.listed(own)})" if any(own) else value for value, own in shown]
    rest = len(values) - len(shown)
    return "; ".join(parts) + (f"; and {rest} more" if rest else "") + "."


def excluded(plan: Plan) -> Block | None:
    """Return what the money does not include."""
    if not plan.excluded or plan.objective is None:
        return None
    return Lines("", (f"Not included: {', '.join(map(figures.visible, plan.excluded))}.",))
