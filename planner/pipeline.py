"""Join the stages: spec and catalog in, plan out. The only place that knows their order."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from datetime import date
from importlib.metadata import version
from pathlib import Path
from threading import Event

from planner import __version__
from planner.audited import planned, planned_by_case
from planner.candidates.growth import ByTerms, Step, growth_assumptions, steps_of
from planner.candidates.hours import hour_assumptions, periods_of
from planner.candidates.knowledge import Knowledge
from planner.candidates.periods import Case, Expanded
from planner.candidates.ratings import Ratings
from planner.candidates.table import NOTHING_RUNS, build_table
from planner.candidates.types import CandidateTable
from planner.catalog import Catalog
from planner.choose import Best, Chosen, Clock, Progress, Search, choose, choose_certified
from planner.diagnostics import Diagnostic, DiagnosticError
from planner.explain.change import Change
from planner.explain.infeasible import explain_infeasible
from planner.explain.trials import WAY_GAP, Trials, unserved
from planner.ground import Ground, Together, as_planned, problem_of, whole_of
from planner.physics.constants import SpeedConstants
from planner.plan.api import with_apis
from planner.plan.build import (
    Context,
    infeasible_plan,
    with_certificate,
    with_policies,
    with_preferred,
)
from planner.plan.io import sha256
from planner.plan.pools import pool_shape
from planner.plan.schema import Digests, InfeasibleReport, Plan, Preferred, Versions
from planner.policy import PlacedPolicy, PlanFacts, evaluate, placed
from planner.prefer.changes import changes_between
from planner.prefer.earlier import EarlierFleet, PreferredPlan, deployed_fleet, on_nodes
from planner.prefer.keep import Keeper, Preference
from planner.prefer.reasons import in_words_of_periods
from planner.prefer.running import running_fleet
from planner.program.data import FleetProblem
from planner.program.problem import on_no_more_nodes
from planner.simulate.fleet import Settings
from planner.simulate.periods import in_periods, named_as_planned
from planner.simulate.run import check_traces
from planner.solve.fleet import SolveLimits
from planner.solve.outcome import Solution
from planner.spec import FleetSpec, LoadedSpec
from planner.spec.variants import with_texts

NO_LIMIT = 1_000_000  # solves of variants that a user asks for one by one
NO_FLEET = "no fleet meets the spec, neither this one nor another"
NO_FLEET_FOUND = "no fleet was found that it could be compared with"
NO_FLEET_OF_ALL_STEPS = "every month has a fleet by itself, but no fleets of all months meet the limits together"
RATED_MIXES = (
    "pools that workloads share were tried in the mixes that they are rated for, then in any mix at what they carry in these: "
    "where a fleet just misses, another mix may hold"
)
Solving = Callable[[], AbstractContextManager[Event | None]]
"""Entered while fleets are searched for: when the event that it gives is set, the best fleet so far is the answer."""


@dataclass(frozen=True)
class Options:
    """What the command line adds to a spec. `time_limit_s` is wall time; a plan cut short by it is unproven.

    The fleet of `prefer`, by default what the spec says is deployed, is kept where it holds and the best one saves no more
    than `stay_within`, by default the spec's. Without `tries_any_mix`, pools that workloads share keep to mixes that are rated. With `certify`, the fleet is replayed so, and tightened until it holds.
    `policies` are judged beside those of the spec. With `nodes`, by offer, no others are bought, and no more of them. Without `explains`, nobody searches for ways out where no fleet meets a spec.
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
    policies: tuple[PlacedPolicy, ...] = ()
    explains: bool = True
    nodes: tuple[tuple[str, int], ...] | None = None


