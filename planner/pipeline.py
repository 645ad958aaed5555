"""Join the stages: spec and catalog in, plan out. The only place that knows their order."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import date
from importlib.metadata import version
from pathlib import Path
from threading import Event

from planner import __version__
from planner.candidates.hours import hour_assumptions, periods_of
from planner.candidates.knowledge import Knowledge
from planner.candidates.periods import expanded
from planner.candidates.table import NOTHING_RUNS, Memo, build_table
from planner.candidates.types import Assumption, CandidateTable, PricedOffer
from planner.catalog import Catalog
from planner.diagnostics import DiagnosticError
from planner.explain.change import Change
from planner.explain.infeasible import explain_infeasible
from planner.explain.trials import WAY_GAP, Trials, unserved
from planner.explain.written import with_changes
from planner.physics.constants import SpeedConstants
from planner.plan.audit import audit, in_words
from planner.plan.build import (
    Context,
    build_plan,
    build_plan_of_periods,
    infeasible_plan,
    unsolved_plan,
    with_certificate,
    with_preferred,
)
from planner.plan.figures import Violation
from planner.plan.fold import PeriodPlan
from planner.plan.fold_audit import audit_fold
from planner.plan.growth import growth_of
from planner.plan.io import sha256
from planner.plan.periods import growth_in, in_period
from planner.plan.pools import draft_pools, pool_shape
from planner.plan.replayed import Certificate, Tightening
from planner.plan.rerate import Rating, Settled, settle
from planner.plan.schema import Digests, InfeasibleReport, Plan, PolicyResult, Preferred, Status, Versions
from planner.policy import evaluate
from planner.policy.facts import PlanFacts
from planner.prefer.changes import changes_between
from planner.prefer.earlier import EarlierFleet, PreferredPlan, deployed_fleet, on_nodes
from planner.prefer.earlier import in_periods as by_periods
from planner.prefer.keep import Fleet, Keeper, Preference
from planner.prefer.reasons import in_words_of_periods
from planner.prefer.running import running_fleet
from planner.program.data import FleetProblem
from planner.program.problem import fleet_problem, gpu_limits, with_services
from planner.simulate.certify import MOST_ROUNDS as MOST_CERTIFYING
from planner.simulate.certify import Replays
from planner.simulate.fleet import Settings
from planner.simulate.periods import in_periods, named_as_planned
from planner.simulate.run import check_traces
from planner.solve.fleet import Answered, SolveLimits, mend, solve
from planner.solve.outcome import Infeasible, Solution, Unproven, Unsolved
from planner.spec import FleetSpec, LoadedSpec

MOST_ROUNDS = 16
NO_LIMIT = 1_000_000  # solves of variants that a user asks for one by one
VISIBLE_SHARE = 1e-3  # smaller changes of the bound are not worth a line
MENDING_S = 20.0  # what a limit leaves to make a fleet that was found hold at the mix its pools get
NO_FLEET = "no fleet meets the spec, neither this one nor another"
NONE_HOLDS = "no fleet meets the spec with the ratings that the replay asks for"
CUT_SHORT_REPLAYS = "a limit was reached before a fleet that holds was found"
NO_FLEET_FOUND = "no fleet was found that it could be compared with"
RATED_MIXES = (
    "pools that workloads share were tried in the mixes that they are rated for, then in any mix at what they carry in these: "
    "where a fleet just misses, another mix may hold"
)
Progress = Callable[[str, float], None]
"""Called with the name of a finished stage and the seconds it took."""
Solving = Callable[[], AbstractContextManager[Event | None]]
"""Entered while fleets are searched for: when the event that it gives is set, the best fleet so far is the answer."""


@dataclass(frozen=True)
class Options:
    """What the command line adds to a spec. `time_limit_s` is wall time; a plan cut short by it is unproven.

    The fleet of `prefer`, by default what the spec says is deployed, is kept where it holds and the best one saves no more
    than `stay_within`, by default the spec's. Without `tries_any_mix`, pools that workloads share keep to mixes that are rated. With `certify`, the fleet is replayed so, and tightened until it holds.
    """

    as_of: date | None = None
    gap: float | None = None
    time_limit_s: float | None = None
    write_lp: Path | None = None
    prefer: PreferredPlan | None = None
    stay_within: float | None = None
    periods: int | None = None
    certify: Settings | None = None
    tries_any_mix: bool = True


@dataclass(frozen=True)
class Prepared:
    """A spec with its catalog, ready to be planned."""

    loaded: LoadedSpec
    spec: FleetSpec
    catalog: Catalog


class BrokenPlan(RuntimeError):  # noqa: N818
    """A plan that its own audit refuses: a bug, never shown as solved."""


@dataclass
class _Clock:
    """Times the stages for `progress`; nothing it measures reaches the answer."""

    progress: Progress
    started: float = field(default_factory=time.perf_counter)

    def lap(self, stage: str) -> None:
        now = time.perf_counter()
        self.progress(stage, now - self.started)
        self.started = now


def prepare(loaded: LoadedSpec, catalog: Catalog) -> Prepared:
    """Check the references of a loaded spec against the catalog. Raises `DiagnosticError` with every mistake."""
    from planner.candidates.references import check_references

    found = list(loaded.diagnostics)
    if loaded.spec is not None:
        found += check_references(loaded, catalog)
    if loaded.spec is None or any(d.severity == "error" for d in found):
        raise DiagnosticError(found)
    return Prepared(loaded, loaded.spec, catalog)


def make_plan(
    prepared: Prepared, options: Options, progress: Progress = lambda _stage, _s: None, solving: Solving = nullcontext
) -> Plan:
    """Plan a fleet: candidates, program, solve, audit, policies.

    Raises:
        DiagnosticError: the catalog or the calibration is incomplete, or nothing of the preferred plan is of this spec.
        BrokenPlan: the plan fails its audit.
    """
    clock = _Clock(progress)
    spec, catalog = _dated(prepared.spec, prepared.catalog, options), prepared.catalog
    earlier = deployed_fleet(spec, catalog) if options.prefer is None else options.prefer.fleet_for(spec)
    knowledge = Knowledge.of(catalog, spec.planning.confidence)
    memo: Memo = {}
    table = build_table(spec, catalog, knowledge, memo, NOTHING_RUNS if earlier is None else earlier.shapes())
    earlier = None if earlier is None else on_nodes(earlier, spec, table)
    clock.lap("candidates")
    if options.certify is not None:
        check_traces(options.certify, table)
    context = _context(prepared, spec, table, options)
    gap = options.gap if options.gap is not None else spec.planning.gap
    with solving() as interrupt:
        deadline_s = None if options.time_limit_s is None else time.monotonic() + options.time_limit_s
        limits = SolveLimits(gap, deadline_s=deadline_s, interrupt=interrupt)
        plan = _solve_and_audit(context, catalog, knowledge, memo, limits, options, clock, earlier)
        clock.lap("plan")
        if plan.status == "infeasible":
            rough = replace(limits, gap=max(limits.gap, WAY_GAP))
            trials = replace(_trials(prepared, knowledge, options, rough), memo=memo)
            report = explain_infeasible(spec, table, trials)
            if table.has_mixes and not unserved(table):
                report = report.model_copy(update={"reason": f"{report.reason}\n{RATED_MIXES}"})
            plan = infeasible_plan(context, report)
            clock.lap("explain")
    if earlier is not None and plan.preferred is None:
        reasons = (NO_FLEET if plan.status == "infeasible" else NO_FLEET_FOUND,)
        within = _stay_within(spec, options)
        plan = with_preferred(
            plan, Preferred(plan=earlier.digest, outcome="not_possible", stay_within=within, reasons=reasons)
        )
    return plan


def variants(prepared: Prepared, plan: Plan) -> tuple[FleetSpec, Trials]:
    """Return the spec of a plan as of its day, and the means to plan variants of it to the gap of that plan."""
    options = Options(as_of=date.fromisoformat(plan.as_of), periods=len(plan.periods))
    spec = _dated(prepared.spec, prepared.catalog, options)
    reached = plan.objective.gap if plan.objective is not None else 0.0
    knowledge = Knowledge.of(prepared.catalog, spec.planning.confidence)
    limits = SolveLimits(max(reached, spec.planning.gap))
    trials = _trials(prepared, knowledge, options, limits)
    return spec, replace(trials, most_solves=NO_LIMIT)


def replayable(prepared: Prepared, plan: Plan) -> tuple[CandidateTable, SpeedConstants]:
    """Return the candidates of the spec of a plan, those of its pools among them, and the constants that it was made with."""
    spec = _dated(prepared.spec, prepared.catalog, Options(as_of=date.fromisoformat(plan.as_of)))
    knowledge = Knowledge.of(prepared.catalog, spec.planning.confidence)
    models = sorted({p.model for p in plan.pools})
    running = {m: frozenset(pool_shape(p) for p in plan.pools if p.model == m) for m in models}
    return build_table(spec, prepared.catalog, knowledge, None, running), knowledge.constants


def _context(prepared: Prepared, spec: FleetSpec, table: CandidateTable, options: Options) -> Context:
    """Return what a plan says about where it comes from."""
    as_of = spec.planning.as_of or prepared.catalog.newest_price_date()
    periods = periods_of(spec)
    assumed = (*table.assumptions, *hour_assumptions(spec, periods))
    table = replace(table, assumptions=assumed)
    return Context(spec, table, as_of, _digests(prepared, as_of, options), _versions(), periods)


def _trials(prepared: Prepared, knowledge: Knowledge, options: Options, limits: SolveLimits) -> Trials:
    """Return the means to plan variants of a spec within `limits`."""

    def plan_spec(spec: FleetSpec, table: CandidateTable) -> Plan:
        context, silent = _context(prepared, spec, table, options), _Clock(lambda _stage, _s: None)
        asked = replace(options, write_lp=None, prefer=None, certify=None, tries_any_mix=False)
        return _solve_and_audit(context, prepared.catalog, knowledge, {}, limits, asked, silent)

    def read(changes: Sequence[Change]) -> FleetSpec | None:
        try:
            changed = prepare(with_changes(prepared.loaded, changes), prepared.catalog)
        except DiagnosticError:
            return None
        return _dated(changed.spec, prepared.catalog, options)

    return Trials(prepared.catalog, knowledge, plan_spec, read, limits)


def _dated(spec: FleetSpec, catalog: Catalog, options: Options) -> FleetSpec:
    """Return the spec with the date that ages prices, ends offers and waivers, and its periods: those of the options first."""
    as_of = options.as_of or spec.planning.as_of or catalog.newest_price_date()
    periods = spec.planning.periods if options.periods is None else options.periods
    planning = spec.planning.model_copy(update={"as_of": as_of, "periods": periods})
    return spec.model_copy(update={"planning": planning})


@dataclass(frozen=True)
class _Best:
    """The best fleet that was found, and what the plan says about how."""

    fleet: Fleet
    status: Status
    rerated: tuple[Assumption, ...]


def _solve_and_audit(
    context: Context,
    catalog: Catalog,
    knowledge: Knowledge,
    memo: Memo,
    limits: SolveLimits,
    options: Options,
    clock: _Clock,
    earlier: EarlierFleet | None = None,
) -> Plan:
    """Find the best fleet, keep the earlier one where that is worth it, and audit the plan.

    The plan of a spec without a fleet does not say yet what is in the way.
    """
    spec, table = context.spec, context.table
    if unserved(table):
        return infeasible_plan(context, InfeasibleReport(reason="some workload has no candidate"))
    if len(context.periods) > 1:
        return _solve_periods(context, catalog, knowledge, memo, limits, options, clock, earlier)
    constants = knowledge.constants
    earlier = None if earlier is None else earlier.at_peak()
    chosen = _searched(context, spec, table, catalog, constants, limits, options, clock, earlier)
    if isinstance(chosen, Plan):
        return chosen
    plan = _audited(context, catalog, chosen.best, chosen.fleet, constants, earlier)
    if chosen.certificate is not None:
        plan = with_certificate(plan, chosen.certificate)
    return _with_outcome(plan, chosen, earlier, options, spec)


@dataclass(frozen=True)
class _Chosen:
    """The fleet to plan: the best one, or what became of the one that runs; with the certificate of its replay, if any."""

    best: _Best
    preference: Preference | None = None
    certificate: Certificate | None = None

    @property
    def fleet(self) -> Fleet:
        return self.best.fleet if self.preference is None else self.preference.fleet


def _searched(
    context: Context,
    spec: FleetSpec,
    table: CandidateTable,
    catalog: Catalog,
    constants: SpeedConstants,
    limits: SolveLimits,
    options: Options,
    clock: _Clock,
    earlier: EarlierFleet | None,
) -> _Chosen | Plan:
    """State the program of a spec and its candidates, and choose a fleet: the best, the earlier one, or one that is certified."""
    running = None if earlier is None else running_fleet(earlier, table)
    paid = frozenset(running.nodes) if running is not None else frozenset[str]()
    problem = fleet_problem(spec, table, gpu_limits(spec, catalog), paid)
    if options.write_lp is not None:
        _write_lp(problem, options.write_lp)
    search = _Search(context, table, problem, constants, limits, clock, options.tries_any_mix)
    keeper = None
    if running is not None:
        keeper = Keeper(running, spec, catalog, table, problem, constants, limits, _stay_within(spec, options))
    return _chosen(search, keeper) if options.certify is None else _certified(search, keeper, options.certify)


def _chosen(search: _Search, keeper: Keeper | None) -> _Chosen | Plan:
    """Find the best fleet, and keep the earlier one where that is worth it."""
    best = search.run()
    if isinstance(best, Plan) or keeper is None:
        return best if isinstance(best, Plan) else _Chosen(best)
    preference = keeper.decide(best.fleet)
    search.clock.lap("prefer")
    return _Chosen(best, preference)


def _certified(search: _Search, keeper: Keeper | None, settings: Settings) -> _Chosen | Plan:
    """Replay the fleet, lower what fails, and choose again until all pools hold; the last fleet where there is none."""
    replays = Replays(search.constants, settings, lambda: search.limits.is_over)
    steps: list[Tightening] = []
    chosen = first = _chosen(search, keeper)
    before: _Chosen | None = None
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
        tighter = _chosen(search, keeper)
        if isinstance(tighter, Plan):
            return _given_up(chosen, steps, NONE_HOLDS)
        chosen = tighter
    return chosen


def _given_up(chosen: _Chosen, steps: Sequence[Tightening], why: str) -> _Chosen:
    """Return the last fleet with its certificate, which says what was tried and why no other was found."""
    if chosen.certificate is None:
        return chosen
    update = {"tightened": tuple(steps), "gave_up": why}
    return replace(chosen, certificate=chosen.certificate.model_copy(update=update))


def _solve_periods(
    context: Context,
    catalog: Catalog,
    knowledge: Knowledge,
    memo: Memo,
    limits: SolveLimits,
    options: Options,
    clock: _Clock,
    earlier: EarlierFleet | None,
) -> Plan:
    """Find the best fleet for all periods at once, audit it in each of them, and put their plans together."""
    spec, constants = context.spec, knowledge.constants
    shapes, held_to = NOTHING_RUNS if earlier is None else earlier.shapes(), context.table.held_to

    def rated(changed: FleetSpec) -> CandidateTable:
        return build_table(changed, catalog, knowledge, memo, shapes, held_to)

    whole = expanded(spec, context.table, context.periods, rated)
    clock.lap("candidates by period")
    before, asked = None if earlier is None else by_periods(earlier, whole.parts), options
    if options.certify is not None:
        asked = replace(options, certify=in_periods(options.certify, whole.parts))
    chosen = _searched(context, whole.spec, whole.table, catalog, constants, limits, asked, clock, before)
    if isinstance(chosen, Plan):
        return chosen
    best = chosen.best
    found, packing = chosen.fleet.found, chosen.fleet.packing
    growth = growth_of(found.table, found.problem, found.solution, constants)
    parts: list[PeriodPlan] = []
    for part in whole.parts:
        own, nodes = in_period(part, found, packing)
        about = replace(context, spec=part.spec, table=own.table)
        drafts = draft_pools(own.table, own.pools, constants)
        least = growth_in(part, growth)
        plan = build_plan(about, own.problem, own.solution, nodes, drafts, constants, best.status, (), least)
        _refuse(audit(plan, part.spec, own.table, catalog, constants, own.reroutes), part.period.name)
        parts.append(PeriodPlan(part.period, plan))
    context = replace(context, table=replace(context.table, assumptions=(*context.table.assumptions, *best.rerated)))
    names = {node.offer for part in parts for node in part.plan.nodes}
    bought = [o for o in context.table.supply.offers if o.name in names]
    paid = None if earlier is None else earlier.usd_per_month
    policies = _policies(context, catalog, chosen.fleet.usd_per_h, bought, paid)
    plan = build_plan_of_periods(context, found.problem, found.solution, parts, best.status, policies)
    _refuse(audit_fold(plan, parts, spec, context.table, catalog))
    if chosen.certificate is not None:
        plan = with_certificate(plan, named_as_planned(chosen.certificate, whole.parts, found.pools, plan))
    return _with_outcome(plan, chosen, earlier, options, spec)


def _with_outcome(plan: Plan, chosen: _Chosen, earlier: EarlierFleet | None, options: Options, spec: FleetSpec) -> Plan:
    """Return a plan that says what became of the fleet that was to be kept, if one was."""
    if earlier is None or chosen.preference is None:
        return plan
    outcome = _outcome(plan, earlier, _stay_within(spec, options), chosen.best, chosen.preference)
    periods = [p.name for p in plan.periods] if len(plan.periods) > 1 else []
    reasons = tuple(in_words_of_periods(reason, periods) for reason in outcome.reasons)
    return with_preferred(plan, outcome.model_copy(update={"reasons": reasons}))


def _outcome(plan: Plan, earlier: EarlierFleet, stay_within: float, best: _Best, preference: Preference) -> Preferred:
    """Return what the plan says about the fleet that was to be kept."""
    planned, least = preference.fleet.usd_per_h, best.fleet.usd_per_h
    saving = max(0.0, planned - least)
    return Preferred(
        plan=earlier.digest,
        outcome=preference.outcome,
        stay_within=stay_within,
        best_usd_per_hour=least,
        would_save_usd_per_hour=saving,
        would_save=saving / least if least > 0.0 else 0.0,
        reasons=preference.reasons,
        changes=changes_between(earlier, plan),
    )


def _stay_within(spec: FleetSpec, options: Options) -> float:
    return spec.planning.stay_within if options.stay_within is None else options.stay_within


@dataclass
class _Search:
    """The search for the best fleet. It goes on from what is known when candidates turn out to bear less."""

    context: Context
    table: CandidateTable
    problem: FleetProblem
    constants: SpeedConstants
    limits: SolveLimits
    clock: _Clock
    tries_any_mix: bool = True
    _rating: Rating | None = None
    _answered: Answered | None = None

    def run(self) -> _Best | Plan:
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
                return _Best(Fleet(found, packing), status, tuple(_rerated(answered, outcome.solution)))
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


def _audited(
    context: Context,
    catalog: Catalog,
    best: _Best,
    fleet: Fleet,
    constants: SpeedConstants,
    earlier: EarlierFleet | None,
) -> Plan:
    """Return the plan of a fleet. Whether it is proven depends on the best one: what is kept is kept on purpose."""
    found, packing = fleet.found, fleet.packing
    spec = context.spec
    table = replace(found.table, assumptions=(*context.table.assumptions, *best.rerated))
    context = replace(context, table=table)
    bought = [o for o in table.supply.offers if o.name in packing.count()]
    before = None if earlier is None else earlier.usd_per_month
    policies = _policies(context, catalog, fleet.usd_per_h, bought, before)
    drafts = draft_pools(table, found.pools, constants)
    plan = build_plan(context, found.problem, found.solution, packing, drafts, constants, best.status, policies)
    _refuse(audit(plan, spec, table, catalog, constants, found.reroutes))
    return plan


def _policies(
    context: Context, catalog: Catalog, usd_per_h: float, bought: Sequence[PricedOffer], before: float | None
) -> tuple[PolicyResult, ...]:
    """Check the policies on a fleet; `before` is what the fleet costs that runs."""
    spec = context.spec
    facts = PlanFacts(usd_per_h * spec.planning.hours_per_month, bought, catalog, before)
    return evaluate(spec, facts, context.as_of)


def _refuse(violations: tuple[Violation, ...], period: str = "") -> None:
    """Refuse a plan that its audit finds wrong, in a period where one is named."""
    if violations:
        raise BrokenPlan(f"{f'in {period}: ' if period else ''}{in_words(violations)}")


def _write_lp(problem: FleetProblem, path: Path) -> None:
    from planner.program.fleet import write_lp

    write_lp(problem, path)


def spec_digest(loaded: LoadedSpec) -> str:
    """Return the digest of the text of a spec."""
    return sha256("\n".join(loaded.document.lines) if loaded.document is not None else "")


def _digests(prepared: Prepared, as_of: date, options: Options) -> Digests:
    catalog = prepared.catalog.digest()
    calibration = sha256(repr(sorted(prepared.catalog.calibration().items())))
    spec = spec_digest(prepared.loaded)
    brought = "".join(f"{entry.model_dump_json()}\n" for entry in prepared.catalog.added.values())
    kept = f"\n{options.prefer.plan.digests.plan} {options.stay_within}" if options.prefer is not None else ""
    kept += f"\n{options.periods} periods" if options.periods is not None else ""
    kept += f"\n{options.certify.text()}" if options.certify is not None else ""
    inputs = sha256(f"{spec}\n{catalog}\n{as_of.isoformat()}\n{options.gap}\n{__version__}{brought}{kept}")
    return Digests(spec=spec, catalog=catalog, calibration=calibration, inputs=inputs, plan="")


def _versions() -> Versions:
    return Versions(planner=__version__, pyomo=version("pyomo"), highs=version("highspy"))
