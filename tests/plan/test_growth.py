"""How far traffic may grow on a fleet: up to there all limits hold, spares included, and a little above some rule breaks."""

from __future__ import annotations

from dataclasses import replace

import pytest
from planned import SHARED, SMALL, Planned, PlanOnce

from planner.plan.growth import growth_of, scaled
from planner.plan.rerate import Settled, routes, settle

SPARE = SMALL.replace("planning:", "reliability: {spare_replicas: 1, headroom: 10 %}\nplanning:")
every_fleet = pytest.mark.parametrize("text", [SMALL, SPARE, SHARED], ids=["small", "spare", "shared"])


def holds(planned: Planned, factors: dict[str, float]) -> bool:
    """Tell whether the replicas of a plan carry other demands within all limits, as the plan itself was judged."""
    problem = scaled(planned.problem, factors)
    rates = routes(problem, planned.solution.replicas)
    if rates is None:
        return False
    solution = replace(planned.solution, rates=rates)
    return isinstance(settle(planned.table, problem, solution, planned.knowledge.constants), Settled)


@every_fleet
def test_the_fleet_holds_up_to_the_next_step(text: str, plan_once: PlanOnce) -> None:
    planned = plan_once(text)

    for workload in planned.plan.workloads:
        factor = workload.next_step_requests_per_s / workload.demand_requests_per_s
        assert factor >= 1.0
        assert holds(planned, {workload.name: 0.999 * factor}), workload.name


@pytest.mark.parametrize("text", [SMALL, SPARE], ids=["small", "spare"])
def test_above_the_next_step_of_a_lone_workload_a_rule_breaks(text: str, plan_once: PlanOnce) -> None:
    planned = plan_once(text)
    (workload,) = planned.plan.workloads
    factor = workload.next_step_requests_per_s / workload.demand_requests_per_s

    assert not holds(planned, {workload.name: 1.01 * factor})


@every_fleet
def test_all_demands_may_grow_together(text: str, plan_once: PlanOnce) -> None:
    planned = plan_once(text)
    factor = planned.plan.max_load_factor
    names = [w.name for w in planned.plan.workloads]

    assert factor is not None
    assert holds(planned, dict.fromkeys(names, 0.999 * factor))
    assert factor <= min(w.next_step_requests_per_s / w.demand_requests_per_s for w in planned.plan.workloads) * 1.001


def test_spares_leave_less_room(plan_once: PlanOnce) -> None:
    planned = plan_once(SPARE)
    growth = growth_of(planned.table, planned.problem, planned.solution, planned.knowledge.constants)
    (workload,) = planned.plan.workloads

    assert growth.next_step[workload.name] == workload.next_step_requests_per_s
    assert growth.next_step[workload.name] <= growth.capacity[workload.name] / 1.1 * (1.0 + 1e-9)


@every_fleet
def test_rows_are_in_their_own_units(text: str, plan_once: PlanOnce) -> None:
    for pool in plan_once(text).plan.pools:
        loads = {row.row: row.used / row.available for row in pool.rows}

        assert max(loads.values()) == pytest.approx(pool.utilization)
        by_row = {row.row: row for row in pool.rows}
        assert by_row["step_time"].available == pool.replicas
        assert by_row["batch_cap"].available == pool.max_num_seqs * pool.replicas
        assert by_row["hbm_budget"].available <= pool.hbm_bytes_per_gpu.kv_pool * pool.gpus / 1e9
        assert 0.0 < by_row["hbm_budget"].used < by_row["hbm_budget"].available
