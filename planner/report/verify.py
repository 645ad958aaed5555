"""Whether a fleet that runs still satisfies its spec, as parts of a report."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

from planner.report import figures
from planner.report.content import Block, Lines, Table, numbers, texts
from planner.report.explain import signed
from planner.report.sections.infeasible import infeasible
from planner.report.sections.policies import policy_table
from planner.report.sections.preferred import DIGEST_SHOWN, change_row
from planner.report.sections.workloads import metric_name
from planner.review.verification import BrokenLimit, Repair, Verification, VerifiedLimit, VerifiedWorkload

_STALE = {
    "spec": "the spec was changed since",
    "catalog": "the catalog was changed since",
    "calibration": "the calibration of speed was changed since",
}
VISIBLE_USD = 0.5
Item = TypeVar("Item")
_ORDER = ("supply", "limit", "settings", "demand", "load", "latency", "loss", "routing")
_AS_SHARED = (
    "Now: with today's demand in the shares of it that each pool has in the plan. -: queues would grow without end, or "
    "nothing is known of it."
)


def blocks(found: Verification) -> list[Block]:
    """Return the verdict first, then what is broken, latency then and now, policies, and the repair."""
    parts: list[Block | None] = [
        _verdict(found),
        _broken(found),
        _latency(found),
        policy_table("Policies", found.policies),
        _repair(found),
    ]
    if found.repair is not None and found.repair.infeasible is not None:
        parts += infeasible(found.repair.infeasible, None)
    return [part for part in parts if part is not None]


def verdict(found: Verification) -> str:
    """Return the answer as one sentence."""
    fleet, spec = figures.visible(found.fleet), figures.visible(found.spec)
    if found.holds:
        return f"{fleet}: the fleet of {figures.visible(found.subject)} satisfies {spec}"
    broken = figures.count(len(found.broken), "limit")
    return f"{fleet}: the fleet of {figures.visible(found.subject)} no longer satisfies {spec}: {broken} broken"


def _verdict(found: Verification) -> Block:
    return Lines(verdict(found), tuple(_facts(found)))


def _facts(found: Verification) -> Iterator[str]:
    if found.usd_per_month is not None:
        then = found.planned_usd_per_month
        change = "" if then is None else f" ({signed(found.usd_per_month - then)} against the plan)"
        if then is not None and abs(found.usd_per_month - then) < VISIBLE_USD:
            change = ""
        yield f"It costs {figures.usd(found.usd_per_month)} per month at the prices of {found.as_of}{change}."
    if found.rerouted:
        models = ", ".join(map(figures.visible, found.rerouted))
        yield f"Traffic must be shared out otherwise between the pools of {models} for it to hold."
    for each in found.stale:
        if each.what in _STALE:
            before, after = (figures.visible(digest[:DIGEST_SHOWN]) for digest in (each.then, each.now))
            yield f"Stale: {_STALE[each.what]} ({before}, now {after})."
        elif each.what == "certificate":
            yield f"Stale: its certificate ({figures.visible(each.then)}) is not about what it is held against now."
        elif each.what == "planner":
            yield f"Stale: planned by planner {figures.visible(each.then)}, verified by {figures.visible(each.now)}."
        else:
            yield f"Planned as of {figures.visible(each.then)}, verified as of {figures.visible(each.now)}."


def _broken(found: Verification) -> Block | None:
    if not found.broken:
        return None
    columns = texts("Broken", "Of") + numbers("Is", "Limit") + texts("In the spec", "Why")
    broken = sorted(found.broken, key=lambda b: _ORDER.index(b.check))
    return Table("What no longer holds", columns, tuple(map(_broken_row, broken)))


def _broken_row(broken: BrokenLimit) -> tuple[str, ...]:
    place = "" if broken.place is None else f"{broken.place.path}:{broken.place.line}"
    return (
        broken.check if broken.metric is None or broken.check != "latency" else metric_name(broken.metric),
        figures.visible(broken.subject if broken.period is None else f"{broken.subject} in {broken.period}"),
        _quantity(broken, broken.actual),
        _quantity(broken, broken.limit),
        figures.visible(place or broken.key),
        figures.visible(broken.reason),
    )


def _quantity(broken: BrokenLimit, value: float | None) -> str:
    if value is None:
        return "-"
    if broken.check == "latency":
        return figures.seconds(value)
    return figures.share(value) if broken.metric in ("share", "load") else figures.number(value)


def _latency(found: Verification) -> Block | None:
    rows = [_limit_row(w, limit) for w in found.workloads for limit in w.slo]
    if not rows:
        return None
    columns = texts("Workload") + numbers("Demand") + texts("Limit on") + numbers("Planned", "Limit", "Now", "Limit")
    columns += numbers("Margin planned", "Margin now")
    return Table("Latency, in the plan and now", columns, tuple(rows), () if found.holds else (_AS_SHARED,))


def _limit_row(workload: VerifiedWorkload, limit: VerifiedLimit) -> tuple[str, ...]:
    return (
        figures.visible(workload.name),
        then_now(workload.planned_requests_per_s, workload.demand_requests_per_s, figures.number),
        metric_name(figures.visible(limit.metric)),
        _seconds(limit.planned_s),
        _seconds(limit.planned_limit_s),
        _seconds(limit.predicted_s),
        _seconds(limit.limit_s),
        _share(limit.planned_margin),
        _share(limit.margin),
    )


def then_now(then: Item | None, now: Item | None, text: Callable[[Item], str]) -> str:
    """Return what may have changed as text: `12`, `12 -> 14`, `- -> 3`."""
    before, after = ("-" if value is None else text(value) for value in (then, now))
    return before if before == after else f"{before} -> {after}"


def _seconds(value: float | None) -> str:
    return "-" if value is None else figures.seconds(value)


def _share(value: float | None) -> str:
    return "-" if value is None else figures.share(value)


def _repair(found: Verification) -> Block | None:
    repair = found.repair
    if repair is None:
        return None
    title, notes = "Repair with the fewest changes", tuple(_repair_notes(repair))
    if not repair.changes:
        return Lines(title, notes)
    columns = texts("What", "Of") + numbers("Before", "Then")
    return Table(title, columns, tuple(change_row(c) for c in repair.changes), notes)


def _repair_notes(repair: Repair) -> Iterator[str]:
    if repair.usd_per_month is None:
        yield "No fleet that satisfies the spec was found."
        return
    delta = repair.usd_per_month_delta
    against = "" if delta is None else f", {signed(delta)} against what runs"
    unproven = "" if repair.status == "solved" else " It is not proven."
    yield f"The repaired fleet costs {figures.usd(repair.usd_per_month)} per month{against}.{unproven}"
    yield "Found to 2 %, or the gap of the spec; `planner solve SPEC --prefer PLAN` plans it to that gap."
