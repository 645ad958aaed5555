"""`planner solve`: plan the fleet of a spec: the cheapest one that meets it, with its proof."""

from __future__ import annotations

import shlex
import time
from dataclasses import dataclass, replace
from datetime import date
from enum import StrEnum
from functools import partial
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Annotated

import typer

from planner.cli.delivery import Delivery
from planner.cli.executors import working_at
from planner.cli.exits import ExitCode, first_of
from planner.cli.inputs import catalog_for, read_plan, read_policies, read_spec, refuse, report
from planner.cli.interrupts import asking_to_stop
from planner.cli.options import (
    AsOfOption,
    CatalogOption,
    Color,
    ColorOption,
    FormatOption,
    GapOption,
    OutOption,
    PlanFormat,
    PoliciesOption,
    QuietOption,
    StdinNameOption,
    day,
    flag,
    quantity,
)
from planner.cli.page import SensitivitiesOption, check_sensitivities, page_origin
from planner.cli.scenarios import (
    DrawnOption,
    HoldInOption,
    Scenarios,
    ScenariosOption,
    SolveExecutorOption,
    scenarios_of,
)
from planner.cli.simulate import (
    DropLongOption,
    ReplicationsOption,
    ScalingName,
    ScalingOption,
    SeedOption,
    TraceOption,
    read_traces,
)
from planner.cli.streams import STANDARD, answer, check_writable, note, note_lines, usage_error

if TYPE_CHECKING:
    from planner.catalog import Catalog
    from planner.pipeline import Options
    from planner.plan.schema import Plan
    from planner.policy import PlacedPolicy
    from planner.prefer.earlier import PreferredPlan
    from planner.second_opinion import Reviewer
    from planner.simulate.fleet import Settings
    from planner.spec import LoadedSpec


class SecondOpinion(StrEnum):
    """Whose second opinion to ask for: an optional library each."""

    AICONFIGURATOR = "aiconfigurator"


TimeLimitOption = Annotated[
    str | None, flag("--time-limit", "Stop after this time, such as 60s, with the best plan so far.", metavar="TIME")
]
PreferOption = Annotated[
    str | None, flag("--prefer", "Keep the fleet of this plan unless the best one saves more.", metavar="PLAN")
]
StayWithinOption = Annotated[
    str | None,
    flag("--stay-within", "With --prefer: what keeping may cost more than the best fleet.", metavar="SHARE"),
]
SecondOpinionOption = Annotated[
    SecondOpinion | None,
    flag("--second-opinion", "Ask another model of speed about the pools, and price the difference."),
]
PeriodsOption = Annotated[
    int | None,
    flag("--periods", "Periods that the hours of hourly demand are put together into.", metavar="COUNT", min=1, max=24),
]
WriteLpOption = Annotated[Path | None, flag("--write-lp", "Write the program as an LP file.", metavar="FILE")]


