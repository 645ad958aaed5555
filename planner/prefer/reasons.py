"""Why the fleet that runs cannot be kept: which limit or workload of today breaks, and by how much."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from planner.candidates.types import CandidateTable
from planner.catalog import Catalog
from planner.explain.limits import program_limits
from planner.explain.wishes import milliseconds
from planner.physics.constants import SpeedConstants
from planner.plan.assess import LATENCY_RTOL, PoolLoad, PoolState, assess_models
from planner.prefer.broken import Broken
from planner.prefer.running import Running
from planner.program.data import FleetProblem, Outage, spares_by_candidate
from planner.solve.outcome import Solution
from planner.solve.routing import FULL_LOAD, Routing, route, route_outage, route_without
from planner.solve.spares import fragile_pools
from planner.spec import FleetSpec

RELIABILITY = "reliability"
COUNT = "min_replicas"


def why_not_carried(spec: FleetSpec, problem: FleetProblem, running: Running, catalog: Catalog) -> tuple[Broken, ...]:
    """Return the limits that the fleet that runs breaks, and the demand that it does not carry, whole or after a loss."""
    replicas = _best_settings(problem, running)
    solution = Solution(replicas, running.nodes, {}, {}, 0.0, 0.0)
    found = [*_limits(spec, problem, solution, catalog), *_demand(problem, replicas, running)]
    return tuple(found or _losses(problem, replicas))


def _best_settings(problem: FleetProblem, running: Running) -> dict[str, int]:
    """Return the replicas that run, as the candidates that carry most of the demand: settings are free to change."""
    columns = {c.name: c for c in problem.columns}
    replicas = {min(pool.same): pool.replicas for pool in running.pools}
    for pool in running.pools:
        model = columns[pool.columns[0]].model
        demand = {d.workload: d.planned_requests_per_s for d in problem.demands_of(model)}
        others = {name: count for name, count in replicas.items() if name not in pool.columns}
        able = [name for name in pool.columns if columns[name].min_replicas <= pool.replicas]
        loads = {name: route(problem, model, others | {name: pool.replicas}, demand).load for name in able}
        best = min(loads, key=lambda name: (loads[name], name not in pool.same, name), default=min(pool.same))
        replicas = others | {best: pool.replicas}
    return replicas


def misses(
    table: CandidateTable, loads: Mapping[str, Sequence[PoolLoad]], constants: SpeedConstants
) -> tuple[Broken, ...]:
    """Return the latency limits that pools, given by model, miss at the mix of workloads that they get."""
    states = assess_models(table, loads, constants)
    each = [(load, state) for model in loads for load, state in zip(loads[model], states[model], strict=True)]
    return tuple(b for load, state in sorted(each, key=lambda e: e[0].name) for b in _missed(table, load.name, state))


def _missed(table: CandidateTable, pool: str, state: PoolState) -> Iterator[Broken]:
    if state.overload > 1.0 + LATENCY_RTOL:
        reason = f"pool {pool}: queues grow without end at {percent(state.overload)} of its load limit"
        yield Broken("load", pool, reason, "load", 1.0, state.overload)
        return  # latencies mean nothing then
    for (workload, key), predicted_s in sorted(state.latency_s.items()):
        limit_s = table.workloads[workload].spec.slo[key]
        if predicted_s > limit_s * (1.0 + LATENCY_RTOL):
            reason = (
                f"pool {pool}: {key} of {workload} would be {milliseconds(predicted_s)}, "
                f"{percent(predicted_s / limit_s - 1.0)} above its limit of {milliseconds(limit_s)}"
            )
            yield Broken("latency", workload, reason, key, limit_s, predicted_s)


def _limits(spec: FleetSpec, problem: FleetProblem, solution: Solution, catalog: Catalog) -> Iterator[Broken]:
    """Yield the limits on money, hardware and shapes that the fleet breaks; those of reliability are about what it carries."""
    for limit in program_limits(spec, problem, catalog):
        is_about_losses = RELIABILITY in limit.place and limit.place[-1] != COUNT
        if not is_about_losses and limit.breaks(problem, solution):
            needed = limit.needed(problem, solution)[0]
            key = limit.key(spec)
            reason = f"{key} is {limit.text(limit.value)}, and the fleet takes {limit.text(needed)}"
            yield Broken("limit", key, reason, "", limit.value, needed, key)


def _demand(problem: FleetProblem, replicas: Mapping[str, int], running: Running) -> Iterator[Broken]:
    """Yield the models whose replicas do not carry today's demand, with the share that they do."""
    for rule in problem.rules:
        if rule.model not in running.models:
            continue
        planned = {d.workload: d.planned_requests_per_s for d in problem.demands_of(rule.model)}
        routing = route(problem, rule.model, replicas, planned)
        if routing.carries:
            continue
        if routing.load >= FULL_LOAD:
            served = {w for c in problem.columns if replicas.get(c.name, 0) > 0 for w in c.services}
            yield from (
                Broken(
                    "demand",
                    w,
                    f"workload {w} of model {rule.model}: no pool can serve it, within its limits and on nodes that it may use",
                    "share",
                    1.0,
                    0.0,
                )
                for w in sorted(planned.keys() - served)
            )
            continue
        where = f"its replicas carry {percent(1.0 / routing.load)} of the demand, headroom included"
        reason = f"model {rule.model}: {where} ({_scarce(routing, planned)})"
        yield Broken("demand", rule.model, reason, "share", 1.0, 1.0 / routing.load)


def _losses(problem: FleetProblem, replicas: Mapping[str, int]) -> Iterator[Broken]:
    """Yield the losses that the fleet no longer survives, with the share of the demand that is then carried."""
    spares = spares_by_candidate(problem)
    for failure in fragile_pools(problem, replicas):
        if isinstance(failure, Outage):
            routing, lost = route_outage(problem, failure, replicas), f"zone {failure.zone}"
        else:
            count = min(spares[failure.name], replicas[failure.name])
            routing = route_without(problem, failure, replicas, spares[failure.name])
            lost = f"{count} replica{'s' if count > 1 else ''} of {failure.shape}"
        demand = [d.workload for d in problem.demands_of(failure.model)]
        carried, share = "no longer serves every workload", 0.0
        if routing.load < FULL_LOAD:
            share = min(1.0, 1.0 / routing.load)
            carried = f"carries {percent(share)} of the demand"
        reason = f"model {failure.model}: without {lost} the rest {carried} ({_scarce(routing, demand)})"
        yield Broken("loss", failure.model, reason, "share", 1.0, share)


def _scarce(routing: Routing, workloads: Mapping[str, float] | list[str]) -> str:
    """Return the workloads that the scarce pools serve."""
    return ", ".join(sorted(routing.weights) or sorted(workloads))


def in_words_of_periods(reason: str, periods: Sequence[str]) -> str:
    """Return a reason in which copies for a period are called by the name that the spec has, and the period."""
    for name in periods:
        reason = re.sub(rf"@{re.escape(name)}\b", f" in {name}", reason)
    return reason


def percent(share: float) -> str:
    """Write a share in percent, to three digits and without an exponent."""
    return f"{float(f'{100.0 * share:.3g}'):,.12g} %"
