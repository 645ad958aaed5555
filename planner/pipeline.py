"""Join the stages: spec and catalog in, plan out. The only place that knows their order."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import date
from importlib.metadata import version
from pathlib import Path
from threading import Event

from planner import __version__
from planner.candidates.hours import hour_assumptions, periods_of
from planner.candidates.knowledge import Knowledge
from planner.candidates.periods import MARK, Expanded, expanded
from planner.candidates.ratings import Ratings
from planner.candidates.table import NOTHING_RUNS, Memo, build_table
from planner.candidates.types import CandidateTable
from planner.catalog import Catalog
from planner.choose import Best, Chosen, Clock, Progress, Search, choose, choose_certified
from planner.diagnostics import Diagnostic, DiagnosticError
from planner.explain.causes import cause_of
from planner.explain.change import Change
from planner.explain.infeasible import explain_infeasible
from planner.explain.trials import WAY_GAP, Trials, unserved
from planner.physics.constants import SpeedConstants
from planner.plan.api import with_apis
from planner.plan.audit import audit, in_words
from planner.plan.build import (
    Context,
    build_plan,
    build_plan_of_periods,
    infeasible_plan,
    with_certificate,
    with_policies,
    with_preferred,
)
from planner.plan.figures import Violation
from planner.plan.fold import PeriodPlan
from planner.plan.fold_audit import audit_fold
from planner.plan.growth import growth_of
from planner.plan.io import sha256
from planner.plan.periods import growth_in, in_period
from planner.plan.pools import draft_pools, pool_shape
from planner.plan.schema import Digests, InfeasibleReport, Plan, Preferred, Versions
from planner.policy import PlacedPolicy, PlanFacts, evaluate, placed
from planner.prefer.broken import Broken
from planner.prefer.changes import changes_between
from planner.prefer.earlier import EarlierFleet, PreferredPlan, deployed_fleet, on_nodes
from planner.prefer.earlier import in_periods as by_periods
from planner.prefer.keep import Fleet, Keeper, Preference
from planner.prefer.reasons import in_words_of_periods
from planner.prefer.running import running_fleet
from planner.prefer.settings import other_settings
from planner.prefer.standing import Terms, bases, standing
from planner.program.data import FleetProblem
from planner.program.problem import fleet_problem, gpu_limits
from planner.simulate.fleet import Settings
from planner.simulate.periods import in_periods, named_as_planned
from planner.simulate.run import check_traces
from planner.solve.fleet import SolveLimits
from planner.spec import FleetSpec, LoadedSpec
from planner.spec.variants import with_texts

NO_LIMIT = 1_000_000  # solves of variants that a user asks for one by one
NO_FLEET = "no fleet meets the spec, neither this one nor another"
NO_FLEET_FOUND = "no fleet was found that it could be compared with"
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
    `policies` are judged beside those of the spec. Without `explains`, nobody searches for ways out where no fleet meets a spec.
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


@dataclass(frozen=True)
class Prepared:
    """A spec with its catalog, ready to be planned."""

    loaded: LoadedSpec
    spec: FleetSpec
    catalog: Catalog


class BrokenPlan(RuntimeError):  # noqa: N818
    """A plan that its own audit refuses: a bug, never shown as solved."""


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
    ground = _ground(prepared, options, ratings)
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
            rough = replace(limits, gap=max(limits.gap, WAY_GAP))
            trials = replace(_trials(prepared, ground.knowledge, options, rough), memo=ground.memo)
            report = explain_infeasible(spec, ground.table, trials)
            if ground.table.has_mixes and not unserved(ground.table):
                report = report.model_copy(update={"reason": f"{report.reason}\n{RATED_MIXES}"})
            plan = infeasible_plan(ground.context, report)
            clock.lap("explain")
    if earlier is not None and plan.preferred is None:
        reasons = (NO_FLEET if plan.status == "infeasible" else NO_FLEET_FOUND,)
        within = _stay_within(spec, options)
        plan = with_preferred(
            plan, Preferred(plan=earlier.digest, outcome="not_possible", stay_within=within, reasons=reasons)
        )
    if plan.objective is None:
        return plan
    return _judged(with_apis(plan, ground.table.workloads), ground, options)


def _judged(plan: Plan, ground: _Ground, options: Options) -> Plan:
    """Return a plan with the outcome of the policies of its spec and of others; the fleet that runs is the baseline."""
    before = None if ground.earlier is None else ground.earlier.usd_per_month
    facts = PlanFacts(plan, ground.catalog, date.fromisoformat(plan.as_of), before)
    return with_policies(plan, evaluate((*placed(ground.spec.policies), *options.policies), facts))


@dataclass(frozen=True)
class Stood:
    """How a fleet that runs fares on the terms of `as_of`: its plan as it is, None where it breaks something.

    `rerouted` are the models whose traffic must be shared out otherwise than before for it to hold. `predicted_s` are latencies
    of a fleet that breaks something, by (workload, SLO key): the worst of any pool and period. `usd_per_month` is what its nodes
    cost at the prices of the day, None where some are not for sale any more. `digests` are those of what it was held against.
    """

    as_of: date
    digests: Digests
    usd_per_month: float | None
    plan: Plan | None
    broken: tuple[Broken, ...] = ()
    rerouted: tuple[str, ...] = ()
    predicted_s: Mapping[tuple[str, str], float] = field(default_factory=dict)


def stand(prepared: Prepared, options: Options) -> Stood:
    """Plan the fleet that runs, that of `options.prefer` or what the spec says is deployed, as it is: no other is searched for.

    Raises:
        DiagnosticError: the catalog or the calibration is incomplete, or nothing of that plan is of this spec.
        ValueError: nothing runs.
    """
    ground = _ground(prepared, options)
    if ground.earlier is None:
        raise ValueError("nothing runs: there is neither a plan nor anything deployed")
    whole = _whole(ground)
    earlier = _as_planned(ground, whole)
    spec, table = (ground.spec, ground.table) if whole is None else (whole.spec, whole.table)
    found = standing(earlier, Terms(spec, ground.catalog, table, ground.knowledge.constants, whole))
    usd_per_month = None if found.usd_per_h is None else found.usd_per_h * spec.planning.hours_per_month
    stood = Stood(ground.context.as_of, ground.context.digests, usd_per_month, None)
    broken = (*_settings(ground, options), *_without_candidates(ground), *found.broken)
    if found.fleet is None or broken:
        named = tuple(dict.fromkeys(_by_period(b, ground.context) for b in broken))
        return replace(stood, broken=named, predicted_s=found.predicted_s)
    plan = _planned(ground, found.whole, Best(found.fleet, "unproven", ()), found.fleet)
    return replace(stood, plan=_judged(plan, ground, options), rerouted=bases(found.rerouted, whole))


def _settings(ground: _Ground, options: Options) -> Iterator[Broken]:
    """Yield what the pools of a saved plan run with otherwise than the spec has it."""
    if options.prefer is None:
        return
    known = {(c.shape.model, c.shape.name): c.shape for c in ground.table.candidates}
    plan = options.prefer.plan
    shapes = {p.name: known[p.model, pool_shape(p)] for p in plan.pools if (p.model, pool_shape(p)) in known}
    yield from other_settings(plan, ground.table.models, shapes)


def _without_candidates(ground: _Ground) -> Iterator[Broken]:
    for workload in unserved(ground.table):
        cause = cause_of(ground.spec, ground.table, workload, ground.catalog)
        yield Broken("supply", workload, cause.reasons[0])


def _by_period(broken: Broken, context: Context) -> Broken:
    """Return what is broken with its period told apart from what it is about."""
    periods = [p.name for p in context.periods] if len(context.periods) > 1 else []
    period = next((p for p in periods if broken.subject.endswith(f"{MARK}{p}")), "")
    return replace(
        broken,
        reason=in_words_of_periods(broken.reason, periods),
        subject=broken.subject.removesuffix(f"{MARK}{period}") if period else broken.subject,
        key=in_words_of_periods(broken.key, periods),
        period=period,
    )


@dataclass(frozen=True)
class _Ground:
    """What planning stands on: the spec as of its day, its candidates, and the fleet that runs, if one is to be kept."""

    spec: FleetSpec
    catalog: Catalog
    knowledge: Knowledge
    memo: Memo
    table: CandidateTable
    context: Context
    earlier: EarlierFleet | None = None


def _ground(prepared: Prepared, options: Options, ratings: Ratings | None = None) -> _Ground:
    spec, catalog = _dated(prepared.spec, prepared.catalog, options), prepared.catalog
    earlier = deployed_fleet(spec, catalog) if options.prefer is None else options.prefer.fleet_for(spec)
    knowledge, memo = (Ratings() if ratings is None else ratings).of(catalog, spec.planning.confidence)
    table = build_table(spec, catalog, knowledge, memo, NOTHING_RUNS if earlier is None else earlier.shapes())
    earlier = None if earlier is None else on_nodes(earlier, spec, table)
    return _Ground(spec, catalog, knowledge, memo, table, _context(prepared, spec, table, options), earlier)


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
    assumed = (*table.assumptions, *hour_assumptions(spec, periods))
    table = replace(table, assumptions=assumed)
    return Context(spec, table, as_of, _digests(prepared, as_of, options), _versions(), periods)


def _trials(prepared: Prepared, knowledge: Knowledge, options: Options, limits: SolveLimits) -> Trials:
    """Return the means to plan variants of a spec within `limits`."""

    def plan_spec(spec: FleetSpec, table: CandidateTable) -> Plan:
        context, silent = _context(prepared, spec, table, options), Clock(lambda _stage, _s: None)
        asked = replace(options, write_lp=None, prefer=None, certify=None, tries_any_mix=False)
        return _solve_and_audit(_Ground(spec, prepared.catalog, knowledge, {}, table, context), limits, asked, silent)

    def read(changes: Sequence[Change]) -> FleetSpec | None:
        try:
            changed = prepare(with_texts(prepared.loaded, ((c.path, c.to) for c in changes)), prepared.catalog)
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


def _solve_and_audit(ground: _Ground, limits: SolveLimits, options: Options, clock: Clock) -> Plan:
    """Find the best fleet, keep the earlier one where that is worth it, and audit the plan.

    The plan of a spec without a fleet does not say yet what is in the way.
    """
    context = ground.context
    if lost := unserved(ground.table):
        return infeasible_plan(context, InfeasibleReport(reason=f"no candidate serves {', '.join(lost)}"))
    whole = _whole(ground)
    if whole is not None:
        clock.lap("candidates by period")
    chosen = _searched(ground, whole, limits, options, clock)
    if isinstance(chosen, Plan):
        return chosen
    plan = _planned(ground, whole, chosen.best, chosen.fleet)
    if chosen.certificate is not None:
        certificate = chosen.certificate
        if whole is not None:
            certificate = named_as_planned(certificate, whole.parts, chosen.fleet.found.pools, plan)
        plan = with_certificate(plan, certificate)
    before = ground.earlier if ground.earlier is None or whole is not None else ground.earlier.at_peak()
    return _with_outcome(plan, chosen, before, options, ground.spec)


def _whole(ground: _Ground) -> Expanded | None:
    """Return a spec of several periods with a copy of everything for each, None where all hours are planned as one."""
    if len(ground.context.periods) == 1:
        return None
    shapes = NOTHING_RUNS if ground.earlier is None else ground.earlier.shapes()

    def rated(changed: FleetSpec) -> CandidateTable:
        return build_table(changed, ground.catalog, ground.knowledge, ground.memo, shapes, ground.table.held_to)

    return expanded(ground.spec, ground.table, ground.context.periods, rated)


def _as_planned(ground: _Ground, whole: Expanded | None) -> EarlierFleet:
    """Return the fleet that runs at its peak, or as its copies for every period."""
    assert ground.earlier is not None
    return ground.earlier.at_peak() if whole is None else by_periods(ground.earlier, whole.parts)


def _searched(
    ground: _Ground, whole: Expanded | None, limits: SolveLimits, options: Options, clock: Clock
) -> Chosen | Plan:
    """State the program of a spec and its candidates, and choose a fleet: the best, the earlier one, or one that is certified."""
    spec, table = (ground.spec, ground.table) if whole is None else (whole.spec, whole.table)
    keeper = None
    if ground.earlier is not None:
        within = _stay_within(spec, options)
        keeper = _keeper(ground, spec, table, _as_planned(ground, whole), limits, within)
    problem = _problem(ground, spec, table) if keeper is None else keeper.problem
    if options.write_lp is not None:
        _write_lp(problem, options.write_lp)
    search = Search(ground.context, table, problem, ground.knowledge.constants, limits, clock, options.tries_any_mix)
    if options.certify is None:
        return choose(search, keeper)
    certify = options.certify if whole is None else in_periods(options.certify, whole.parts)
    return choose_certified(search, keeper, certify)


def _problem(
    ground: _Ground, spec: FleetSpec, table: CandidateTable, paid: frozenset[str] = frozenset()
) -> FleetProblem:
    return fleet_problem(spec, table, gpu_limits(spec, ground.catalog), paid)


def _keeper(
    ground: _Ground,
    spec: FleetSpec,
    table: CandidateTable,
    earlier: EarlierFleet,
    limits: SolveLimits,
    stay_within: float,
) -> Keeper:
    """Return what decides about a fleet that runs, with the program of a spec and its candidates."""
    running = running_fleet(earlier, table)
    problem = _problem(ground, spec, table, frozenset(running.nodes))
    return Keeper(running, spec, ground.catalog, table, problem, ground.knowledge.constants, limits, stay_within)


def _planned(ground: _Ground, whole: Expanded | None, best: Best, fleet: Fleet) -> Plan:
    """Return the audited plan of a fleet. Whether it is proven depends on the best one: what is kept is kept on purpose."""
    return _planned_at_peak(ground, best, fleet) if whole is None else _planned_by_period(ground, whole, best, fleet)


def _planned_at_peak(ground: _Ground, best: Best, fleet: Fleet) -> Plan:
    found, catalog, constants = fleet.found, ground.catalog, ground.knowledge.constants
    table = replace(found.table, assumptions=(*ground.context.table.assumptions, *best.rerated))
    context = replace(ground.context, table=table)
    drafts = draft_pools(table, found.pools, constants)
    plan = build_plan(context, found.problem, found.solution, fleet.packing, drafts, constants, best.status)
    _refuse(audit(plan, ground.spec, table, catalog, constants, found.reroutes))
    return plan


def _planned_by_period(ground: _Ground, whole: Expanded, best: Best, fleet: Fleet) -> Plan:
    """Audit a fleet in each period, and put the plans of the periods together."""
    catalog, constants, context = ground.catalog, ground.knowledge.constants, ground.context
    found, packing = fleet.found, fleet.packing
    growth = growth_of(found.table, found.problem, found.solution, constants)
    parts: list[PeriodPlan] = []
    for part in whole.parts:
        own, nodes = in_period(part, found, packing)
        about = replace(context, spec=part.spec, table=own.table)
        drafts = draft_pools(own.table, own.pools, constants)
        least = growth_in(part, growth)
        plan = build_plan(about, own.problem, own.solution, nodes, drafts, constants, best.status, least)
        _refuse(audit(plan, part.spec, own.table, catalog, constants, own.reroutes), part.period.name)
        parts.append(PeriodPlan(part.period, plan))
    context = replace(context, table=replace(context.table, assumptions=(*context.table.assumptions, *best.rerated)))
    plan = build_plan_of_periods(context, found.problem, found.solution, parts, best.status)
    _refuse(audit_fold(plan, parts, ground.spec, context.table, catalog))
    return plan


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
    kept += "".join(f"\n{each.file} {each.path} {each.policy.model_dump_json()}" for each in options.policies)
    inputs = sha256(f"{spec}\n{catalog}\n{as_of.isoformat()}\n{options.gap}\n{__version__}{brought}{kept}")
    return Digests(spec=spec, catalog=catalog, calibration=calibration, inputs=inputs, plan="")


def _versions() -> Versions:
    return Versions(planner=__version__, pyomo=version("pyomo"), highs=version("highspy"))
