"""What became of the fleet that was to be kept: what the best one would save, or what had to change and why."""

from __future__ import annotations

from planner.plan.schema import Plan, Preferred, PreferredChange
from planner.report import figures
from planner.report.content import Block, Lines, Table, numbers, texts

DIGEST_SHOWN = 19  # `sha256:` and twelve digits name a plan well enough
_TITLES = {
    "kept": "Preferred fleet: kept",
    "changed": "Preferred fleet: changed as little as possible",
    "not_possible": "Preferred fleet: not kept",
}
_WHAT = {"replicas": "replicas", "nodes": "nodes", "max_num_seqs": "batch cap"}


def preferred(plan: Plan) -> Block | None:
    """Return the outcome, the changes one a row, and the reasons."""
    found = plan.preferred
    if found is None:
        return None
    name = "deployed" if found.plan is None else figures.visible(found.plan[:DIGEST_SHOWN])
    title = f"{_TITLES[found.outcome]} ({name})"
    notes = tuple(_notes(found))
    if not found.changes:
        return Lines(title, notes)
    columns = texts("What", "Of") + numbers("Before", "Now")
    return Table(title, columns, tuple(change_row(change) for change in found.changes), notes)


def change_row(change: PreferredChange) -> tuple[str, ...]:
    """Return a change as a row: what, of which, before, now."""
    return (_WHAT[change.kind], figures.visible(change.name), f"{change.from_:,}", f"{change.to:,}")


def _notes(found: Preferred) -> list[str]:
    reasons = [f"{figures.visible(reason)}." for reason in found.reasons]
    saving, share = found.would_save_usd_per_hour, found.would_save
    if saving is None or share is None or found.outcome == "not_possible":
        return reasons
    if saving <= 0.0:
        return [*reasons, "No cheaper fleet was found."]
    limit = f"up to {figures.share(found.stay_within)} more is allowed"
    return [
        *reasons,
        f"The best fleet would save {figures.usd(saving)} per hour ({figures.share(share)} of its own cost); {limit}.",
    ]