@dataclass(frozen=True)
class Prepared:
    """A spec with its catalog, ready to be planned."""

    loaded: LoadedSpec
    spec: FleetSpec
    catalog: Catalog


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
    prepared: Prepared,
    options: Options,
    progress: Progress = lambda _stage, _s: None,
    solving: Solving = nullcontext,
    ratings: Ratings | None = None,
) -> Plan:
    """Plan a fleet: candidates, program, solve, audit, policies.

    Models that are in `ratings`, and as they were then, are not rated again.

    Raises:
        DiagnosticError: the catalog or the calibration is incomplete, or nothing of the preferred plan is of this spec.
        BrokenPlan: the plan fails its audit.
    """
    clock = Clock(progress)
    ground = ground_of(prepared, options, ratings)
    spec, earlier = ground.spec, ground.earlier
    clock.lap("candidates")
    if options.certify is not None:
        check_traces(options.certify, ground.table)
    gap = options.gap if options.gap is not None else spec.planning.gap
    with solving() as interrupt:
        deadline_s = None if options.time_limit_s is None else time.monotonic() + options.time_limit_s
        limits = SolveLimits(gap, deadline_s=deadline_s, interrupt=interrupt)
        plan = _solve_and_audit(ground, limits, options, clock)
        clock.lap("plan")
        if plan.status == "infeasible" and options.explains:
            plan = infeasible_plan(ground.context, _explained(prepared, ground, limits, options))
            clock.lap("explain")
    if earlier is not None and plan.preferred is None:
        reasons = (NO_FLEET if plan.status == "infeasible" else NO_FLEET_FOUND,)
        within = _stay_within(spec, options)
        plan = with_preferred(
            plan, Preferred(plan=earlier.digest, outcome="not_possible", stay_within=within, reasons=reasons)
        )
    if plan.objective is None:
        return plan
    return judged(with_apis(plan, ground.table.workloads), ground, options)


def _explained(prepared: Prepared, ground: Ground, limits: SolveLimits, options: Options) -> InfeasibleReport:
    """Return why there is no fleet and what would make one; of a growing demand, in the first step that has none."""
    rough = replace(limits, gap=max(limits.gap, WAY_GAP))
    failing = _first_without_fleet(prepared, ground, rough, options)
    spec, table = (ground.spec, ground.table) if failing is None else (failing.spec, failing.table)
    step = None if failing is None else failing.name
    trials = replace(_trials(prepared, ground.knowledge, options, rough, step), memo=ground.memo)
    if ground.together is not None and failing is None:
        return InfeasibleReport(reason=NO_FLEET_OF_ALL_STEPS)
    report = explain_infeasible(spec, table, trials)
    if failing is not None and ground.together is not None:
        report = _of_step(report, next(s for s in ground.together.steps if s.name == failing.name))
    reason = report.reason
    if table.has_mixes and not unserved(table):
        reason = f"{reason}\n{RATED_MIXES}"
    return report.model_copy(update={"reason": reason})


def _of_step(report: InfeasibleReport, step: Step) -> InfeasibleReport:
    """Return why a step of a growing demand has no fleet, without the ways that change its demand: no key of the spec has that."""
    lost = {r.way for r in report.relaxations if ".traffic." in r.key}
    numbers = {way: i for i, way in enumerate(sorted({r.way for r in report.relaxations} - lost), 1)}
    left = tuple(r.model_copy(update={"way": numbers[r.way]}) for r in report.relaxations if r.way in numbers)
    why = f"{report.reason}, for that month" if left else "the keys below leave no fleet for it"
    reason = f"month {step.first_month} (from {step.due}) is the first without a fleet, at the demand that it has then: {why}"
    return report.model_copy(update={"reason": reason, "relaxations": left})


def _first_without_fleet(prepared: Prepared, ground: Ground, limits: SolveLimits, options: Options) -> Case | None:
    """Return the first step of a growing demand that has no fleet by itself, None where there is none."""
    if ground.together is None:
        return None
    asked = replace(options, write_lp=None)
    for case in ground.together.cases:
        context = _context(prepared, case.spec, case.table, options)
        alone = Ground(case.spec, ground.catalog, ground.knowledge, ground.memo, case.table, context)
        if _solve_and_audit(alone, limits, asked, Clock(lambda _stage, _s: None)).status == "infeasible":
            return case
    return None


