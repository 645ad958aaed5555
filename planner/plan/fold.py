"""One plan out of the plans of its periods: pools and nodes with their counts by period, money as the mean over all hours."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from planner.candidates.hours import Period
from planner.candidates.types import CandidateTable
from planner.plan.schema import (
    Commitment,
    NodePlan,
    Plan,
    Pool,
    SloCheck,
    WorkloadPlan,
)
from planner.plan.schema import Period as PlanPeriod
from planner.plan.workloads import SECONDS_PER_HOUR, TOKENS_PER_MILLION

PoolKey = tuple[object, ...]


@dataclass(frozen=True)
class PeriodPlan:
    """The plan of one period, as if it lasted all hours."""

    period: Period
    plan: Plan


def folded(parts: Sequence[PeriodPlan], table: CandidateTable, whole: Plan) -> Plan:
    """Return `whole`, a plan with everything that is not about periods, with pools, workloads, nodes and money of its parts."""
    nodes = _nodes(parts)
    pools = _pools(parts, _peak_of(parts))
    commitments = _commitments(parts)
    assert whole.objective is not None
    hours = sum(p.period.hours_per_month for p in parts)
    usd_per_hour = sum(n.usd_per_hour for n in nodes)
    costs = [p.plan.objective.usd_per_hour for p in parts if p.plan.objective is not None]
    objective = whole.objective.model_copy(
        update={
            "usd_per_hour": usd_per_hour,
            "peak_usd_per_hour": max(costs),
            "usd_per_month": usd_per_hour * hours,
            "committed_usd_per_month": sum(c.usd_per_month for c in commitments),
            "idle_committed_usd_per_month": sum(c.idle_usd_per_month for c in commitments),
        }
    )
    factors = [p.plan.max_load_factor for p in parts if p.plan.max_load_factor is not None]
    return whole.model_copy(
        update={
            "objective": objective,
            "periods": tuple(PlanPeriod(name=p.period.name, hours_per_month=p.period.hours_per_month) for p in parts),
            "demand_by_period": {p.period.name: dict(sorted(p.period.requests_per_s.items())) for p in parts},
            "pools": pools,
            "workloads": _workloads(parts, table, hours),
            "max_load_factor": min(factors, default=None),
            "nodes": nodes,
            "commitments": commitments,
        }
    )


def _peak_of(parts: Sequence[PeriodPlan]) -> dict[str, str]:
    """Return the period of the highest demand of each workload, the first one of several."""
    highest: dict[str, tuple[float, str]] = {}
    for part in parts:
        for name, rate in part.period.requests_per_s.items():
            if name not in highest or rate > highest[name][0]:
                highest[name] = (rate, part.period.name)
    return {name: period for name, (_, period) in highest.items()}


def _pools(parts: Sequence[PeriodPlan], peak_of: Mapping[str, str]) -> tuple[Pool, ...]:
    """Put the pools of equal replicas of all periods together, named after their model and numbered where there are several."""
    found: dict[PoolKey, dict[str, Pool]] = defaultdict(dict)
    for part in parts:
        seen: Counter[PoolKey] = Counter()
        for pool in part.plan.pools:
            key = _kind(pool)
            found[*key, seen[key]][part.period.name] = pool
            seen[key] += 1
    of_model = Counter(_first(pools).model for pools in found.values())
    number: Counter[str] = Counter()
    merged: list[Pool] = []
    for pools in found.values():
        model = _first(pools).model
        number[model] += 1
        name = model if of_model[model] == 1 else f"{model}-{number[model]}"
        merged.append(_pool(name, pools, parts, peak_of))
    return tuple(sorted(merged, key=lambda p: p.name))


def _kind(pool: Pool) -> PoolKey:
    layout = (
        pool.tensor_parallel,
        pool.pipeline_parallel,
        pool.expert_parallel,
        pool.attention_data_parallel,
    )
    formats = (pool.weights, pool.kv_cache, pool.max_num_seqs)
    return (pool.model, pool.gpu, *layout, *formats, pool.spot, pool.gpus_per_node)


def _first(pools: Mapping[str, Pool]) -> Pool:
    return next(iter(pools.values()))


def _pool(name: str, pools: Mapping[str, Pool], parts: Sequence[PeriodPlan], peak_of: Mapping[str, str]) -> Pool:
    """Return a pool as in the first period with its most replicas; `workloads` are those at their own peaks, money the mean."""
    largest = max(pools.values(), key=lambda p: p.replicas)
    usd_per_hour = _mean(parts, {period: p.usd_per_hour for period, p in pools.items()})
    rates = {w: pools[at].workloads[w] for w, at in peak_of.items() if at in pools and w in pools[at].workloads}
    band = largest.band
    saves = usd_per_hour * max(1.0 - band.factor_if_measured / band.factor, 0.0)
    return largest.model_copy(
        update={
            "name": name,
            "replicas_by_period": {
                p.period.name: pools[p.period.name].replicas if p.period.name in pools else 0 for p in parts
            },
            "workloads": dict(sorted(rates.items())),
            "workloads_by_period": {
                p.period.name: pools[p.period.name].workloads if p.period.name in pools else {} for p in parts
            },
            "usd_per_hour": usd_per_hour,
            "band": band.model_copy(update={"measuring_saves_usd_per_hour": saves}),
        }
    )


def _mean(parts: Sequence[PeriodPlan], values: Mapping[str, float]) -> float:
    """Return the mean over all hours of values by period; those left out are zero."""
    return sum(p.period.share * values.get(p.period.name, 0.0) for p in parts)


def _workloads(parts: Sequence[PeriodPlan], table: CandidateTable, hours: float) -> tuple[WorkloadPlan, ...]:
    found: dict[str, dict[str, WorkloadPlan]] = defaultdict(dict)
    for part in parts:
        for workload in part.plan.workloads:
            found[workload.name][part.period.name] = workload
    return tuple(_workload(found[name], parts, table, hours) for name in sorted(found))


def _workload(
    own: Mapping[str, WorkloadPlan], parts: Sequence[PeriodPlan], table: CandidateTable, hours: float
) -> WorkloadPlan:
    """Return a workload at its peak. What bounds its growth is the period that bears the least more of its own demand."""
    first = next(iter(own.values()))
    resolved = table.workloads[first.name]
    peak, mean = resolved.peak_requests_per_s, resolved.mean_requests_per_s
    usd_per_month = _mean(parts, {period: w.usd_per_month for period, w in own.items()})
    usd_per_request = usd_per_month / hours / ((peak if mean is None else mean) * SECONDS_PER_HOUR)
    output = resolved.mean_output_tokens
    return WorkloadPlan(
        name=first.name,
        model=first.model,
        demand_requests_per_s=peak,
        capacity_requests_per_s=peak * min(w.capacity_requests_per_s / w.demand_requests_per_s for w in own.values()),
        slo=_slo(own.values()),
        usd_per_month=usd_per_month,
        usd_per_million_tokens=usd_per_request * TOKENS_PER_MILLION / (resolved.mean_input_tokens + output),
        usd_per_million_output_tokens=usd_per_request * TOKENS_PER_MILLION / output,
        at="peak" if mean is None else "mean",
        next_step_requests_per_s=peak * min(w.next_step_requests_per_s / w.demand_requests_per_s for w in own.values()),
    )


def _slo(own: Iterable[WorkloadPlan]) -> tuple[SloCheck, ...]:
    """Return every latency limit with its worst prediction in any period."""
    worst: dict[str, SloCheck] = {}
    for check in (check for workload in own for check in workload.slo):
        if check.metric not in worst or check.predicted_s > worst[check.metric].predicted_s:
            worst[check.metric] = check
    return tuple(worst[metric] for metric in sorted(worst))


def _nodes(parts: Sequence[PeriodPlan]) -> tuple[NodePlan, ...]:
    found: dict[str, dict[str, NodePlan]] = defaultdict(dict)
    for part in parts:
        for node in part.plan.nodes:
            found[node.offer][part.period.name] = node
    return tuple(_node(found[offer], parts) for offer in sorted(found))


def _node(own: Mapping[str, NodePlan], parts: Sequence[PeriodPlan]) -> NodePlan:
    most = max(own.values(), key=lambda n: n.nodes)
    return most.model_copy(
        update={
            "nodes_by_period": {p.period.name: own[p.period.name].nodes if p.period.name in own else 0 for p in parts},
            "usd_per_hour": _mean(parts, {period: n.usd_per_hour for period, n in own.items()}),
        }
    )


def _commitments(parts: Sequence[PeriodPlan]) -> tuple[Commitment, ...]:
    found: dict[str, dict[str, Commitment]] = defaultdict(dict)
    for part in parts:
        for row in part.plan.commitments:
            found[row.offer][part.period.name] = row
    return tuple(_commitment(found[offer], parts) for offer in sorted(found))


def _commitment(own: Mapping[str, Commitment], parts: Sequence[PeriodPlan]) -> Commitment:
    """Return a commitment over all periods: what is idle costs by the hour, and counts as idle where it never holds a replica."""
    most = max(own.values(), key=lambda c: c.nodes)
    used = max(c.nodes - c.idle_nodes for c in own.values())
    in_use = _mean(parts, {period: c.nodes * c.gpu_utilization for period, c in own.items()})
    return most.model_copy(
        update={
            "idle_nodes": most.nodes - used,
            "gpu_utilization": in_use / _mean(parts, {period: float(c.nodes) for period, c in own.items()}),
            "usd_per_month": _mean(parts, {period: c.usd_per_month for period, c in own.items()}),
            "idle_usd_per_month": _mean(parts, {period: c.idle_usd_per_month for period, c in own.items()}),
        }
    )
