"""Why the limits of a program leave no fleet: those that clash, and values of them with which a fleet exists."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial, reduce

from planner.candidates.types import CandidateTable
from planner.explain.change import is_given
from planner.explain.conflict import further_conflicts, minimal_conflict
from planner.explain.demand import less_traffic
from planner.explain.limit import Limit, Scale
from planner.explain.limits import limits_of
from planner.explain.programs import Found, Programs, found_in, is_proven_empty
from planner.explain.trials import Trials, Variant
from planner.explain.way import Finding, Way, way_to
from planner.plan.schema import Conflict, Plan
from planner.program.data import minimises_cost_alone
from planner.spec import FleetSpec

MOST_VALUES = 4
MOST_TRIES = 12
WORTH_LOWERING = 0.98  # a limit that a plan fills less is lowered to what it needs
AT_THE_MIX = (
    "the limits leave fleets, but none whose pools keep the latency limits at the mix of workloads that they get"
)
NOT_EVEN = "no fleet meets the spec even without budget, stock, limits, spares and rules on shapes"
NONE_FOUND = "no fleet was found even without budget, stock, limits, spares and rules on shapes"


def limits_in_the_way(at: Variant, table: CandidateTable, trials: Trials) -> Finding:
    """Find the limits of a spec that conflict, and the mildest values found with which a fleet exists."""
    programs = Programs(at.spec, trials.problem(at.spec, table), trials)
    limits = limits_of(at.spec, programs.problem, trials)
    outcome = programs.solve(limits)
    free = found_in(programs.of(limits), outcome)
    if free is None:
        return Finding((), (NOT_EVEN if is_proven_empty(outcome) else NONE_FOUND,), ())
    return _Clash(at, programs, limits, free, trials).finding()


@dataclass(frozen=True)
class _Clash:
    """Limits that leave no fleet, and the best fleet without any of them."""

    at: Variant
    programs: Programs
    limits: Sequence[Limit]
    free: Found
    trials: Trials

    @property
    def spec(self) -> FleetSpec:
        """The spec whose limits these are."""
        return self.at.spec

    def finding(self) -> Finding:
        """Return a smallest set of limits that clash, and the ways out."""
        broken = [limit for limit in self.limits if limit.breaks(self.free.problem, self.free.solution)]
        # The limits that the best fleet without any breaks are nearly always the conflict: look among them first.
        clashing = next((each for each in (broken, self.limits) if self.is_infeasible(each)), None)
        conflict = minimal_conflict(clashing, self.is_infeasible) if clashing is not None else broken
        ways: list[Way] = []
        helping: list[Limit] = []
        for limit in conflict:
            found = self.without([limit], broken)
            helping += [limit] if found is not None else []
            ways += [way for way in [self.raised([limit], found)] if way is not None]
        if not ways:
            conflict += further_conflicts(self.limits, conflict, self.is_infeasible)
            together = self.fewest(broken)
            ways = [way for way in [self.raised(together, self.without(together, broken))] if way is not None]
        keys = tuple(self.conflicting(limit) for limit in conflict if self.is_named(limit, helping, ways))
        less = less_traffic(self.at, self.programs.problem, self.free, self.trials)
        ways += [way_to(variant, plan, serves_less=True) for variant, plan in less]
        reason = _verdict(keys, ways, self.at) if clashing is not None else AT_THE_MIX
        return Finding(keys, (reason,), tuple(ways))

    def is_named(self, limit: Limit, helping: Sequence[Limit], ways: Sequence[Way]) -> bool:
        """Tell whether a limit is to be named: the user wrote it, or it is a default that is known to be in the way."""
        key = limit.key(self.spec)
        is_known = any(limit is each for each in helping) or any(c.key == key for way in ways for c in way.changes)
        return is_known or is_given(self.spec, limit.place)

    def conflicting(self, limit: Limit) -> Conflict:
        """Return a limit as reports name it."""
        return Conflict(key=limit.key(self.spec), value=limit.text(limit.value))

    def is_infeasible(self, kept: Sequence[Limit]) -> bool:
        """Tell whether it is proven that some limits leave no fleet, all others dropped."""
        dropped = [x for x in self.limits if not any(x is each for each in kept)]
        budget = self.programs.without(dropped).budget_usd_per_h
        # No fleet of these candidates costs less than the bound of the one without limits: that alone may be proof enough.
        is_bounded = minimises_cost_alone(self.programs.problem) and self.programs.of(dropped) is self.free.problem
        if budget is not None and is_bounded and budget < self.free.solution.bound:
            return True
        return self.programs.is_infeasible(dropped)

    def without(self, dropped: Sequence[Limit], broken: Sequence[Limit]) -> Found | None:
        """Return the best fleet without some limits; `broken` are those that the best one without any breaks."""
        if not dropped:
            return None
        if all(any(x is each for each in dropped) for x in broken):
            return self.free  # it breaks nothing else
        return self.programs.best(dropped)

    def fewest(self, broken: Sequence[Limit]) -> list[Limit]:
        """Return a minimal subset of limits without which a fleet exists."""
        needed = list(broken)
        for limit in broken:
            others = [x for x in needed if x is not limit]
            if others and self.programs.best(others) is not None:
                needed = others
        return needed

    def raised(self, limits: Sequence[Limit], found: Found | None) -> Way | None:
        """Raise limits as little as a fleet without them needs, and plan the spec with exactly those values."""
        if found is None:
            return None
        enough = [(limit, limit.others(found.problem, found.solution)) for limit in limits]
        enough = [(limit, values) for limit, values in enough if values]
        for values in self.attempts([limit for limit, _ in enough], [values for _, values in enough]):
            variant = self.changed([limit for limit, _ in enough], values)
            plan = self.trials.plan(variant.spec) if variant is not None else None
            if variant is not None and plan is not None:
                return self.lowered([limit for limit, _ in enough], values, plan) or way_to(variant, plan)
        return None

    def attempts(self, limits: Sequence[Limit], enough: Sequence[Sequence[float]]) -> Iterator[tuple[float, ...]]:
        """Yield values to plan with: the mildest that the program allows, half way to what a fleet needs, that and more."""
        if not limits:
            return
        scales = [Scale(x.value, values[0], x.step) for x, values in zip(limits, enough, strict=True)]
        least = self.mildest(limits, scales)
        half = [(index + len(scale)) // 2 for index, scale in zip(least, scales, strict=True)]
        tried = [tuple(scale.at(i) for scale, i in zip(scales, indices, strict=True)) for indices in (least, half)]
        for step in range(max(map(len, enough))):
            tried.append(tuple(values[min(step, len(values) - 1)] for values in enough))
        yield from list(dict.fromkeys(tried))[:MOST_VALUES]

    def mildest(self, limits: Sequence[Limit], scales: Sequence[Scale]) -> list[int]:
        """Return the first value of each scale with which the program has a fleet, the others as they then are."""
        chosen = [len(scale) - 1 for scale in scales]

        def holds(number: int, index: int) -> bool | None:
            indices = [*chosen[:number], index, *chosen[number + 1 :]]
            values = [scale.at(i) for scale, i in zip(scales, indices, strict=True)]
            return self.trials.holds(self.with_values(limits, values))

        for number, last in enumerate(chosen):
            chosen[number] = _first(last, partial(holds, number))
        return chosen

    def with_values(self, limits: Sequence[Limit], values: Sequence[float]) -> FleetSpec:
        """Return the spec with values of limits, unchecked."""
        return reduce(lambda spec, each: each[0].raised(spec, each[1]), zip(limits, values, strict=True), self.spec)

    def changed(self, limits: Sequence[Limit], values: Sequence[float]) -> Variant | None:
        """Return the user's spec with values written into it, None where its checks refuse them."""
        variant: Variant | None = self.at
        for limit, value in zip(limits, values, strict=True):
            variant = self.trials.changed(variant, limit.change(variant.spec, value)) if variant is not None else None
        return variant

    def lowered(self, limits: Sequence[Limit], values: Sequence[float], plan: Plan) -> Way | None:
        """Plan with what a plan needs of each limit where that is less than it was given, as it is over several periods."""
        needed = [limit.planned(plan) if limit.planned else value for limit, value in zip(limits, values, strict=True)]
        if all(n >= WORTH_LOWERING * v for n, v in zip(needed, values, strict=True)):
            return None
        variant = self.changed(limits, needed)
        again = self.trials.plan(variant.spec) if variant is not None else None
        return way_to(variant, again) if variant is not None and again is not None else None


def _first(last: int, holds: Callable[[int], bool | None]) -> int:
    """Return the first index that holds, as far as a few tries tell; the last one does, and all after one that does."""
    low, high = -1, last
    for number in range(MOST_TRIES):
        if high - low <= 1:
            break
        middle = high - 1 if number == 0 else (low + high) // 2  # what the best fleet needs is mostly the least
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def _verdict(keys: Sequence[Conflict], ways: Sequence[Way], at: Variant) -> str:
    first = "this limit leaves no fleet" if len(keys) == 1 else "these limits together leave no fleet"
    if not ways:
        return f"{first}, and no change that was tried does"
    if any(len(way.changes) <= len(at.changes) + 1 for way in ways):
        return f"{first}; each way below makes it feasible"
    return "these limits leave no fleet; it takes several changes at once"