def judged(plan: Plan, ground: Ground, options: Options) -> Plan:
    """Return a plan with the outcome of the policies of its spec and of others; the fleet that runs is the baseline."""
    before = None if ground.earlier is None else ground.earlier.usd_per_month
    facts = PlanFacts(plan, ground.catalog, date.fromisoformat(plan.as_of), before)
    return with_policies(plan, evaluate((*placed(ground.spec.policies), *options.policies), facts))


def ground_of(prepared: Prepared, options: Options, ratings: Ratings | None = None) -> Ground:
    spec, catalog = _dated(prepared.spec, prepared.catalog, options), prepared.catalog
    _check_growth(spec, options)
    earlier = deployed_fleet(spec, catalog) if options.prefer is None else options.prefer.fleet_for(spec)
    knowledge, memo = (Ratings() if ratings is None else ratings).of(catalog, spec.planning.confidence)
    table = build_table(spec, catalog, knowledge, memo, NOTHING_RUNS if earlier is None else earlier.shapes())
    earlier = None if earlier is None else on_nodes(earlier, spec, table)
    context = _context(prepared, spec, table, options)
    return _grown(Ground(spec, catalog, knowledge, memo, table, context, earlier))


def _grown(ground: Ground) -> Ground:
    """Return the ground of a growing demand with its steps, as it is where nothing grows."""
    spec = ground.spec
    steps = steps_of(spec)
    if not steps or spec.growth is None:
        return ground
    cases: list[Case] = []
    for step in steps:
        table = build_table(step.spec, ground.catalog, ground.knowledge, ground.memo, held_to=ground.table.held_to)
        cases.append(Case(step.name, step.spec, ground.catalog, table, periods_of(step.spec), step.share))
    buying = ByTerms(spec.growth, ground.table.supply)
    return replace(ground, table=cases[0].table, together=Together(tuple(cases), buying, steps))


def _check_growth(spec: FleetSpec, options: Options) -> None:
    """Refuse what a plan of months ahead cannot say. Raises `DiagnosticError`."""
    if spec.growth is None:
        return
    asked = {
        "limit shares of the cost (`supply.limits.rules`) so far": any(
            rule.share is not None for rule in spec.supply.limits.rules
        ),
        "keep a fleet that runs": options.prefer is not None or bool(spec.deployed),
        "be certified by a replay": options.certify is not None,
    }
    for what, is_asked in asked.items():
        if is_asked:
            message = f"a plan of months ahead (`growth`) cannot {what}; remove `growth` for that"
            raise DiagnosticError([Diagnostic("plan/growth", message)])


def today(prepared: Prepared) -> Prepared:
    """Return a spec without the months ahead: the demand of today alone."""
    return replace(prepared, spec=prepared.spec.model_copy(update={"growth": None}))


def planned_together(
    ground: Ground, options: Options, limits: SolveLimits, clock: Clock
) -> tuple[tuple[Plan, ...], Solution] | Plan:
    """Return the audited plans of the cases of a ground, in their order, and the solution that they are of; or why there are none.

    Raises `BrokenPlan` where one fails its audit.
    """
    whole = whole_of(ground)
    if whole is None or ground.together is None:
        raise ValueError("there is nothing to plan together")
    for case in ground.cases:
        if lost := unserved(case.table):
            return infeasible_plan(
                ground.context, InfeasibleReport(reason=f"{case.name}: no candidate serves {', '.join(lost)}")
            )
    chosen = _searched(ground, whole, limits, options, clock)
    if isinstance(chosen, Plan):
        return chosen
    return planned_by_case(ground, whole, chosen.best, chosen.fleet), chosen.fleet.found.solution


