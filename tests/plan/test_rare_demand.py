"""Demands of next to nothing: planned like any other, down to one request in thirty thousand years."""

from __future__ import annotations

from functools import cache

import pytest
from planned import FAILING, SHARED, SMALL

from planner.catalog import Catalog
from planner.pipeline import Options, make_plan, prepare
from planner.plan.io import dump, loads
from planner.plan.schema import Plan
from planner.report import explain, table
from planner.spec import load_spec

RATES = (1e-12, 1e-9, 1e-8, 1e-6, 1e-3)
SPARE = SMALL.replace("planning:", "reliability: {spare_replicas: 1, headroom: 10 %}\nplanning:")
HOURLY = SMALL.replace("rate: 20 req/s", "hourly: HOURS").replace("gap: 0.1 %", "gap: 0.1 %, periods: 2")
rates = pytest.mark.parametrize("rate", RATES)


@cache
def planned(text: str, catalog: Catalog) -> Plan:
    """Plan a spec; its own audit refuses a plan whose demands or limits do not hold."""
    plan = make_plan(prepare(load_spec(text, "rare.yaml"), catalog), Options())
    assert plan.status == "solved"
    return plan


def usd_per_hour(plan: Plan) -> float:
    assert plan.objective is not None
    return plan.objective.usd_per_hour


@rates
@pytest.mark.parametrize(("text", "headroom"), [(SMALL, 0.0), (SPARE, 0.1)], ids=["small", "spare"])
def test_a_lone_workload(text: str, headroom: float, rate: float, catalog: Catalog) -> None:
    plan = planned(text.replace("20 req/s", f"{rate} req/s"), catalog)
    (workload,) = plan.workloads
    (pool,) = plan.pools

    assert usd_per_hour(plan) == pytest.approx(usd_per_hour(planned(text.replace("20 req/s", "0.01 req/s"), catalog)))
    assert pool.workloads == {"assistant": pytest.approx(rate * (1.0 + headroom), rel=1e-9)}
    assert pool.replicas == (2 if headroom else 1)
    assert workload.demand_requests_per_s == rate
    assert workload.capacity_requests_per_s >= workload.next_step_requests_per_s > 1.0
    assert plan.max_load_factor == pytest.approx(workload.next_step_requests_per_s / rate)
    # Little's law: requests that decode for a few seconds each.
    assert 1.0 < pool.mean_batch * pool.replicas / pool.predicted.requests_per_s < 10.0
    assert 0.0 < pool.utilization < rate
    assert workload.usd_per_month == pytest.approx(usd_per_hour(plan) * 730.0)
    assert workload.usd_per_million_tokens == pytest.approx(
        workload.usd_per_month / 730.0 / 3600.0 / rate * 1e6 / 1000.0, rel=0.05
    )


@rates
def test_beside_a_busy_workload(rate: float, catalog: Catalog) -> None:
    plan = planned(SHARED.replace("rate: 5 req/s", f"rate: {rate} req/s"), catalog)
    least = planned(SHARED.replace("rate: 5 req/s", "rate: 0.001 req/s"), catalog)
    rare = next(w for w in plan.workloads if w.name == "batch")

    assert usd_per_hour(plan) == pytest.approx(usd_per_hour(least))
    assert sum(p.workloads.get("batch", 0.0) for p in plan.pools) == pytest.approx(1.1 * rate, rel=1e-6)
    assert rare.next_step_requests_per_s > 0.1
    assert plan.max_load_factor == pytest.approx(least.max_load_factor, rel=1e-3)


@rates
def test_losses_are_survived_off_spot(rate: float, catalog: Catalog) -> None:
    """Either zone has a replica that is not on spot: rows alone would let a solver put next to nothing on no replica."""
    plan = planned(FAILING.replace("rate: 60 req/s", f"rate: {rate} req/s"), catalog)
    lasting = [p for p in plan.pools if not p.spot]

    assert len({place.region for p in lasting for place in p.placement}) == 2
    assert sum(p.replicas for p in plan.pools) == 2


@rates
def test_in_one_of_two_periods(rate: float, catalog: Catalog) -> None:
    plan = planned(HOURLY.replace("HOURS", f"{[rate] * 20 + [30.0] * 4}"), catalog)
    (workload,) = plan.workloads

    assert [sum(p.replicas_by_period[at] for p in plan.pools) > 0 for at in ("peak", "p2")] == [True, True]
    assert plan.objective is not None
    assert usd_per_hour(plan) < plan.objective.peak_usd_per_hour
    assert 30.0 < workload.next_step_requests_per_s <= workload.capacity_requests_per_s
    assert plan.max_load_factor == pytest.approx(workload.next_step_requests_per_s / 30.0)


@rates
def test_all_that_is_said_of_it_can_be_read(rate: float, catalog: Catalog) -> None:
    plan = planned(SMALL.replace("20 req/s", f"{rate} req/s"), catalog)
    shown = f"{rate:.12f}".rstrip("0")

    assert dump(loads(dump(plan).encode(), "rare.json")) == dump(plan)
    assert shown in table.render(plan)
    assert shown in table.print_blocks(explain.growth(plan), False, None)
    (told,) = explain.as_data(plan)["workloads"]
    assert told["headroom_share"] == pytest.approx(told["next_step_requests_per_s"] / rate, rel=1e-2)
