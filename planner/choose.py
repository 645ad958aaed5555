"""Choose a fleet: the best that is found, the one that runs where it may stay, or one whose replay holds."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from planner.candidates.types import Assumption, CandidateTable
from planner.physics.constants import SpeedConstants
from planner.plan.build import Context, infeasible_plan, unsolved_plan
from planner.plan.replayed import Certificate, Tightening
from planner.plan.rerate import Rating, Settled, settle
from planner.plan.schema import InfeasibleReport, Plan, Status
from planner.prefer.keep import Fleet, Keeper, Preference
from planner.program.data import FleetProblem
from planner.program.problem import with_services
from planner.simulate.certify import MOST_ROUNDS as MOST_CERTIFYING
from planner.simulate.certify import Replays
from planner.simulate.fleet import Settings
from planner.solve.fleet import Answered, SolveLimits, mend, solve
from planner.solve.outcome import Infeasible, Solution, Unproven, Unsolved

MOST_ROUNDS = 16
VISIBLE_SHARE = 1e-3  # smaller changes of the bound are not worth a line
MENDING_S = 20.0  # what a limit leaves to make a fleet that was found hold at the mix its pools get
NONE_HOLDS = "no fleet meets the spec with the ratings that the replay asks for"
CUT_SHORT_REPLAYS = "a limit was reached before a fleet that holds was found"
Progress = Callable[[str, float], None]
"""Called with the name of a finished stage and the seconds it took."""


@dataclass
class Clock:
    """Times the stages for `progress`; nothing it measures reaches the answer."""

    progress: Progress
    started: float = field(default_factory=time.perf_counter)

    def lap(self, stage: str) -> None:
        now = time.perf_counter()
        self.progress(stage, now - self.started)
        self.started = now


@dataclass(frozen=True)
class Best:
    """The best fleet that was found, and what the plan says about how."""

    fleet: Fleet
    status: Status
    rerated: tuple[Assumption, ...]


@dataclass(frozen=True)
class Chosen:
    """The fleet to plan: the best one, or what became of the one that runs; with the certificate of its replay, if any."""

    best: Best
    preference: Preference | None = None
    certificate: Certificate | None = None

    @property
    def fleet(self) -> Fleet:
        return self.best.fleet if self.preference is None else self.preference.fleet


def choose(search: Search, keeper: Keeper | None) -> Chosen | Plan:
    """Find the best fleet, and keep the earlier one where that is worth it."""
    best = search.run()
    if isinstance(best, Plan) or keeper is None:
        return best if isinstance(best, Plan) else Chosen(best)
    preference = keeper.decide(best.fleet)
    search.clock.lap("prefer")
    return Chosen(best, preference)


def choose_certified(search: Search, keeper: Keeper | None, settings: Settings) -> Chosen | Plan:
    """Replay the fleet, lower what fails, and choose again until all pools hold; the last fleet where there is none."""
    replays = Replays(search.constants, settings, lambda: search.limits.is_over)
    steps: list[Tightening] = []
    chosen = first = choose(search, keeper)
    before: Chosen | None = None
    number = 0
    while not isinstance(chosen, Plan) and not isinstance(first, Plan):
        found = replays.of(search.table, chosen.fleet.found.pools)
        if found is None:
            return _given_up(before, steps, CUT_SHORT_REPLAYS) if before is not None else chosen
        number += 1
        search.clock.lap(f"replay {number}")
        certificate = Certificate(
            replayed=found,
            rounds=number,
            tightened=tuple(steps),
            first_usd_per_hour=first.fleet.usd_per_h,
            price_usd_per_hour=chosen.fleet.usd_per_h - first.fleet.usd_per_h,
        )
        before = chosen = replace(chosen, certificate=certificate)
        if number == MOST_CERTIFYING and found.verdict != "pass":
            return _given_up(chosen, steps, f"{MOST_CERTIFYING} rounds were not enough")
        table, more = replays.tightened(search.table, chosen.fleet.found.pools, found, number)
        if not more:
            return chosen
        steps += more
        search.clock.lap(f"tighten {number}")
        search.lower(table)
        if keeper is not None:
            keeper = replace(keeper, table=search.table, problem=with_services(keeper.problem, search.table))
        tighter = choose(search, keeper)
        if isinstance(tighter, Plan):
            return _given_up(chosen, steps, NONE_HOLDS)
        chosen = tighter
    return chosen


def _given_up(chosen: Chosen, steps: Sequence[Tightening], why: str) -> Chosen:
    """Return the last fleet with its certificate, which says what was tried and why no other was found."""
    if chosen.certificate is None:
        return chosen
    update = {"tightened": tuple(steps), "gave_up": why}
    return replace(chosen, certificate=chosen.certificate.model_copy(update=update))


@dataclass
class Search:
    """The search for the best fleet. It goes on from what is known when candidates turn out to bear less."""

    context: Context
    table: CandidateTable
    problem: FleetProblem
    constants: SpeedConstants
    limits: SolveLimits
    clock: Clock
    tries_any_mix: bool = True
    _rating: Rating | None = None
    _answered: Answered | None = None

    def run(self) -> Best | Plan:
        """Solve, assess the pools at their mix, lower what does not hold, and solve again until everything does.

        Where there is no fleet, the plan that says so is returned.
        """
        limits, is_late = self.limits, False
        if self._rating is None or self._answered is None:
            self._rating = Rating(self.table, self.constants)
            self._answered = solve(self.problem, limits, self._rating)
        rating, answered = self._rating, self._answered
        for _ in range(MOST_ROUNDS):
            self.clock.lap("solve")
            outcome, packing, problem = answered.outcome, answered.packing, answered.problem
            if isinstance(outcome, Infeasible):
                if not self.table.has_mixes or limits.is_over or not self.tries_any_mix:
                    return infeasible_plan(self.context, InfeasibleReport(reason=outcome.reason))
                rating, answered = self._at_any_mix()
                continue
            if isinstance(outcome, Unsolved) or packing is None:
                return unsolved_plan(self.context, "a limit was reached before any fleet was found")
            found = settle(rating.table, problem, outcome.solution, self.constants)
            self.clock.lap("rate pools")
            if isinstance(found, Settled):
                status: Status = "unproven" if isinstance(outcome, Unproven) else "solved"
                self.table = rating.table
                return Best(Fleet(found, packing), status, tuple(_rerated(answered, outcome.solution)))
            if limits.is_over and not is_late:  # there is a fleet, and little is missing for it to hold
                is_late = True
                limits = replace(limits, deadline_s=time.monotonic() + MENDING_S, interrupt=None)
            rating.table = found.table
            answered = mend(answered, with_services(problem, found.table), limits, found.changed)
            self._answered = answered
        return unsolved_plan(
            self.context, f"pools still miss limits at the mix they get after {MOST_ROUNDS} rounds of correction"
        )

    def _at_any_mix(self) -> tuple[Rating, Answered]:
        """Search anew with pools that workloads share in any mix: where no fleet keeps to mixes that are rated, others may hold."""
        self.table = self.table.at_any_mix()
        self._rating = Rating(self.table, self.constants)
        self._answered = solve(with_services(self.problem, self.table), self.limits, self._rating)
        return self._rating, self._answered

    def lower(self, table: CandidateTable) -> None:
        """Take a table whose candidates bear less than before, and search on from there."""
        if self._rating is None or self._answered is None:
            raise ValueError("nothing was searched yet")
        before = {c.name: c for c in self._rating.table.candidates}
        changed = {c.shape.model for c in table.candidates if c.services != before[c.name].services}
        self.table = self._rating.table = table
        problem = with_services(self._answered.problem, table)
        self._answered = mend(self._answered, problem, self.limits, changed)


def _rerated(answered: Answered, solution: Solution) -> list[Assumption]:
    """Disclose what lowering capacities at the mixes that pools got has done to the bound."""
    first, last = answered.first_bound, solution.bound
    if first >= last * (1.0 - VISIBLE_SHARE):
        return []
    value = (
        f"shared pools were rated lower at the mix they got: the bound rose from {first:.2f} to {last:.2f} by it; "
        "fleets that mix workloads otherwise may lie between"
    )
    return [Assumption("planning.rerated", value, "rating of shared pools at their real mix")]