def variants(prepared: Prepared, plan: Plan) -> tuple[FleetSpec, Trials]:
    """Return the spec of a plan as of its day, and the means to plan variants of it to the gap of that plan."""
    options = Options(as_of=date.fromisoformat(plan.as_of), periods=len(plan.periods))
    spec = _dated(prepared.spec, prepared.catalog, options)
    reached = plan.objective.gap if plan.objective is not None else 0.0
    knowledge = Knowledge.of(prepared.catalog, spec.planning.confidence)
    limits = SolveLimits(max(reached, spec.planning.gap))
    first = next(iter(steps_of(spec)), None)
    trials = _trials(prepared, knowledge, options, limits, None if first is None else first.name)
    return spec if first is None else first.spec, replace(trials, most_solves=NO_LIMIT)


def replayable(prepared: Prepared, plan: Plan) -> tuple[CandidateTable, SpeedConstants]:
    """Return the candidates of the spec of a plan, those of its pools among them, and the constants that it was made with.

    Raises `DiagnosticError` where a pool is no candidate, as a plan of another release may have it.
    """
    spec = _dated(prepared.spec, prepared.catalog, Options(as_of=date.fromisoformat(plan.as_of)))
    knowledge = Knowledge.of(prepared.catalog, spec.planning.confidence)
    models = sorted({p.model for p in plan.pools})
    running = {m: frozenset(pool_shape(p) for p in plan.pools if p.model == m) for m in models}
    table = build_table(spec, prepared.catalog, knowledge, None, running)
    known = {(c.shape.model, c.shape.name) for c in table.candidates}
    lost = [p.name for p in plan.pools if (p.model, pool_shape(p)) not in known]
    if lost:
        message = f"this release would not consider pool {lost[0]} of a plan by release {plan.versions.planner}; solve it again"
        raise DiagnosticError([Diagnostic("plan/other-release", message)])
    return table, knowledge.constants


def _context(prepared: Prepared, spec: FleetSpec, table: CandidateTable, options: Options) -> Context:
    """Return what a plan says about where it comes from."""
    as_of = spec.planning.as_of or prepared.catalog.newest_price_date()
    periods = periods_of(spec)
    assumed = (*table.assumptions, *hour_assumptions(spec, periods), *growth_assumptions(spec))
    table = replace(table, assumptions=assumed)
    return Context(spec, table, as_of, _digests(prepared, as_of, options), _versions(), periods)


def _trials(
    prepared: Prepared, knowledge: Knowledge, options: Options, limits: SolveLimits, step: str | None = None
) -> Trials:
    """Return the means to plan variants of a spec within `limits`: of today, or of one step where its demand grows."""

    def plan_spec(spec: FleetSpec, table: CandidateTable) -> Plan:
        context, silent = _context(prepared, spec, table, options), Clock(lambda _stage, _s: None)
        asked = replace(options, write_lp=None, prefer=None, certify=None, tries_any_mix=False)
        return _solve_and_audit(Ground(spec, prepared.catalog, knowledge, {}, table, context), limits, asked, silent)

    def read(changes: Sequence[Change]) -> FleetSpec | None:
        try:
            changed = prepare(with_texts(prepared.loaded, ((c.path, c.to) for c in changes)), prepared.catalog)
        except DiagnosticError:
            return None
        dated = _dated(changed.spec, prepared.catalog, options)
        return dated if step is None else next((s.spec for s in steps_of(dated) if s.name == step), None)

    return Trials(prepared.catalog, knowledge, plan_spec, read, limits)


def _dated(spec: FleetSpec, catalog: Catalog, options: Options) -> FleetSpec:
    """Return the spec with the date that ages prices, ends offers and waivers, and its periods: those of the options first."""
    as_of = options.as_of or spec.planning.as_of or catalog.newest_price_date()
    periods = spec.planning.periods if options.periods is None else options.periods
    planning = spec.planning.model_copy(update={"as_of": as_of, "periods": periods})
    return spec.model_copy(update={"planning": planning})