def solve(
    spec: Annotated[str, typer.Argument(metavar="SPEC", help="A spec, git:REF:PATH, or - for stdin.")],
    format: FormatOption = None,
    out: OutOption = None,
    as_of: AsOfOption = None,
    gap: GapOption = None,
    periods: PeriodsOption = None,
    time_limit: TimeLimitOption = None,
    prefer: PreferOption = None,
    stay_within: StayWithinOption = None,
    certify: Annotated[
        bool, flag("--certify", "Replay the fleet, and tighten what fails until every limit holds.")
    ] = False,
    trace: TraceOption = None,
    trace_scaling: ScalingOption = ScalingName.COMPRESSED,
    drop_long: DropLongOption = False,
    seed: SeedOption = 1,
    replications: ReplicationsOption = 5,
    policies: PoliciesOption = None,
    scenarios: ScenariosOption = None,
    hold_in: HoldInOption = None,
    drawn: DrawnOption = None,
    executor: SolveExecutorOption = "local",
    accept_unproven: Annotated[
        bool, flag("--accept-unproven", "Exit with 0 also when the gap is not reached.")
    ] = False,
    second_opinion: SecondOpinionOption = None,
    sensitivities: SensitivitiesOption = False,
    write_lp: WriteLpOption = None,
    show_config: Annotated[
        bool, flag("--show-config", "Print every setting and where it comes from, and stop.")
    ] = False,
    catalog: CatalogOption = None,
    stdin_filename: StdinNameOption = None,
    color: ColorOption = Color.AUTO,
    quiet: QuietOption = False,
) -> None:
    """Plan the fleet of a spec: the cheapest that meets every limit, proven and explained.

    Example: planner solve specs/prod.yaml
    """
    asked = scenarios_of(scenarios, hold_in, drawn, executor, seed, spec)
    read = [spec, *(policies or [])]  # and not the plan of --prefer, which the new one may replace
    delivery = Delivery.of(format, out, color, quiet, read)
    check_sensitivities(sensitivities, delivery)
    if write_lp is not None:
        check_writable(write_lp, read)
    flags = _Flags(
        day("--as-of", as_of),
        quantity("--gap", gap, "share"),
        time_limit_s(time_limit),
        write_lp,
        stay_within=quantity("--stay-within", stay_within, "share"),
        prefer=_preferred(prefer, spec),
        periods=periods,
    )
    reviewer = _reviewer(second_opinion)
    if trace and not certify:
        usage_error("--trace: it is what --certify replays; give both, or replay a plan with planner simulate")
    loaded = read_spec(spec, stdin_filename)
    opened = _checked(loaded, catalog, quiet)
    if flags.stay_within is not None and flags.prefer is None and not (loaded.spec and loaded.spec.deployed):
        usage_error("--stay-within: it says what keeping a fleet may cost; give its plan with --prefer")
    if spec == STANDARD and STANDARD in (policies or []):
        usage_error("--policies: standard input is the spec already; give the policies as a file")
    flags = replace(flags, policies=read_policies(policies or [], opened, quiet))
    if show_config:
        answer(_config(loaded, opened, flags))
        return
    if certify:
        flags = replace(
            flags, certify=_replay(loaded, trace or [], trace_scaling, drop_long, seed, replications, quiet)
        )
    interrupt = Event()
    if asked is None:
        with working_at(executor):
            plan = _plan(loaded, opened, flags, quiet, interrupt)
    else:
        _check_alone(loaded, certify, prefer)
        plan = _robust(asked, loaded, opened, catalog, flags, quiet, interrupt)
    if interrupt.is_set() and plan.unsolved is not None:
        raise typer.Exit(ExitCode.INTERRUPTED)
    from planner.pipeline import prepare
    from planner.report.places import origin_of

    if write_lp is not None and not quiet:
        note(f"wrote {write_lp}")
    section = _reviewed(plan, loaded, opened, reviewer, quiet)
    after = _next(plan, spec, delivery)
    if delivery.shown is PlanFormat.TABLE:
        after = f"{section}\n\n{after}" if section else after
    if delivery.is_page:
        origin = page_origin(prepare(loaded, opened), plan, sensitivities and not interrupt.is_set(), quiet)
    else:
        origin = origin_of(loaded)
    delivery.deliver(plan, origin, after)
    if section and delivery.shown is not PlanFormat.TABLE:
        note_lines(section)
    raise typer.Exit(ExitCode.INTERRUPTED if interrupt.is_set() else exit_code(plan, accept_unproven))


def exit_code(plan: Plan, accept_unproven: bool) -> ExitCode:
    """Return what a plan means to scripts."""
    applies = {
        ExitCode.INFEASIBLE: plan.status == "infeasible" or not _held(plan),
        ExitCode.UNPROVEN: plan.status == "unproven" and not accept_unproven,
        ExitCode.DENIED: any(policy.outcome == "deny" for policy in plan.policies),
    }
    return first_of(code for code, is_so in applies.items() if is_so)


def _held(plan: Plan) -> bool:
    """Tell whether no replay of a plan missed a limit."""
    return plan.certificate is None or plan.certificate.replayed.verdict in ("pass", "inconclusive")


def _replay(
    loaded: LoadedSpec,
    trace: list[str],
    scaling: ScalingName,
    drop_long: bool,
    seed: int,
    replications: int,
    quiet: bool,
) -> Settings:
    """Return how the fleet is to be replayed. Leaves with the exit code of wrong input where a trace cannot be used."""
    from planner.diagnostics import DiagnosticError
    from planner.simulate.fleet import Settings
    from planner.simulate.traffic import Scaling

    try:
        traces = read_traces(trace, list(loaded.spec.workloads) if loaded.spec is not None else [], quiet)
    except DiagnosticError as error:
        refuse(error.diagnostics)
    return Settings(seed=seed, replications=replications, traces=traces, scaling=Scaling(scaling), drop_long=drop_long)


@dataclass(frozen=True)
class _Flags:
    """The flags that change a plan, in base units."""

    as_of: date | None
    gap: float | None
    time_limit_s: float | None
    write_lp: Path | None
    prefer: PreferredPlan | None
    stay_within: float | None
    periods: int | None
    certify: Settings | None = None
    policies: tuple[PlacedPolicy, ...] = ()

    def options(self) -> Options:
        """Return them as the pipeline takes them."""
        from planner.pipeline import Options

        return Options(
            self.as_of,
            self.gap,
            self.time_limit_s,
            self.write_lp,
            self.prefer,
            self.stay_within,
            self.periods,
            self.certify,
            policies=self.policies,
        )


def time_limit_s(time_limit: str | None) -> float | None:
    """Return the value of --time-limit in seconds. Leaves with a usage error."""
    limit_s = quantity("--time-limit", time_limit, "time")
    if limit_s is not None and limit_s <= 0.0:
        usage_error("--time-limit: give more than no time, such as `60s`")
    return limit_s


