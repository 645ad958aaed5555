"""Figures of a plan that must agree with each other, and with what they are derived from."""

from __future__ import annotations

import pytest
from planned import SHARED, SMALL, Planned, PlanOnce

from planner.program.index import row_needs
from planner.solve.routing import route

RTOL = 1e-9


@pytest.fixture(scope="module", params=[SMALL, SHARED], ids=["small", "shared"])
def planned(request: pytest.FixtureRequest, plan_once: PlanOnce) -> Planned:
    return plan_once(request.param)


def test_nodes_cost_what_the_fleet_costs(planned: Planned) -> None:
    objective = planned.plan.objective
    assert objective is not None
    assert sum(n.usd_per_hour for n in planned.plan.nodes) == pytest.approx(objective.usd_per_hour, rel=RTOL)
    assert all(n.usd_per_hour == pytest.approx(n.nodes * n.usd_per_node_hour, rel=RTOL) for n in planned.plan.nodes)
    assert objective.value == pytest.approx(objective.usd_per_hour, rel=RTOL)
    assert objective.usd_per_month == pytest.approx(730.0 * objective.usd_per_hour, rel=RTOL)
    assert objective.gap == pytest.approx((objective.value - objective.bound) / objective.value, abs=RTOL)
    assert objective.gap <= planned.spec.planning.gap


def test_pools_and_workloads_share_that_cost(planned: Planned) -> None:
    objective = planned.plan.objective
    assert objective is not None
    pools = sum(p.usd_per_hour for p in planned.plan.pools)
    workloads = sum(w.usd_per_month for w in planned.plan.workloads)
    idle = objective.idle_committed_usd_per_month
    assert 730.0 * pools + idle == pytest.approx(objective.usd_per_month, rel=RTOL)
    assert workloads + idle == pytest.approx(objective.usd_per_month, rel=RTOL)


def test_pools_serve_the_demand_with_headroom(planned: Planned) -> None:
    for workload in planned.plan.workloads:
        served = sum(p.workloads.get(workload.name, 0.0) for p in planned.plan.pools)
        headroom = planned.spec.reliability_of(workload.model).headroom
        assert served == pytest.approx(workload.demand_requests_per_s * (1.0 + headroom), rel=1e-6)


def test_capacity_is_at_least_the_demand_and_the_next_step_is_carried(planned: Planned) -> None:
    for workload in planned.plan.workloads:
        headroom = planned.spec.reliability_of(workload.model).headroom
        assert workload.capacity_requests_per_s >= workload.demand_requests_per_s * (1.0 + headroom) * (1.0 - 1e-6)
        assert workload.demand_requests_per_s * (1.0 - 1e-6) <= workload.next_step_requests_per_s
        assert workload.next_step_requests_per_s * (1.0 + headroom) <= workload.capacity_requests_per_s * (1.0 + 1e-6)
        planned_rates = {d.workload: d.planned_requests_per_s for d in planned.problem.demands_of(workload.model)}
        at_step = planned_rates | {workload.name: workload.next_step_requests_per_s * (1.0 + headroom)}
        assert route(planned.problem, workload.model, planned.solution.replicas, at_step).carries


def test_margins_are_what_is_left_of_the_limits(planned: Planned) -> None:
    for workload in planned.plan.workloads:
        limits = planned.spec.workloads[workload.name].slo
        assert {c.metric: c.limit_s for c in workload.slo} == limits
        for check in workload.slo:
            assert check.margin == pytest.approx(1.0 - check.predicted_s / check.limit_s)
            assert check.margin >= -1e-6


def test_memory_adds_up(planned: Planned) -> None:
    for pool in planned.plan.pools:
        parts = pool.hbm_bytes_per_gpu
        used = parts.weights + parts.kv_pool + parts.activations + parts.runtime + parts.graphs + parts.free
        assert used == pytest.approx(parts.usable, rel=RTOL)
        assert pool.kv_tokens > pool.max_model_len
        assert pool.max_concurrency == pytest.approx(pool.kv_tokens / pool.max_model_len, rel=0.05)
        assert pool.mean_batch <= pool.max_num_seqs


def test_pools_lie_on_the_nodes(planned: Planned) -> None:
    bought = sum(n.nodes * n.gpus_per_node for n in planned.plan.nodes)
    assert sum(p.gpus for p in planned.plan.pools) <= bought
    for pool in planned.plan.pools:
        per_replica = pool.tensor_parallel * pool.pipeline_parallel * pool.attention_data_parallel
        assert pool.gpus == pool.replicas * per_replica
        assert sum(place.replicas for place in pool.placement) == pool.replicas


def test_utilization_is_the_fullest_row_and_below_one(planned: Planned) -> None:
    columns = {c.name: c for c in planned.problem.columns}
    used = {}
    for (workload, name), rate in planned.solution.rates.items():
        needs = row_needs(columns[name], columns[name].services[workload])
        old = used.get(name, (0.0,) * len(needs))
        used[name] = tuple(a + rate * b for a, b in zip(old, needs, strict=True))
    expected = sorted(max(rows) / planned.solution.replicas[name] for name, rows in used.items())
    assert sorted(p.utilization for p in planned.plan.pools) == pytest.approx(expected, rel=1e-6)
    assert max(expected) <= 1.0 + 1e-5


def test_spares_shown_cover_the_spares_asked_for(planned: Planned) -> None:
    for pool in planned.plan.pools:
        assert pool.spare_replicas >= planned.spec.reliability_of(pool.model).spare_replicas


def test_assumptions_have_a_source(planned: Planned) -> None:
    assert planned.plan.assumptions
    assert all(a.key and a.value and a.source for a in planned.plan.assumptions)
    assert planned.plan.rejections.total == sum(planned.plan.rejections.by_rule.values())
