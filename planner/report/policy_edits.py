"""What a change does to policies, as rows of text: one for each policy added or removed and each part of one that changed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from planner.policy.edits import PolicyChange, PolicyEdit
from planner.policy.placed import PlacedPolicy
from planner.policy.selectors import in_words
from planner.report import figures
from planner.report.content import Table, texts
from planner.report.sections.policies import written
from planner.spec import PolicySpec
from planner.spec.policies import ShareSpec
from planner.spec.selector import Selector

NOTHING = "-"
EVERY_WORKLOAD = "all"


class EditRow(NamedTuple):
    """One part of an edit in words; `where` is its place after the change, or before where it was removed."""

    policy: str
    edit: str
    before: str
    after: str
    effect: str
    where: str


def edits_table(edits: Sequence[PolicyEdit]) -> Table | None:
    """Return edits of policies as a table, None without any."""
    columns = texts("Policy", "Edit", "Before", "After", "Effect", "Where")
    rows = tuple(row for edit in edits for row in edit_rows(edit))
    return Table("Edits of policies", columns, tuple(map(tuple, rows))) if rows else None


def edit_rows(edit: PolicyEdit) -> Iterator[EditRow]:
    """Yield what an edit does, the rows of a changed policy by part."""
    place = edit.new or edit.old
    assert place is not None
    label, where = figures.visible(place.policy.label), _where(place)
    if edit.old is None or edit.new is None:
        old, new = (NOTHING if side is None else _whole(side.policy) for side in (edit.old, edit.new))
        yield EditRow(label, edit.kind, old, new, _effect(edit), where)
        return
    for change in edit.changes:
        old, new = (_part(change, side.policy) for side in (edit.old, edit.new))
        yield EditRow(label, change.of, old, new, _effect(change), where)


def limit_in_words(policy: PolicySpec) -> str:
    """Return what a policy allows, such as `$400,000`, `gpus: T4` or `each provider: 60 %`."""
    value = policy.value
    if isinstance(value, ShareSpec):
        part = f"each {value.each}" if value.match is None else in_words(value.match)
        return figures.visible(f"{part}: {figures.share(value.share)}")
    return figures.visible(in_words(value)) if isinstance(value, Selector) else written(policy.rule, value)


def _part(change: PolicyChange, policy: PolicySpec) -> str:
    waive = policy.waive
    return {
        "limit": limit_in_words(policy),
        "workloads": figures.visible(", ".join(policy.workloads)) or EVERY_WORKLOAD,
        "level": policy.level,
        "waiver": NOTHING if waive is None else figures.visible(f"until {waive.until} by {waive.by}: {waive.reason}"),
        "id": figures.visible(policy.label),
    }[change.of]


def _whole(policy: PolicySpec) -> str:
    return f"{policy.rule} {limit_in_words(policy)}"


def _effect(edit: PolicyEdit | PolicyChange) -> str:
    effects = (("loosens", edit.loosens), ("tightens", edit.tightens))
    return " and ".join(word for word, applies in effects if applies) or "neither"


def _where(place: PlacedPolicy) -> str:
    return figures.visible(place.path if place.file is None else f"{place.file} {place.path}")
