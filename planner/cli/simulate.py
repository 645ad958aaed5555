"""`planner simulate`: replay a plan request by request, on real or drawn traffic, and say which limits hold."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from planner.cli.delivery import check_out, hand_over
from planner.cli.exits import ExitCode
from planner.cli.inputs import read_plan, refuse
from planner.cli.options import CatalogOption, Color, ColorOption, QuietOption, flag, quantity
from planner.cli.plan_spec import SpecOption, check_fleet, prepared
from planner.cli.streams import note, usage_error

if TYPE_CHECKING:
    from planner.plan.replayed import Replayed
    from planner.plan.schema import Plan
    from planner.simulate.trace import Trace


class ReplayFormat(StrEnum):
    """How a replay is printed."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"


class RouterName(StrEnum):
    """Which engine of a pool gets the next request."""

    LEAST_OUTSTANDING = "least-outstanding"
    ROUND_ROBIN = "round-robin"
    SHORTEST_KV = "shortest-kv"


class BatchingName(StrEnum):
    """How prompts and answers share the steps of an engine."""

    CHUNKED = "chunked"
    PROMPTS_FIRST = "prompts-first"
    STATIC = "static"


class ScalingName(StrEnum):
    """How a trace is brought to the rate of its workload."""

    COMPRESSED = "compressed"
    COPIES = "copies"


TraceOption = Annotated[
    list[str] | None,
    flag("--trace", "Arrivals and lengths of a workload from a file; repeatable.", metavar="[WORKLOAD=]FILE"),
]
ScalingOption = Annotated[
    ScalingName, flag("--trace-scaling", "Compress the time of a trace, or lay shifted copies over each other.")
]
DropLongOption = Annotated[
    bool, flag("--drop-long", "Leave out requests of a trace that are longer than max_model_len, however many.")
]
SeedOption = Annotated[int, flag("--seed", "Seed of everything that is drawn.", metavar="NUMBER", min=0)]
ReplicationsOption = Annotated[
    int, flag("--replications", "Times that everything is drawn anew.", metavar="COUNT", min=1, max=1000)
]
DurationOption = Annotated[
    str | None,
    flag("--duration", "Length of one replication; default: 40,000 requests a pool, or the trace.", metavar="TIME"),
]


def simulate(
    plan: Annotated[str, typer.Argument(metavar="PLAN", help="A saved plan, git:REF:PATH, or - for stdin.")],
    trace: TraceOption = None,
    trace_scaling: ScalingOption = ScalingName.COMPRESSED,
    drop_long: DropLongOption = False,
    duration: DurationOption = None,
    seed: SeedOption = 1,
    replications: ReplicationsOption = 5,
    router: Annotated[
        RouterName, flag("--router", "Which replica of a pool gets the next request.")
    ] = RouterName.LEAST_OUTSTANDING,
    batching: Annotated[
        BatchingName | None, flag("--batching", "How engines batch; default: as the engine settings of the spec say.")
    ] = None,
    period: Annotated[
        str | None, flag("--period", "Replay one period of the plan; default: all of them.", metavar="NAME")
    ] = None,
    by_hour: Annotated[
        bool, flag("--by-hour", "Follow hourly demand through a day, or a week, instead of its peak.")
    ] = False,
    fail_at: Annotated[
        str | None, flag("--fail-at", "Let a replica fail after this time, such as 10min.", metavar="TIME")
    ] = None,
    fail_pool: Annotated[
        list[str] | None,
        flag("--fail-pool", "With --fail-at: its pool; default: the largest of each model.", metavar="POOL"),
    ] = None,
    spec: SpecOption = None,
    catalog: CatalogOption = None,
    format: Annotated[ReplayFormat, typer.Option("--format", help="How to print the replay.")] = ReplayFormat.TABLE,
    out: Annotated[str | None, flag("--out", "Save the answer in this file.", "-o", metavar="FILE")] = None,
    color: ColorOption = Color.AUTO,
    quiet: QuietOption = False,
) -> None:
    """Replay a plan request by request, and say which latency limits hold on real or drawn traffic.

    Example: planner simulate plan.json --trace assistant=traffic.csv

    Exits with 3 when a limit does not hold, or a pool cannot keep up.
    """
    from planner.diagnostics import DiagnosticError
    from planner.pipeline import replayable
    from planner.simulate.fleet import Settings
    from planner.simulate.run import check_failure, check_traces, replay_plan
    from planner.simulate.traffic import Scaling
    from planner.simulate.types import Batching, Router

    if fail_pool and fail_at is None:
        usage_error("--fail-pool: it says where --fail-at happens; give both")
    check_out(out, [plan, *([spec] if spec else []), *(given.rpartition("=")[2] for given in trace or [])])
    try:
        saved = read_plan(plan)
        check_fleet(saved, plan, "replay")
        settings = Settings(
            seed=seed,
            replications=replications,
            duration_s=_time("--duration", duration),
            router=Router(router.replace("-", "_")),
            batching=None if batching is None else Batching(batching.replace("-", "_")),
            traces=read_traces(trace or [], [w.name for w in saved.workloads], quiet),
            scaling=Scaling(trace_scaling),
            drop_long=drop_long,
            by_hour=by_hour,
            fail_at_s=_time("--fail-at", fail_at),
            failing=_known_pools(saved, fail_pool or []),
        )
        _check_period(saved, period)
        if by_hour and len(saved.periods) > 1:
            usage_error("--by-hour: this plan has other replicas in other periods; plan it with `--periods 1`")
        if by_hour and (duration is not None or trace):
            usage_error(
                "--by-hour: the length and the arrivals are those of the hours; leave out --duration and --trace"
            )
        table, constants = replayable(prepared(saved, plan, spec, catalog), saved)
        check_traces(settings, table)
        check_failure(saved, settings)
        found = replay_plan(saved, table, constants, settings, period)
    except DiagnosticError as error:
        refuse(error.diagnostics)
    hand_over(out, color, quiet, lambda colored, width: _text(found, saved.fleet, format, colored, width))
    raise typer.Exit(ExitCode.INFEASIBLE if found.verdict in ("fail", "unstable") else ExitCode.DONE)


