"""What each cause does: the changes between two specs taken one after the other, each time with the fleet so far preferred."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from planner.catalog import Catalog
from planner.diagnostics import DiagnosticError
from planner.pipeline import Options, Prepared, make_plan, prepare
from planner.plan.schema import Plan
from planner.prefer.earlier import PreferredPlan
from planner.review.compare import ahead_differs, fleet_of
from planner.review.difference import Step
from planner.review.inputs import OtherChange, SpecChange, SpecPair

MOST_STEPS = 8
STEP_GAP = 0.01
"""Proven distance from the best fleet that is enough for a fleet in between, which nobody buys."""
Change = SpecChange | OtherChange


Tell = Callable[[str], None]
"""Told what is planned next, for people who wait."""


def quietly(_text: str) -> None:
    """Tell nobody."""


@dataclass(frozen=True)
class Taken:
    """A step with the changes in it, and the plans before and after it."""

    step: Step
    changes: tuple[Change, ...]
    before: Plan
    after: Plan


def taken_steps(
    old: tuple[SpecPair, Plan],
    new: tuple[Catalog, Plan],
    groups: Sequence[Sequence[Change]],
    options: Options,
    tell: Tell = quietly,
) -> list[Taken]:
    """Return the changes from an old plan to a new one in steps, a group of changes each; the last one ends at the new plan.

    Groups that leave no spec that can be planned, or that none meets, go together with those after them that mend it. Where
    nothing does, the first group from which on there is no fleet is a step of its own.
    """
    specs, plan = old
    found: list[Taken] = []
    done: list[SpecChange] = []
    waiting: list[Change] = []
    lost: Taken | None = None
    for number, group in enumerate(groups, 1):
        done += [c for c in group if isinstance(c, SpecChange)]
        waiting += group
        is_last = number == len(groups)
        if not is_last:
            tell(f"step {number} of {len(groups)}: {', '.join(c.key for c in group)}")
        after = new[1] if is_last else _planned(specs, done, new[0], plan, options)
        if after is None:
            continue
        if after.objective is not None:
            found.append(_taken(len(found) + 1, waiting, plan, after))
            waiting, plan, lost = [], after, None
        elif lost is None:
            lost = _taken(len(found) + 1, waiting, plan, after)
    if lost is None or not waiting:
        return found
    rest = waiting[len(lost.changes) :]
    return [*found, lost, *([_taken(len(found) + 2, rest, lost.after, new[1])] if rest else [])]


def _taken(number: int, changes: Sequence[Change], before: Plan, after: Plan) -> Taken:
    was, now = before.objective, after.objective
    delta = None if was is None or now is None else now.usd_per_month - was.usd_per_month
    outcome = "together" if len(changes) > 1 else "planned"
    if now is None:
        outcome = "no-fleet" if after.status == "infeasible" else "unsolved"
    ahead = None if before.growth is None or after.growth is None else after.growth.usd - before.growth.usd
    step = Step.model_validate(
        {
            "number": number,
            "usd_per_month_delta": delta,
            "usd_over_horizon_delta": ahead,
            "changes_fleet": fleet_of(before) != fleet_of(after) or ahead_differs(before, after),
            "outcome": outcome,
        }
    )
    return Taken(step, tuple(changes), before, after)


def groups_of(other: Sequence[OtherChange], spec: Sequence[SpecChange], most: int) -> list[list[Change]]:
    """Return what is taken together, in at most so many groups: all beside the spec, then each change of the spec in its order.

    Where these are too many, changes of one section are taken together, and the last sections.
    """
    first: list[list[Change]] = [list(other)] if other else []
    each: list[list[Change]] = [[change] for change in spec]
    if len(first) + len(each) > most:
        sections: dict[tuple[str, ...], list[Change]] = {}
        for change in spec:
            sections.setdefault(change.names[:2], []).append(change)
        each = list(sections.values())
    groups = [*first, *each]
    if len(groups) <= most:
        return groups
    return [*groups[: most - 1], [change for group in groups[most - 1 :] for change in group]]


def _planned(
    specs: SpecPair, changes: Sequence[SpecChange], catalog: Catalog, before: Plan, options: Options
) -> Plan | None:
    """Plan the old spec with some changes, the fleet so far preferred; None where that is no spec."""
    try:
        prepared = prepare(specs.with_changes(changes), catalog)
        gap = max(STEP_GAP, prepared.spec.planning.gap if options.gap is None else options.gap)
        return make_plan(prepared, options_for(options, before, specs.old.path, gap, prepared))
    except DiagnosticError:
        return None


def options_for(options: Options, before: Plan, name: str, gap: float | None, prepared: Prepared) -> Options:
    """Return the options to plan a spec with the fleet of an earlier plan preferred, where that has one, and nothing grows."""
    prefer = PreferredPlan(before, name) if before.pools and prepared.spec.growth is None else None
    return replace(options, gap=gap, prefer=prefer)
