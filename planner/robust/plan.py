"""One fleet that holds in every scenario, or in a share of them: nodes bought now, replicas and routing as each case needs.

The program is stated over the spec and those scenarios that decide: whichever the nodes found do not hold in is added, and all are
planned together anew (column-and-constraint generation: Zeng and Zhao, Operations Research Letters 41, 2013, section 3). What is found
over some scenarios bounds the cost over all of them from below, so that it is the best once it holds in all.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace

from planner.audited import BrokenPlan
from planner.candidates.hours import periods_of
from planner.candidates.periods import Case as Planned
from planner.candidates.ratings import Ratings
from planner.choose import Clock, Progress
from planner.ground import Ground, Together
from planner.pipeline import Options, Prepared, Solving, ground_of, judged, make_plan, planned_together
from planner.plan.api import with_apis
from planner.plan.build import infeasible_plan, unsolved_plan
from planner.plan.io import sha256, with_digest
from planner.plan.schema import InfeasibleReport, Plan, RobustPlan, ScenarioPlan
from planner.robust.here_and_now import HereAndNow
from planner.robust.scenarios import Case
from planner.solve.fleet import SolveLimits
from planner.solve.tolerance import GAP_ATOL

SPEC = "spec"
"""What the spec itself is called among the cases, where scenarios go by their numbers."""
CHUNK = 8  # scenarios whose answers are waited for before the next are asked about: the same for any number of workers
MOST_PLANS = 40  # sets of scenarios that are tried where some may be given up
CUT_SHORT = "a limit was reached before a fleet was found that holds in the scenarios"
Nodes = tuple[tuple[str, int], ...]
"""Nodes by offer, sorted."""
Holding = Callable[[Nodes, Sequence[Case]], Mapping[int, bool]]
"""Tells of scenarios, by number, whether each can be served on these nodes: proven either way. Raises `Undecided`."""


class Undecided(RuntimeError):  # noqa: N818
    """A scenario of which a limit left open whether it can be served."""


@dataclass(frozen=True)
class Fleet:
    """A fleet for the spec and the scenarios that decide, by number; without nodes where there is none."""

    deciding: tuple[int, ...]
    plan: Plan
    nodes: Nodes = ()

    @property
    def cost(self) -> float:
        """What is minimised, infinite where there is no fleet."""
        return float("inf") if self.plan.objective is None else self.plan.objective.value


def robust_plan(
    base: Prepared,
    cases: Sequence[Case],
    options: Options,
    hold_in: float,
    holding: Holding,
    progress: Progress = lambda _stage, _s: None,
    solving: Solving = nullcontext,
) -> Plan:
    """Plan the cheapest nodes on which the spec can be served, and at least a share `hold_in` of the scenarios.

    Raises `DiagnosticError` as `make_plan`, and `BrokenPlan` where the plan of a case fails its audit.
    """
    options = replace(options, periods=1)
    clock = Clock(progress)
    with solving() as interrupt:
        deadline_s = None if options.time_limit_s is None else time.monotonic() + options.time_limit_s
        gap = base.spec.planning.gap if options.gap is None else options.gap
        limits = SolveLimits(gap, deadline_s=deadline_s, interrupt=interrupt)
        nominal = make_plan(base, options, ratings=(ratings := Ratings()), solving=lambda: nullcontext(interrupt))
        if nominal.objective is None:
            return nominal
        clock.lap("spec alone")
        search = _Search(base, {c.scenario.number: c for c in cases}, options, limits, holding, clock, ratings)
        try:
            return search.run(nominal, hold_in)
        except Undecided as error:
            return unsolved_plan(search.ground.context, f"{CUT_SHORT}: {error}")


@dataclass
class _Search:
    """The search for the nodes, with what is known of nodes and scenarios so far."""

    base: Prepared
    cases: Mapping[int, Case]
    options: Options
    limits: SolveLimits
    holding: Holding
    clock: Clock
    ratings: Ratings
    known: dict[tuple[Nodes, int], bool] = field(default_factory=dict)
    fleets: dict[tuple[int, ...], Fleet] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.ground = ground_of(self.base, self.options, self.ratings)
        self.grounds: dict[int, Ground] = {}
        self.order = sorted(self.cases, key=lambda n: (-_tokens_per_s(self.cases[n].prepared), n))

    def run(self, nominal: Plan, hold_in: float) -> Plan:
        first = Fleet((), nominal, _nodes(nominal))
        self.fleets[()] = first
        nominal_holds = self.held(first.nodes, self.order)
        self.clock.lap("scenarios on the nodes of the spec alone")
        most_lost = int(len(self.cases) * (1.0 - hold_in) + 1e-9)
        best, bound, is_complete = self.cheapest(most_lost)
        if best is None:
            return self._without_fleet()
        holds = self.held(best.nodes, self.order)
        self.clock.lap("scenarios on the nodes of the plan")
        return self._planned(best, nominal, holds, nominal_holds, hold_in, bound, is_complete)

    def cheapest(self, most_lost: int) -> tuple[Fleet | None, float, bool]:
        """Return the cheapest fleet that holds in all scenarios but so many, a bound on the cost of any, and whether all were tried.

        A fleet can only cost less where one of the scenarios that decide is given up.
        """
        found: dict[frozenset[int], Fleet] = {}
        waiting: list[frozenset[int]] = [frozenset()]
        while waiting and len(found) < MOST_PLANS:
            lost = waiting.pop(0)
            try:
                fleet = found[lost] = self.holding_without(lost)
            except Undecided:
                if not any(f.cost < float("inf") for f in found.values()):
                    raise
                waiting.append(lost)
                break
            if len(lost) < most_lost:
                waiting += [more for n in fleet.deciding if (more := lost | {n}) not in found and more not in waiting]
        costs = [f for f in found.values() if f.cost < float("inf")]
        best = min(costs, key=lambda f: (f.cost, f.deciding), default=None)
        bounds = [f.plan.objective.bound for f in costs if f.plan.objective is not None]
        nominal = self.fleets[()].plan.objective
        assert nominal is not None
        return best, nominal.bound if waiting else min(bounds, default=nominal.bound), not waiting

    def holding_without(self, lost: frozenset[int]) -> Fleet:
        """Return the cheapest fleet for the spec that holds in every scenario but those given up."""
        asked = [n for n in self.order if n not in lost]
        deciding: tuple[int, ...] = ()
        while True:
            fleet = self.fleet(deciding)
            if fleet.cost == float("inf"):
                return fleet
            failing = next(self.failing(fleet.nodes, asked), None)
            if failing is None:
                return fleet
            if failing in deciding:
                raise BrokenPlan(f"{self.cases[failing].name} was planned on nodes on which it cannot be served")
            deciding = tuple(sorted((*deciding, failing)))

    def fleet(self, deciding: tuple[int, ...]) -> Fleet:
        """Return the cheapest fleet for the spec and these scenarios, planned once."""
        if deciding not in self.fleets:
            self.fleets[deciding] = self._planned_for(deciding)
            self.clock.lap(f"with {', '.join(self.cases[n].name for n in deciding)}")
        return self.fleets[deciding]

    def failing(self, nodes: Nodes, asked: Sequence[int]) -> Iterator[int]:
        """Yield the scenarios that cannot be served on these nodes, those with the most tokens first."""
        for start in range(0, len(asked), CHUNK):
            chunk = asked[start : start + CHUNK]
            holds = self.held(nodes, chunk)
            yield from (n for n in chunk if not holds[n])

    def held(self, nodes: Nodes, asked: Sequence[int]) -> dict[int, bool]:
        """Tell of each scenario whether it can be served on these nodes: no more nodes than hold it, and no fewer than fail."""
        unknown = [self.cases[n] for n in asked if self._known(nodes, n) is None]
        if self.limits.is_over and unknown:
            raise Undecided(f"{unknown[0].name} was not tried")
        if unknown:
            self.known |= {(nodes, n): holds for n, holds in self.holding(nodes, unknown).items()}
        return {n: bool(self._known(nodes, n)) for n in asked}

    def _known(self, nodes: Nodes, number: int) -> bool | None:
        have = dict(nodes)
        for (other, n), holds in self.known.items():
            if n == number:
                counts = dict(other)
                if holds and all(have.get(o, 0) >= c for o, c in counts.items()):
                    return True
                if not holds and all(counts.get(o, 0) >= c for o, c in have.items()):
                    return False
        return None

    def _planned_for(self, deciding: tuple[int, ...]) -> Fleet:
        found = planned_together(self._together(deciding), self.options, self.limits, Clock(lambda _stage, _s: None))
        if isinstance(found, Plan):
            if found.unsolved is not None:
                raise Undecided(found.unsolved)
            return Fleet(deciding, found)
        plans, solution = found
        plan = plans[0]
        assert plan.objective is not None
        is_cost = plan.objective.bound_usd_per_hour is not None
        update = {
            "value": solution.cost,
            "bound": solution.bound,
            "gap": solution.gap,
            "bound_usd_per_hour": solution.bound if is_cost else None,
        }
        objective = plan.objective.model_copy(update=update)
        return Fleet(deciding, plan.model_copy(update={"objective": objective}), _nodes(plan))

    def _together(self, deciding: tuple[int, ...]) -> Ground:
        """Return the ground of the spec and some scenarios, which share the nodes."""
        grounds = [self.ground, *(self._ground(n) for n in deciding)]
        names = [SPEC, *(f"s{n}" for n in deciding)]
        cases = tuple(
            Planned(name, g.spec, g.catalog, g.table, periods_of(g.spec), 1.0 / len(grounds))
            for name, g in zip(names, grounds, strict=True)
        )
        return replace(self.ground, together=Together(cases, HereAndNow(cases)))

    def _ground(self, number: int) -> Ground:
        if number not in self.grounds:
            self.grounds[number] = ground_of(self.cases[number].prepared, self.options, self.ratings)
        return self.grounds[number]

    def _without_fleet(self) -> Plan:
        """Return the plan that says which scenarios have no fleet, by themselves or together."""
        deciding = max((f.deciding for f in self.fleets.values() if f.cost == float("inf")), key=len)
        for n in deciding:
            case = self.cases[n]
            alone = make_plan(case.prepared, replace(self.options, write_lp=None), ratings=self.ratings)
            if alone.infeasible is not None:
                reason = f"scenario {case.name} has no fleet by itself: {alone.infeasible.reason}"
                return infeasible_plan(self.ground.context, alone.infeasible.model_copy(update={"reason": reason}))
        named = ", ".join(self.cases[n].name for n in deciding)
        reason = f"each scenario has a fleet by itself, but no nodes hold in all of the spec, {named}"
        return infeasible_plan(self.ground.context, InfeasibleReport(reason=reason))

    def _planned(
        self,
        best: Fleet,
        nominal: Plan,
        holds: Mapping[int, bool],
        nominal_holds: Mapping[int, bool],
        hold_in: float,
        bound: float,
        is_complete: bool,
    ) -> Plan:
        plan = best.plan
        assert plan.objective is not None
        assert nominal.objective is not None
        gap = max(0.0, 1.0 - bound / plan.objective.value) if plan.objective.value > 0.0 else 0.0
        is_cost = plan.objective.bound_usd_per_hour is not None
        update: dict[str, float | None] = {"bound": bound, "gap": gap, "bound_usd_per_hour": bound if is_cost else None}
        robust = RobustPlan(
            hold_in=hold_in,
            held=sum(holds.values()),
            nominal_held=sum(nominal_holds.values()),
            nominal_usd_per_month=nominal.objective.usd_per_month,
            nominal_nodes=dict(_nodes(nominal)),
            extra_usd_per_month=plan.objective.usd_per_month - nominal.objective.usd_per_month,
            scenarios=tuple(
                ScenarioPlan(
                    name=case.name,
                    values=dict(case.scenario.values),
                    holds=holds[n],
                    nominal_holds=nominal_holds[n],
                    decides=n in best.deciding,
                )
                for n, case in sorted(self.cases.items())
            ),
        )
        texts = "".join(f"\n{c.name} {c.scenario.values}" for _, c in sorted(self.cases.items()))
        digests = plan.digests.model_copy(update={"inputs": sha256(f"{plan.digests.inputs}\n{hold_in}{texts}")})
        changed = {
            "objective": plan.objective.model_copy(update=update),
            "status": "solved"
            if plan.status == "solved" and is_complete and gap <= self.limits.gap + GAP_ATOL
            else "unproven",
            "robust": robust,
            "digests": digests,
        }
        plan = with_apis(plan.model_copy(update=changed), self.ground.table.workloads)
        return judged(with_digest(plan), self.ground, self.options)


def _nodes(plan: Plan) -> Nodes:
    return tuple(sorted((n.offer, n.nodes) for n in plan.nodes if n.nodes))


def _tokens_per_s(prepared: Prepared) -> float:
    """Return how much is asked for, about: which scenarios to try first."""
    traffic = [w.traffic for w in prepared.spec.workloads.values()]
    return sum(t.peak_requests_per_s() * (t.input_tokens.lengths.mean + t.output_tokens.lengths.mean) for t in traffic)
