"""The pools of a saved plan with the traffic that they get, in a period of the plan or while one of them has lost a replica."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from planner.candidates.types import CandidateTable
from planner.plan.assess import PoolLoad
from planner.plan.pools import pool_shape
from planner.plan.schema import Plan, Pool


def loads_of(plan: Plan, table: CandidateTable, period: str | None = None) -> list[PoolLoad]:
    """Return the pools of a plan at its planned load, headroom included; `table` holds the candidates of its spec.

    In a `period`, as the plan routes it then; plans of older releases do not say, so that demand is shared out in the shares of the
    peaks, weighted by replicas. Raises `KeyError` where a pool is no candidate of the spec.
    """
    shapes = {(c.shape.model, c.shape.name): c.shape for c in table.candidates}
    running = {p.name: p.replicas if period is None else p.replicas_by_period.get(period, 0) for p in plan.pools}
    rates = _rates(plan, table, period, running)
    return [
        PoolLoad(p.name, shapes[p.model, pool_shape(p)], p.max_num_seqs, running[p.name], rates[p.name])
        for p in plan.pools
        if running[p.name] and rates[p.name]
    ]


def _rates(
    plan: Plan, table: CandidateTable, period: str | None, running: Mapping[str, int]
) -> dict[str, dict[str, float]]:
    if period is None or plan.demand_by_period is None:
        return {p.name: dict(p.workloads) for p in plan.pools}
    if all(p.workloads_by_period is not None for p in plan.pools):
        return {p.name: dict((p.workloads_by_period or {}).get(period, {})) for p in plan.pools}
    found: dict[str, dict[str, float]] = {p.name: {} for p in plan.pools}
    for name, demand in plan.demand_by_period[period].items():
        planned = demand * (1.0 + table.workloads[name].headroom)
        weights = {p.name: p.workloads[name] * running[p.name] / p.replicas for p in plan.pools if name in p.workloads}
        total = sum(weights.values())
        for pool, weight in weights.items():
            if weight * planned > 0.0:
                found[pool][name] = planned * weight / total
    return found


def without_headroom(loads: Sequence[PoolLoad], table: CandidateTable) -> list[PoolLoad]:
    """Return the pools at their demand alone: what a fleet is to carry while spares are lost."""
    return [
        replace(load, rates={w: rate / (1.0 + table.workloads[w].headroom) for w, rate in load.rates.items()})
        for load in loads
    ]


def largest_pools(pools: Sequence[Pool]) -> frozenset[str]:
    """Return the pool with most replicas of each model, by name the first of several."""
    best: dict[str, Pool] = {}
    for pool in pools:
        known = best.get(pool.model)
        if known is None or (-pool.replicas, pool.name) < (-known.replicas, known.name):
            best[pool.model] = pool
    return frozenset(p.name for p in best.values())
