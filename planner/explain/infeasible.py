"""Say why no fleet meets a spec: the smallest set of its own keys that conflicts, and changes of them that were planned."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from itertools import islice

from planner.candidates.types import CandidateTable
from planner.explain.causes import cause_of
from planner.explain.change import Change, is_given, key_at
from planner.explain.conflict import further_conflicts, minimal_conflict
from planner.explain.limited import limits_in_the_way
from planner.explain.trials import Trials, Variant, unserved
from planner.explain.way import Finding, Way, way_to
from planner.explain.wish import Wish, only
from planner.explain.wishes import wishes_of
from planner.plan.schema import Conflict, InfeasibleReport, Relaxation
from planner.spec import FleetSpec

MOST_UNSERVED = 3
MOST_VALUES = 3
DEEPEST = 3
NOT_ALL = "the search was cut short: other changes may be cheaper, and the keys in the way may not all be needed"
NOT_MILDEST = "the search was cut short: milder changes of these keys may do"
NO_WAY = "no change of these keys was found that leaves a shape"


def explain_infeasible(spec: FleetSpec, table: CandidateTable, trials: Trials) -> InfeasibleReport:
    """Report what is in the way of a spec that has no fleet, and the ways out that were planned, the cheapest first.

    Ways that serve less than the spec asks for come last.
    """
    trials.limit_for(len(table.candidates))
    found = _search(Variant(spec), table, trials)
    ways = sorted(found.ways, key=lambda w: (w.serves_less, len(w.changes), w.usd_per_h, w.changes[0].key))
    short = NOT_ALL if trials.exhausted else NOT_MILDEST if trials.is_coarse else ""
    reasons = (*found.reasons, *([short] if short else []))
    return InfeasibleReport(
        reason="\n".join(dict.fromkeys(reasons)),
        conflict=tuple({(c.key, c.value): c for c in found.conflict}.values()),
        relaxations=tuple(r for number, way in enumerate(ways, 1) for r in _relaxations(spec, way, number)),
    )


def _relaxations(spec: FleetSpec, way: Way, number: int) -> Iterator[Relaxation]:
    for change in way.changes:
        key = key_at(spec, change.path)  # as the user's own spec has it: labels of offers may change with the others
        yield Relaxation(key=key, from_=change.now, to=change.to, usd_per_hour=way.usd_per_h, way=number)


def _search(at: Variant, table: CandidateTable, trials: Trials, depth: int = 1) -> Finding:
    names = unserved(table)
    if names:
        found = [_of_workload(at, table, name, trials, depth) for name in names[:MOST_UNSERVED]]
        conflict = tuple(c for each in found for c in each.conflict)
        return Finding(conflict, tuple(r for each in found for r in each.reasons), found[0].ways)
    return limits_in_the_way(at, table, trials)


def _of_workload(at: Variant, table: CandidateTable, workload: str, trials: Trials, depth: int) -> Finding:
    """Find what rules every shape out for a workload, and the changes that leave one."""
    spec = at.spec
    cause = cause_of(spec, table, workload, trials.catalog)
    wishes = wishes_of(spec, workload, table, trials)

    def serves(changed: FleetSpec) -> bool:
        return not unserved(trials.table(only(changed, workload)))

    def rules_out(kept: Sequence[Wish]) -> bool:
        dropped = [w for w in wishes if not any(w is each for each in kept)]
        return not serves(_without(spec, dropped))

    if not wishes or rules_out([]):
        given = [w for w in wishes if is_given(spec, w.place)]  # no default is known to be in the way
        own = [w for w in given if w.cause == cause.rule]
        return Finding(_conflict(own or given, cause.rule), (*cause.reasons, NO_WAY), ())
    conflict = minimal_conflict(wishes, rules_out)
    ways = [w for wish in conflict if (w := _way_of(at, wish, serves, trials, depth)) is not None]
    if not ways:
        conflict += further_conflicts(wishes, conflict, rules_out)
        ways = [w for w in [_together(at, wishes, serves, trials, depth)] if w is not None]
    return Finding(_conflict(conflict, cause.rule), cause.reasons, tuple(ways))


def _conflict(wishes: Sequence[Wish], cause: str) -> tuple[Conflict, ...]:
    """Return the keys in the way, those of the cause first."""
    ranked = sorted(wishes, key=lambda w: w.cause != cause)
    return tuple(Conflict(key=w.key, value=w.now) for w in ranked)


def _way_of(at: Variant, wish: Wish, serves: Callable[[FleetSpec], bool], trials: Trials, depth: int) -> Way | None:
    """Plan the mildest values of a wish that leave a shape; where other limits then are in the way, go on with those."""
    able = list(islice(_variants(at, wish.changes(at.spec), serves, trials), MOST_VALUES))
    for variant in able:
        plan = trials.plan(variant.spec)
        if plan is not None:
            return way_to(variant, plan)
    return _further(able[0], trials, depth) if able else None


def _variants(
    at: Variant, changes: Iterator[Change], serves: Callable[[FleetSpec], bool], trials: Trials
) -> Iterator[Variant]:
    """Yield the variants that changes lead to: those that serve a workload, as read from the text of the user's spec."""
    for change in changes:
        variant = trials.changed(at, change) if serves(change.spec) else None
        if variant is not None and serves(variant.spec):
            yield variant


def _further(at: Variant, trials: Trials, depth: int) -> Way | None:
    """Return the cheapest way on from a variant that still has no fleet."""
    if depth >= DEEPEST or trials.exhausted:
        return None
    found = _search(at, trials.table(at.spec), trials, depth + 1)
    return min(found.ways, key=lambda w: (len(w.changes), w.usd_per_h), default=None)


def _together(
    at: Variant, wishes: Sequence[Wish], serves: Callable[[FleetSpec], bool], trials: Trials, depth: int
) -> Way | None:
    """Relax as few wishes together as leave a shape: each at its mildest value while those after it are dropped.

    Hardware is kept where anything else helps.
    """
    needed = sorted(wishes, key=lambda w: w.cause != "")
    for wish in list(needed):
        others = [w for w in needed if w is not wish]
        if others and serves(_without(at.spec, others)):
            needed = others
    for i, wish in enumerate(needed):

        def serves_then(changed: FleetSpec, rest: Sequence[Wish] = needed[i + 1 :]) -> bool:
            return serves(_without(changed, rest))

        variant = next(_variants(at, wish.changes(at.spec), serves_then, trials), None)
        if variant is None:
            return None
        at = variant
    plan = trials.plan(at.spec)
    return way_to(at, plan) if plan is not None else _further(at, trials, depth)


def _without(spec: FleetSpec, wishes: Sequence[Wish]) -> FleetSpec:
    return reduce(lambda s, w: w.without(s), wishes, spec)