def _solve_and_audit(ground: Ground, limits: SolveLimits, options: Options, clock: Clock) -> Plan:
    """Find the best fleet, keep the earlier one where that is worth it, and audit the plan.

    The plan of a spec without a fleet does not say yet what is in the way.
    """
    context = ground.context
    if lost := unserved(ground.table):
        return infeasible_plan(context, InfeasibleReport(reason=f"no candidate serves {', '.join(lost)}"))
    whole = whole_of(ground)
    if whole is not None:
        clock.lap("candidates by period")
    chosen = _searched(ground, whole, limits, options, clock)
    if isinstance(chosen, Plan):
        return chosen
    plan = planned(ground, whole, chosen.best, chosen.fleet)
    if chosen.certificate is not None:
        certificate = chosen.certificate
        if whole is not None:
            certificate = named_as_planned(certificate, whole.parts, chosen.fleet.found.pools, plan)
        plan = with_certificate(plan, certificate)
    before = ground.earlier if ground.earlier is None or whole is not None else ground.earlier.at_peak()
    return _with_outcome(plan, chosen, before, options, ground.spec)


def _searched(
    ground: Ground, whole: Expanded | None, limits: SolveLimits, options: Options, clock: Clock
) -> Chosen | Plan:
    """State the program of a spec and its candidates, and choose a fleet: the best, the earlier one, or one that is certified."""
    spec, table = (ground.spec, ground.table) if whole is None else (whole.spec, whole.table)
    keeper = None
    if ground.earlier is not None:
        within = _stay_within(spec, options)
        keeper = _keeper(ground, spec, table, as_planned(ground.earlier, whole), limits, within)
    problem = problem_of(ground, spec, table) if keeper is None else keeper.problem
    if options.nodes is not None:
        problem = on_no_more_nodes(problem_of(ground, spec, table, frozenset(dict(options.nodes))), options.nodes)
    if options.write_lp is not None:
        _write_lp(problem, options.write_lp)
    search = Search(ground.context, table, problem, ground.knowledge.constants, limits, clock, options.tries_any_mix)
    if options.certify is None:
        return choose(search, keeper)
    certify = options.certify if whole is None else in_periods(options.certify, whole.parts)
    return choose_certified(search, keeper, certify)


def _keeper(
    ground: Ground,
    spec: FleetSpec,
    table: CandidateTable,
    earlier: EarlierFleet,
    limits: SolveLimits,
    stay_within: float,
) -> Keeper:
    """Return what decides about a fleet that runs, with the program of a spec and its candidates."""
    running = running_fleet(earlier, table)
    problem = problem_of(ground, spec, table, frozenset(running.nodes))
    return Keeper(running, spec, ground.catalog, table, problem, ground.knowledge.constants, limits, stay_within)


def _with_outcome(plan: Plan, chosen: Chosen, earlier: EarlierFleet | None, options: Options, spec: FleetSpec) -> Plan:
    """Return a plan that says what became of the fleet that was to be kept, if one was."""
    if earlier is None or chosen.preference is None:
        return plan
    outcome = _outcome(plan, earlier, _stay_within(spec, options), chosen.best, chosen.preference)
    periods = [p.name for p in plan.periods] if len(plan.periods) > 1 else []
    reasons = tuple(in_words_of_periods(reason, periods) for reason in outcome.reasons)
    return with_preferred(plan, outcome.model_copy(update={"reasons": reasons}))


def _outcome(plan: Plan, earlier: EarlierFleet, stay_within: float, best: Best, preference: Preference) -> Preferred:
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
    kept += "".join(f"\n{each.file} {each.path} {each.policy.model_dump_json()}" for each in options.policies)
    inputs = sha256(f"{spec}\n{catalog}\n{as_of.isoformat()}\n{options.gap}\n{__version__}{brought}{kept}")
    return Digests(spec=spec, catalog=catalog, calibration=calibration, inputs=inputs, plan="")


def _versions() -> Versions:
    return Versions(planner=__version__, pyomo=version("pyomo"), highs=version("highspy"))
