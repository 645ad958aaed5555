"""Replay a saved plan: all of its periods or one of them, or with a replica that fails."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from planner.candidates.types import CandidateTable
from planner.diagnostics import Diagnostic, DiagnosticError, Span
from planner.physics.constants import SpeedConstants
from planner.plan.assess import PoolLoad
from planner.plan.replayed import PoolReplay, Replayed, TraceUse
from planner.plan.schema import Plan
from planner.simulate.fleet import Settings, replay_fleet, worst_of
from planner.simulate.planned import largest_pools, loads_of, without_headroom
from planner.simulate.trace import Trace
from planner.simulate.traffic import Scaling, copies_of

LEAST_TRACE = 100  # requests; fewer tell no percentile, however often they are repeated
MOST_LONG_SHARE = 0.01  # of the requests of a trace; more of them make another workload of it


def replay_plan(
    plan: Plan, table: CandidateTable, constants: SpeedConstants, settings: Settings, period: str | None = None
) -> Replayed:
    """Replay the pools of a plan at its planned load; `table` holds the candidates of its spec.

    Plans of several periods are replayed in each of them, or in `period` alone. With a failure, pools are replayed at their
    demand without headroom; where none is named, the largest pool of each model fails.
    """
    several = [p.name for p in plan.periods] if plan.demand_by_period is not None else [None]
    if settings.fail_at_s is not None and not settings.failing:
        settings = replace(settings, failing=largest_pools(plan.pools))
    found: list[PoolReplay] = []
    uses: list[TraceUse] = []
    for name in several if period is None else [period]:
        loads = loads_of(plan, table, name)
        if settings.fail_at_s is not None:
            loads = without_headroom(loads, table)
        pools, used = replayed_pools(table, loads, constants, settings)
        found += [pool.model_copy(update={"period": name}) for pool in pools]
        uses += [use for use in used if use.workload not in {u.workload for u in uses}]
    return replayed(settings, found, uses)


def replayed_pools(
    table: CandidateTable, loads: Sequence[PoolLoad], constants: SpeedConstants, settings: Settings
) -> tuple[list[PoolReplay], list[TraceUse]]:
    """Replay pools, and say how their traces were used."""
    rates = {w: sum(p.rates.get(w, 0.0) for p in loads) for p in loads for w in p.rates}
    pools = replay_fleet(table.models, table.workloads, loads, constants, settings)
    lengths = {p.model: p.duration_s for p in pools}
    uses = [
        _use(name, settings.traces[name], rate, lengths[table.workloads[name].model], settings.scaling)
        for name, rate in sorted(rates.items())
        if name in settings.traces
    ]
    return pools, uses


def replayed(settings: Settings, pools: Sequence[PoolReplay], uses: Sequence[TraceUse]) -> Replayed:
    """Put the replays of pools together with how they were made."""
    return Replayed(
        verdict=worst_of(p.verdict for p in pools),
        seed=settings.seed,
        replications=settings.replications,
        router=settings.router,
        batching=settings.batching,
        by_hour=settings.by_hour,
        loses_replica=tuple(sorted(settings.failing)),
        fail_at_s=settings.fail_at_s,
        traces=tuple(uses),
        pools=tuple(pools),
    )


def _use(name: str, trace: Trace, requests_per_s: float, duration_s: float, scaling: Scaling) -> TraceUse:
    copies = copies_of(trace, requests_per_s, scaling)
    return TraceUse(
        workload=name,
        path=trace.path,
        sha256=trace.sha256,
        rows=trace.rows,
        used=round(duration_s * requests_per_s),
        scaling=scaling.value,
        time_factor=copies * trace.requests_per_s / requests_per_s,
        skipped=dict(trace.skipped),
    )


def check_traces(settings: Settings, table: CandidateTable) -> None:
    """Refuse traces without arrivals, and those of which more requests than a few are longer than their model takes.

    Raises `DiagnosticError` with all of them.
    """
    found = list(_refusals(settings.traces, table, drop_long=settings.drop_long))
    if found:
        raise DiagnosticError(found)


def _refusals(traces: Mapping[str, Trace], table: CandidateTable, *, drop_long: bool) -> Iterator[Diagnostic]:
    for name, trace in sorted(traces.items()):
        place = Span(trace.path, 1, 1, 2)
        if not trace.has_arrivals:
            message = "this trace has lengths but no arrivals, so that it cannot be replayed"
            yield Diagnostic("trace/no-arrivals", message, place)
            continue
        if trace.input_tokens.size < LEAST_TRACE:
            message = f"this trace has {trace.input_tokens.size:,} requests, which tell no percentile"
            yield Diagnostic("trace/too-short", message, place, help=(f"give at least {LEAST_TRACE} requests",))
            continue
        longest = table.models[table.workloads[name].model].max_model_len
        long = int(np.count_nonzero(trace.input_tokens + trace.output_tokens > longest))
        share = long / trace.input_tokens.size
        if share > MOST_LONG_SHARE and not drop_long:
            message = (
                f"{long:,} requests ({100.0 * share:.3g} %) are longer than max_model_len {longest:,} of model "
                f"{table.workloads[name].model}, which serves workload {name}"
            )
            how = "raise `max_model_len`, or leave them out with --drop-long"
            yield Diagnostic("trace/too-long", message, place, help=(how,))


def check_failure(plan: Plan, settings: Settings) -> None:
    """Refuse failures that leave a model without replicas, or of pools that the plan does not have.

    Raises `DiagnosticError`.
    """
    if settings.fail_at_s is None:
        return
    known = {p.name: p for p in plan.pools}
    for name in sorted(settings.failing or largest_pools(plan.pools)):
        model = known[name].model
        if sum(p.replicas for p in plan.pools if p.model == model) == 1:
            message = f"model {model} has one replica, so that nothing is left when it fails"
            raise DiagnosticError([Diagnostic("plan/no-replica-left", message)])
