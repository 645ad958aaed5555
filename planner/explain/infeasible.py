"""Say why no fleet meets a spec: the smallest set of its own keys that conflicts, and changes of them that were planned."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import islice

from planner.candidates.types import CandidateTable
from planner.explain.causes import cause_of
from planner.explain.change import Change
from planner.explain.conflict import further_conflicts, minimal_conflict
from planner.explain.demand import less_traffic
from planner.explain.limit import Limit
from planner.explain.limits import limits_of
from planner.explain.trials import WAY_GAP, Trials, unserved
from planner.explain.wishes import Wish, only, wishes_of
from planner.plan.schema import Conflict, InfeasibleReport, Plan, Relaxation
from planner.program.data import FleetProblem, minimises_cost_alone
from planner.solve.outcome import Infeasible, Solution, Solved, Unproven
from planner.spec import FleetSpec

MOST_UNSERVED = 3
MOST_VALUES = 3
MOST_KEYS = 12
DEEPEST = 3
NOT_ALL = "the search was cut short: other changes may be cheaper, and the keys in the way may not all be needed"
AT_THE_MIX = (
    "the limits leave fleets, but none whose pools keep the latency limits at the mix of workloads that they get"
)
NOT_EVEN = "no fleet meets the spec even without budget, stock, limits, spares and rules on shapes"
NONE_FOUND = "no fleet was found even without budget, stock, limits, spares and rules on shapes"
NO_WAY = "no change of these keys was found that leaves a shape"


@dataclass(frozen=True)
class Way:
    """Changes to be made together, and the plan that they lead to."""

    changes: tuple[Change, ...]
    plan: Plan
    serves_less: bool = False


@dataclass(frozen=True)
class _Finding:
    conflict: tuple[Conflict, ...]
    reasons: tuple[str, ...]
    ways: tuple[Way, ...]


def explain_infeasible(spec: FleetSpec, table: CandidateTable, trials: Trials) -> InfeasibleReport:
    """Report what is in the way of a spec that has no fleet, and the ways out that were planned, the cheapest first.

    Ways that serve less than the spec asks for come last.
    """
    trials.limit_for(len(table.candidates))
    found = _search(spec, table, trials, 1)
    ways = sorted(found.ways, key=lambda w: (w.serves_less, len(w.changes), _usd_per_h(w), w.changes[0].key))
    reasons = (*found.reasons, *([NOT_ALL] if trials.exhausted else []))
    return InfeasibleReport(
        reason="\n".join(dict.fromkeys(reasons)),
        conflict=tuple({(c.key, c.value): c for c in found.conflict}.values()),
        relaxations=tuple(r for number, way in enumerate(ways, 1) for r in _relaxations(way, number)),
    )


def _relaxations(way: Way, number: int) -> Iterator[Relaxation]:
    for change in way.changes:
        yield Relaxation(key=change.key, from_=change.now, to=change.to, usd_per_hour=_usd_per_h(way), way=number)


def _usd_per_h(way: Way) -> float:
    assert way.plan.objective is not None
    return way.plan.objective.usd_per_hour


def _search(spec: FleetSpec, table: CandidateTable, trials: Trials, depth: int) -> _Finding:
    names = unserved(table)
    if names:
        found = [_of_workload(spec, table, name, trials, depth) for name in names[:MOST_UNSERVED]]
        conflict = tuple(c for each in found for c in each.conflict)
        return _Finding(conflict, tuple(r for each in found for r in each.reasons), found[0].ways)
    return _of_limits(spec, trials.problem(spec, table), trials)


def _of_workload(spec: FleetSpec, table: CandidateTable, workload: str, trials: Trials, depth: int) -> _Finding:
    """Find what rules every shape out for a workload, and the changes that leave one."""
    cause = cause_of(spec, table, workload, trials.catalog)
    wishes = wishes_of(spec, workload, table, trials)

    def serves(changed: FleetSpec) -> bool:
        return not unserved(trials.table(only(changed, workload)))

    def rules_out(kept: Sequence[Wish]) -> bool:
        dropped = [w for w in wishes if not any(w is each for each in kept)]
        return not serves(reduce(lambda s, w: w.without(s), dropped, spec))

    if not wishes or rules_out([]):
        own = [w for w in wishes if w.cause == cause.rule]
        return _Finding(_conflict(own or wishes, cause.rule), (*cause.reasons, NO_WAY), ())
    conflict = minimal_conflict(wishes, rules_out)
    ways = [w for wish in conflict if (w := _way_of(spec, wish, serves, trials, depth)) is not None]
    if not ways:
        conflict += further_conflicts(wishes, conflict, rules_out)
        ways = [w for w in [_together(spec, wishes, serves, trials, depth)] if w is not None]
    return _Finding(_conflict(conflict, cause.rule), cause.reasons, tuple(ways))


def _conflict(wishes: Sequence[Wish], cause: str) -> tuple[Conflict, ...]:
    """Return the keys in the way, those of the cause first."""
    ranked = sorted(wishes, key=lambda w: w.cause != cause)
    return tuple(Conflict(key=w.key, value=w.now) for w in ranked)


def _way_of(spec: FleetSpec, wish: Wish, serves: Callable[[FleetSpec], bool], trials: Trials, depth: int) -> Way | None:
    """Plan the mildest values of a wish that leave a shape; where other limits then are in the way, go on with those."""
    able = list(islice((c for c in wish.changes(spec) if serves(c.spec)), MOST_VALUES))
    for change in able:
        plan = trials.plan(change.spec)
        if plan is not None:
            return Way((change,), plan)
    return _further(able[0], trials, depth) if able else None


def _further(change: Change, trials: Trials, depth: int) -> Way | None:
    """Return a change with the cheapest further ones that it takes."""
    if depth >= DEEPEST or trials.exhausted:
        return None
    found = _search(change.spec, trials.table(change.spec), trials, depth + 1)
    best = min(found.ways, key=lambda w: (len(w.changes), _usd_per_h(w)), default=None)
    return Way((change, *best.changes), best.plan) if best is not None else None


def _together(
    spec: FleetSpec, wishes: Sequence[Wish], serves: Callable[[FleetSpec], bool], trials: Trials, depth: int
) -> Way | None:
    """Relax as few wishes together as leave a shape: each at its mildest value while those after it are dropped.

    Hardware is kept where anything else helps.
    """
    needed = sorted(wishes, key=lambda w: w.cause != "")
    for wish in list(needed):
        others = [w for w in needed if w is not wish]
        if others and serves(reduce(lambda s, w: w.without(s), others, spec)):
            needed = others
    changes: list[Change] = []
    for i, wish in enumerate(needed):
        rest = needed[i + 1 :]
        able = (c for c in wish.changes(spec) if serves(reduce(lambda s, w: w.without(s), rest, c.spec)))
        change = next(able, None)
        if change is None:
            return None
        spec = change.spec
        changes.append(change)
    plan = trials.plan(spec)
    if plan is not None:
        return Way(tuple(changes), plan)
    further = _further(changes[-1], trials, depth)
    return Way((*changes[:-1], *further.changes), further.plan) if further is not None else None


def _of_limits(spec: FleetSpec, problem: FleetProblem, trials: Trials) -> _Finding:
    """Find the limits of the program that conflict, and the values with which a fleet exists."""
    limits = limits_of(spec, problem, trials.catalog)
    outcome = trials.solve(_without(problem, limits), WAY_GAP)
    if not isinstance(outcome, Solved | Unproven):
        reason = NOT_EVEN if isinstance(outcome, Infeasible) else NONE_FOUND
        return _Finding(_keys(limits[:MOST_KEYS]), (reason,), ())
    free = outcome.solution

    def is_infeasible(kept: Sequence[Limit]) -> bool:
        limited = _without(problem, [x for x in limits if not any(x is each for each in kept)])
        budget = limited.budget_usd_per_h
        # No fleet costs less than the bound of the one without limits: that alone may be proof enough.
        if budget is not None and minimises_cost_alone(problem) and budget < free.bound:
            return True
        return trials.is_infeasible(limited)

    def without(dropped: Sequence[Limit]) -> Solution | None:
        if all(any(x is each for each in dropped) for x in broken):
            return free  # it breaks nothing else
        return _solution(trials, _without(problem, dropped))

    broken = [limit for limit in limits if limit.breaks(problem, free)]
    # The limits that the best fleet without any breaks are nearly always the conflict: look among them first.
    clashing = next((each for each in (broken, limits) if is_infeasible(each)), None)
    conflict = minimal_conflict(clashing, is_infeasible) if clashing is not None else broken
    ways = [way for limit in conflict if (way := _raised(spec, problem, [limit], without, trials)) is not None]
    if not ways:
        conflict += further_conflicts(limits, conflict, is_infeasible)
        together = _fewest(problem, broken, trials)
        ways = [way for way in [_raised(spec, problem, together, without, trials)] if way is not None]
    ways += [Way((c,), p, serves_less=True) for c, p in less_traffic(spec, problem, free, trials)]
    keys = _keys(conflict)
    return _Finding(keys, (_verdict(keys, ways) if clashing is not None else AT_THE_MIX,), tuple(ways))


def _keys(limits: Sequence[Limit]) -> tuple[Conflict, ...]:
    return tuple(Conflict(key=limit.key, value=limit.text(limit.value)) for limit in limits)


def _verdict(keys: Sequence[Conflict], ways: Sequence[Way]) -> str:
    first = "this limit leaves no fleet" if len(keys) == 1 else "these limits together leave no fleet"
    if not ways:
        return f"{first}, and no change that was tried does"
    if any(len(way.changes) == 1 for way in ways):
        return f"{first}; each way below makes it feasible"
    return "these limits leave no fleet; it takes several changes at once"


def _without(problem: FleetProblem, limits: Sequence[Limit]) -> FleetProblem:
    return reduce(lambda p, limit: limit.without(p), limits, problem)


def _solution(trials: Trials, problem: FleetProblem) -> Solution | None:
    outcome = trials.solve(problem, WAY_GAP)
    return outcome.solution if isinstance(outcome, Solved | Unproven) else None


def _raised(
    spec: FleetSpec,
    problem: FleetProblem,
    limits: Sequence[Limit],
    without: Callable[[Sequence[Limit]], Solution | None],
    trials: Trials,
) -> Way | None:
    """Raise limits to what the best fleet without them needs, and plan the spec with exactly those values."""
    found = without(limits) if limits else None
    if found is None:
        return None
    for step in range(MOST_VALUES):
        changes: list[Change] = []
        changed = spec
        for limit in limits:
            values = list(limit.changes(changed, problem, found))
            if values:
                changes.append(values[min(step, len(values) - 1)])
                changed = changes[-1].spec
        plan = trials.plan(changed) if changes else None
        if plan is not None:
            return Way(tuple(changes), plan)
    return None


def _fewest(problem: FleetProblem, broken: Sequence[Limit], trials: Trials) -> list[Limit]:
    """Return a minimal subset of limits without which a fleet exists."""
    needed = list(broken)
    for limit in broken:
        others = [x for x in needed if x is not limit]
        if others and isinstance(trials.solve(_without(problem, others)), Solved | Unproven):
            needed = others
    return needed