def _preferred(path: str | None, spec: str) -> PreferredPlan | None:
    """Read the plan to prefer. Leaves with the exit code of wrong input when it is none."""
    if path is None:
        return None
    if path == spec == STANDARD:
        usage_error("--prefer: standard input is the spec already; give the plan as a file")
    from planner.diagnostics import DiagnosticError
    from planner.prefer.earlier import PreferredPlan

    try:
        return PreferredPlan(read_plan(path), path)
    except DiagnosticError as error:
        refuse(error.diagnostics)


def _checked(loaded: LoadedSpec, folder: Path | None, quiet: bool) -> Catalog:
    """Return the catalog for a spec without mistakes. Leaves with all mistakes printed, before anything heavy is loaded."""
    from planner.candidates.references import check_references
    from planner.diagnostics import DiagnosticError, has_errors

    try:
        catalog = catalog_for(loaded, folder)
    except DiagnosticError as error:
        refuse([*loaded.diagnostics, *error.diagnostics], loaded)
    found = loaded.diagnostics if loaded.document is None else (*loaded.diagnostics, *check_references(loaded, catalog))
    if loaded.spec is None or has_errors(found):
        refuse(found, loaded)
    if not quiet:
        report(found, loaded)
    return catalog


def _config(loaded: LoadedSpec, catalog: Catalog, flags: _Flags) -> str:
    from planner.report.config import render_config

    return render_config(loaded, catalog, flags.options())


def _plan(loaded: LoadedSpec, catalog: Catalog, flags: _Flags, quiet: bool, interrupt: Event) -> Plan:
    """Plan a fleet. The first Ctrl-C while one is searched for sets `interrupt` and ends the search."""
    from planner.diagnostics import DiagnosticError
    from planner.pipeline import make_plan, prepare

    try:
        solving = partial(asking_to_stop, interrupt)
        return make_plan(prepare(loaded, catalog), flags.options(), partial(_progress, quiet), solving)
    except DiagnosticError as error:
        refuse(error.diagnostics, loaded)


def _robust(
    asked: Scenarios,
    loaded: LoadedSpec,
    catalog: Catalog,
    folder: Path | None,
    flags: _Flags,
    quiet: bool,
    interrupt: Event,
) -> Plan:
    """Plan nodes that hold in scenarios; see `_plan`."""
    from planner.diagnostics import DiagnosticError

    try:
        solving = partial(asking_to_stop, interrupt)
        return asked.plan(loaded, catalog, folder, flags.options(), partial(_progress, quiet), solving)
    except DiagnosticError as error:
        refuse(error.diagnostics, loaded)


def _progress(quiet: bool, stage: str, seconds: float) -> None:
    if not quiet:
        note(f"{stage} {seconds:.2f} s")


def _check_alone(loaded: LoadedSpec, certify: bool, prefer: str | None) -> None:
    """Leave with a usage error where something is asked for that is about one fleet in one case."""
    spec = loaded.spec
    named = {
        "--certify": certify,
        "--prefer": prefer is not None,
        "`growth` in the spec": spec is not None and spec.growth is not None,
        "`deployed` in the spec": spec is not None and bool(spec.deployed),
        "`prefer` of a model": spec is not None and any(m.prefer is not None for m in spec.models.values()),
        "limits on shares of the cost": spec is not None and any(r.share is not None for r in spec.supply.limits.rules),
    }
    for name, is_given in named.items():
        if is_given:
            usage_error(f"--scenarios: it does not go with {name} so far")


def _reviewer(asked: SecondOpinion | None) -> Reviewer | None:
    """Return who is asked for a second opinion. Leaves with a usage error, before anything is solved, where it is absent."""
    if asked is None:
        return None
    from planner.second_opinion import Absent
    from planner.second_opinion.aiconfigurator import Aiconfigurator

    try:
        return Aiconfigurator.load()
    except Absent as error:
        usage_error(f"--second-opinion: {error}")


def _reviewed(plan: Plan, loaded: LoadedSpec, catalog: Catalog, reviewer: Reviewer | None, quiet: bool) -> str:
    """Return the section with the second opinion on a plan, empty where none was asked for or there are no pools."""
    if reviewer is None or loaded.spec is None or not plan.pools:
        return ""
    from planner.report.second_opinion import render
    from planner.second_opinion import review

    started = time.perf_counter()
    found = review(plan, loaded.spec, catalog, reviewer)
    if not quiet:
        note(f"second opinion {time.perf_counter() - started:.2f} s")
    return render(found)


def _next(plan: Plan, spec: str, delivery: Delivery) -> str:
    """Return the line that says what to do with the plan."""
    command = f"planner solve {shlex.quote(spec)}"
    if plan.status == "infeasible":
        return f"Next: change one of these keys, then {command}"
    if delivery.file is None:
        return f"Next: {command} --out plan.json, then planner show plan.json --out report.html"
    if delivery.saved is PlanFormat.JSON:
        return f"Next: planner show {shlex.quote(str(delivery.file))} --out report.html"
    return f"Next: {command} --out plan.json"
