"""What each cause does: the changes between two specs taken one after the other, each time with the fleet so far preferred."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from planner.catalog import Catalog
from planner.diagnostics import DiagnosticError
from planner.pipeline import Options, make_plan, prepare
from planner.plan.schema import Plan
from planner.prefer.earlier import PreferredPlan
from planner.review.compare import fleet_of
from planner.review.difference import Step
from planner.review.inputs import OtherChange, SpecChange, changed_spec
from planner.spec import LoadedSpec

MOST_STEPS = 10
STEP_GAP = 0.01
"""Proven distance from the best fleet that is enough for a fleet in between, which nobody buys."""
Change = SpecChange | OtherChange


@dataclass(frozen=True)
class Taken:
    """A step with the changes in it, and the plans before and after it."""

    step: Step
    changes: tuple[Change, ...]
    before: Plan
    after: Plan


def taken_steps(
    old: tuple[LoadedSpec, Plan],
    new: tuple[Catalog, Plan],
    other: Sequence[OtherChange],
    spec: Sequence[SpecChange],
    options: Options,
) -> list[Taken]:
    """Return the changes from an old plan to a new one in steps: what is beside the spec first, then the spec in the order of its file.

    Changes that leave no spec that can be planned by themselves go together with those after them; the last step ends at
    the new plan. At most `MOST_STEPS` are planned, changes of one section together where there are more.
    """
    groups = _groups(other, spec)
    loaded, plan = old
    found: list[Taken] = []
    done: list[SpecChange] = []
    waiting: list[Change] = []
    is_lost = False
    for number, group in enumerate(groups, 1):
        done += [c for c in group if isinstance(c, SpecChange)]
        waiting += group
        is_last = number == len(groups)
        after = new[1] if is_last else _planned(loaded, done, new[0], plan, options)
        if after is None:
            continue
        if after.objective is None and not is_last:
            if not is_lost:
                found.append(_taken(len(found) + 1, waiting, plan, after))
                waiting, is_lost = [], True
            continue
        found.append(_taken(len(found) + 1, waiting, plan, after))
        waiting, plan, is_lost = [], after, False
    return found


def _taken(number: int, changes: Sequence[Change], before: Plan, after: Plan) -> Taken:
    was, now = before.objective, after.objective
    delta = None if was is None or now is None else now.usd_per_month - was.usd_per_month
    outcome = "no-fleet" if now is None else "together" if len(changes) > 1 else "planned"
    changes_fleet = fleet_of(before) != fleet_of(after)
    step = Step.model_validate(
        {"number": number, "usd_per_month_delta": delta, "changes_fleet": changes_fleet, "outcome": outcome}
    )
    return Taken(step, tuple(changes), before, after)


def _groups(other: Sequence[OtherChange], spec: Sequence[SpecChange]) -> list[list[Change]]:
    """Return what is taken together: all beside the spec, then each change of the spec; those of a section, and the last, where there are many."""
    first: list[list[Change]] = [list(other)] if other else []
    room = MOST_STEPS - len(first)
    if len(spec) <= room:
        return [*first, *_each(spec)]
    sections: dict[tuple[str, ...], list[Change]] = {}
    for change in spec:
        sections.setdefault(change.names[:2], []).append(change)
    own = list(sections.values())
    return [*first, *own[: room - 1], *([[c for group in own[room - 1 :] for c in group]] if own[room - 1 :] else [])]


def _each(spec: Sequence[SpecChange]) -> Iterator[list[Change]]:
    for change in spec:
        yield [change]


def _planned(
    loaded: LoadedSpec, changes: Sequence[SpecChange], catalog: Catalog, before: Plan, options: Options
) -> Plan | None:
    """Plan the old spec with some changes, the fleet so far preferred; None where that is no spec."""
    try:
        prepared = prepare(changed_spec(loaded, changes), catalog)
        gap = max(STEP_GAP, prepared.spec.planning.gap)
        return make_plan(prepared, options_for(options, before, loaded.path, gap))
    except DiagnosticError:
        return None


def options_for(options: Options, before: Plan, name: str, gap: float | None) -> Options:
    """Return the options to plan a spec with the fleet of an earlier plan preferred, where that has one."""
    prefer = PreferredPlan(before, name) if before.pools else None
    return Options(as_of=options.as_of, gap=gap, periods=options.periods, prefer=prefer)