def _time(name: str, text: str | None) -> float | None:
    value = quantity(name, text, "time")
    if value is not None and value <= 0.0:
        usage_error(f"{name}: give more than no time, such as `10min`")
    return value


def read_traces(given: list[str], workloads: list[str], quiet: bool) -> dict[str, Trace]:
    """Read the traces of `--trace`. Leaves with a usage error where one names no workload. Raises `DiagnosticError`."""
    from planner.simulate.trace import read_trace

    found: dict[str, Trace] = {}
    for text in given:
        name, path = _named_file(text, workloads)
        if name in found:
            usage_error(f"--trace: workload `{name}` has two traces")
        found[name] = read_trace(Path(path))
        if not quiet:
            for line in (*found[name].notes, *_left_out(found[name])):
                note(f"{path}: {line}")
    return found


def _left_out(trace: Trace) -> list[str]:
    return [f"{count:,} rows left out: {reason}" for reason, count in trace.skipped.items()]


def _named_file(text: str, workloads: list[str]) -> tuple[str, str]:
    name, found, path = text.partition("=")
    if found and name in workloads:
        return name, path
    if len(workloads) == 1 and not (found and not Path(text).exists()):
        return workloads[0], text
    listed = ", ".join(workloads)
    if found:
        usage_error(f"--trace: the plan has no workload `{name}`; it has {listed}")
    return usage_error(f"--trace: say whose traffic {text} is, as `{workloads[0]}={text}`; the plan has {listed}")


def _known_pools(plan: Plan, names: list[str]) -> frozenset[str]:
    known = [p.name for p in plan.pools]
    for name in names:
        if name not in known:
            usage_error(f"--fail-pool: the plan has no pool `{name}`; it has {', '.join(known)}")
    return frozenset(names)


def _check_period(plan: Plan, period: str | None) -> None:
    known = [p.name for p in plan.periods]
    if period is not None and period not in known:
        usage_error(f"--period: the plan has no period `{period}`; it has {', '.join(known)}")


def _text(found: Replayed, fleet: str, format: ReplayFormat, color: bool, width: int | None) -> str:
    from planner.report import simulate as report
    from planner.report.rows import as_csv, as_json
    from planner.report.table import print_blocks

    if format is ReplayFormat.JSON:
        return as_json(report.as_data(found, fleet))
    if format is ReplayFormat.CSV:
        return as_csv(report.as_rows(found))
    return print_blocks(report.render(found, fleet), color, width)
