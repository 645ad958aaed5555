"""Hourly demand: a reserved base with on-demand nodes above it, and one plan put together from those of its periods."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cache
from itertools import pairwise

import pytest

from planner.catalog import Catalog
from planner.explain.sensitivity import sensitivities
from planner.pipeline import Options, make_plan, prepare, variants
from planner.plan.io import dump, loads
from planner.plan.schema import Plan
from planner.prefer.earlier import PreferredPlan
from planner.spec import load_spec

COST_RTOL = 1e-6
HOURS = (6.0, 6.0, 9.0, 20.0, 20.0, 34.0, 34.0, 27.0)
"""Every rate holds for three hours of the day."""
HOURLY = f"hourly: {[rate for rate in HOURS for _ in range(3)]}"
BUSY = tuple(3.0 * rate for rate in HOURS)
BUSY_HOURLY = f"hourly: {[rate for rate in BUSY for _ in range(3)]}"
BUSY_PEAK = f"rate: {max(BUSY)} req/s"

NEWSVENDOR = """\
version: 1
fleet: newsvendor
models:
  chat: {use: llama-3.1-8b-instruct, max_model_len: 8k, weights: [fp8], parallelism: {tensor: [1]}}
workloads:
  ask:
    model: chat
    traffic: {DEMAND, input_tokens: {mean: 800, p95: 2000}, output_tokens: {mean: 200, p95: 450}}
    slo: {ttft_p95: 1.5 s, tpot_p95: 60 ms}
supply:
  offers:
    - {name: base, provider: gcp, region: us-central1, instances: [g2-standard-4], terms: [1y], price: RESERVED USD/gpu/h}
    - {name: flex, provider: gcp, region: us-central1, instances: [g2-standard-4], terms: [on-demand], price: 1.00 USD/gpu/h}
planning: {gap: 0 %, periods: 24}
"""

MIXED = """\
version: 1
fleet: mixed
models:
  chat: {use: llama-3.1-8b-instruct, max_model_len: 8k, weights: [fp8], kv_cache: [fp8], parallelism: {tensor: [1]}}
  code: {use: qwen3-8b, max_model_len: 8k, weights: [fp8], kv_cache: [fp8], parallelism: {tensor: [1]}}
workloads:
  ask:
    model: chat
    traffic: {DEMAND, input_tokens: {mean: 800, p95: 2000}, output_tokens: {mean: 200, p95: 450}}
    slo: {ttft_p95: 1.5 s, tpot_p95: 60 ms}
  batch:
    model: chat
    traffic: {rate: 2 req/s, input_tokens: 2000, output_tokens: 300}
  complete:
    model: code
    traffic: {rate: 3 req/s, input_tokens: 1000, output_tokens: 50}
    slo: {ttft_p95: 2 s}
supply:
  offers:
    - {name: cloud, provider: gcp, region: us-central1, gpus: [L4], terms: [on-demand, 1y]}
    - {name: rack, provider: owned, gpus: [L40S], gpus_per_node: 4, nodes: 1, price: 0.5 USD/gpu/h, country: DE}
planning: {gap: 1 %, periods: PERIODS}
"""


@cache
def planned(text: str, catalog: Catalog) -> Plan:
    plan = make_plan(prepare(load_spec(text, "hourly.yaml"), catalog), Options())
    assert plan.objective is not None
    return plan


@pytest.fixture(scope="module")
def needed(catalog: Catalog) -> tuple[int, ...]:
    """Nodes that each of the rates needs by itself."""

    def nodes(rate: float) -> int:
        text = NEWSVENDOR.replace("DEMAND", f"rate: {rate} req/s").replace("RESERVED", "2.00")
        return sum(n.nodes for n in planned(text, catalog).nodes)

    return tuple(nodes(rate) for rate in HOURS)


def cost(reserved: int, price: float, needed: Sequence[int]) -> float:
    """Return the mean cost per hour with so many reserved nodes, the others on demand at 1 USD."""
    return reserved * price + sum(max(0, n - reserved) for n in needed) / len(needed)


@pytest.mark.parametrize("price", [0.1, 0.3, 0.55, 0.9, 1.1])
def test_the_reserved_share_is_the_newsvendors(price: float, needed: tuple[int, ...], catalog: Catalog) -> None:
    plan = planned(NEWSVENDOR.replace("DEMAND", HOURLY).replace("RESERVED", f"{price}"), catalog)
    best = min(range(max(needed) + 1), key=lambda n: cost(n, price, needed))
    found = {n.offer.partition("/")[0]: n for n in plan.nodes}
    assert plan.objective is not None
    assert plan.objective.usd_per_hour == pytest.approx(cost(best, price, needed), rel=COST_RTOL)
    assert (found["base"].nodes if "base" in found else 0) == best
    # In other words: as many as are needed for more than the share of hours that the price of one is worth.
    assert best == sum(1 for n in range(max(needed)) if sum(n < need for need in needed) / len(needed) > price)
    if best:
        assert set(found["base"].nodes_by_period.values()) == {best}


@pytest.fixture(scope="module")
def mixed(catalog: Catalog) -> Plan:
    return planned(MIXED.replace("DEMAND", BUSY_HOURLY).replace("PERIODS", "4"), catalog)


def test_counts_and_money_add_up(mixed: Plan) -> None:
    hours = {p.name: p.hours_per_month for p in mixed.periods}
    assert list(hours) == ["peak", "p2", "p3", "p4"]
    assert sum(hours.values()) == pytest.approx(730.0)
    assert mixed.objective is not None
    assert mixed.objective.usd_per_hour == pytest.approx(sum(n.usd_per_hour for n in mixed.nodes))
    assert mixed.objective.usd_per_hour < mixed.objective.peak_usd_per_hour
    for node in mixed.nodes:
        assert node.nodes == max(node.nodes_by_period.values())
        mean = sum(hours[p] * n for p, n in node.nodes_by_period.items()) / 730.0
        assert node.usd_per_hour == pytest.approx(node.usd_per_node_hour * mean)
        assert node.term == "on-demand" or len(set(node.nodes_by_period.values())) == 1
    for pool in mixed.pools:
        assert pool.replicas == max(pool.replicas_by_period.values())
    served = sum(p.workloads.get("ask", 0.0) for p in mixed.pools)
    assert served == pytest.approx(max(BUSY))


def test_pools_have_the_traffic_of_every_period(mixed: Plan) -> None:
    assert mixed.demand_by_period is not None
    for period, demand in mixed.demand_by_period.items():
        served = Counter[str]()
        for pool in mixed.pools:
            assert pool.workloads_by_period is not None
            served.update(pool.workloads_by_period[period])
            assert bool(pool.workloads_by_period[period]) == (pool.replicas_by_period[period] > 0)
        assert served == {name: pytest.approx(rate) for name, rate in demand.items()}


def test_what_is_said_of_a_pool_is_of_the_first_period_with_most_replicas(mixed: Plan) -> None:
    for pool in mixed.pools:
        before = list(pool.replicas_by_period.values())[: list(pool.replicas_by_period).index(pool.period)]
        assert pool.replicas_by_period[pool.period] == pool.replicas > max(before, default=0)
        assert pool.traffic is not None
        assert pool.predicted.requests_per_s == pytest.approx(sum(pool.traffic.values()))
        assert {n for n, rate in pool.traffic.items() if rate > 0.0} <= {"ask", "batch", "complete"}


def test_a_plan_of_one_period_has_no_keys_about_periods(mixed: Plan, catalog: Catalog) -> None:
    one = planned(MIXED.replace("DEMAND", BUSY_PEAK).replace("PERIODS", "1"), catalog)

    assert [(p.period, p.traffic) for p in one.pools] == [("peak", p.workloads) for p in one.pools]
    assert "workloads_by_period" not in dump(one)
    assert dump(loads(dump(mixed).encode(), "mixed.json")) == dump(mixed)


def test_models_without_hourly_demand_run_the_same_replicas_at_all_hours(mixed: Plan) -> None:
    assert all(len(set(p.replicas_by_period.values())) == 1 for p in mixed.pools if p.model == "code")


def test_money_per_token_is_at_the_mean(mixed: Plan) -> None:
    ask = next(w for w in mixed.workloads if w.name == "ask")
    mean = sum(BUSY) / len(BUSY)
    assert ask.at == "mean"
    assert ask.demand_requests_per_s == max(BUSY)
    assert ask.usd_per_million_tokens == pytest.approx(ask.usd_per_month / (mean * 3600 * 730 * 1000) * 1e6, rel=0.01)


def test_nothing_shown_names_a_copy(mixed: Plan) -> None:
    assert "@" not in dump(mixed)


def test_what_the_hours_add_is_said(mixed: Plan) -> None:
    said = next(a for a in mixed.assumptions if a.key == "workloads.ask.traffic.hourly")
    assert said.value.startswith("planned at its highest hour in each of 4 periods: ")


def test_more_periods_never_cost_more(catalog: Catalog) -> None:
    peak = planned(MIXED.replace("DEMAND", BUSY_PEAK).replace("PERIODS", "4"), catalog)
    plans = [planned(MIXED.replace("DEMAND", BUSY_HOURLY).replace("PERIODS", f"{n}"), catalog) for n in (1, 2, 4)]
    values = [(p.objective.bound, p.objective.value) for p in (peak, *plans) if p.objective is not None]
    assert values[0] == values[1]
    for (_, fewer), (bound, more) in pairwise(values):
        assert bound <= fewer * (1.0 + COST_RTOL)
        assert more <= fewer * 1.01


def test_the_same_spec_gives_the_same_bytes(mixed: Plan, catalog: Catalog) -> None:
    again = planned.__wrapped__(MIXED.replace("DEMAND", BUSY_HOURLY).replace("PERIODS", "4"), catalog)
    assert dump(again) == dump(mixed)


def test_constant_demand_is_planned_in_one_period(catalog: Catalog) -> None:
    constant = planned(MIXED.replace("DEMAND", f"hourly: {[20.0] * 24}").replace("PERIODS", "4"), catalog)
    assert [p.name for p in constant.periods] == ["peak"]
    assert constant.demand_by_period is None


def test_hours_without_any_demand(catalog: Catalog) -> None:
    night = f"hourly: {[0.0] * 12 + [20.0] * 12}"
    plan = planned(NEWSVENDOR.replace("DEMAND", night).replace("RESERVED", "0.6"), catalog)
    assert [n.nodes_by_period["p2"] for n in plan.nodes] == [0]
    cheap = planned(NEWSVENDOR.replace("DEMAND", night).replace("RESERVED", "0.4"), catalog)
    assert [n.term for n in cheap.nodes] == ["1y"]
    assert cheap.commitments[0].idle_nodes == 0
    assert cheap.commitments[0].idle_usd_per_month == pytest.approx(cheap.commitments[0].usd_per_month / 2.0)


def few_periods(price: str = "0.6") -> str:
    return NEWSVENDOR.replace("DEMAND", HOURLY).replace("RESERVED", price).replace("periods: 24", "periods: 2")


def test_what_does_not_run_at_the_peak_is_not_to_be_kept(mixed: Plan) -> None:
    """Pools that take turns never ran side by side, and are not to be put side by side."""
    running = {p.name: p.replicas_by_period["peak"] for p in mixed.pools}
    assert 0 in running.values()
    spec = load_spec(MIXED.replace("DEMAND", BUSY_HOURLY).replace("PERIODS", "4"), "hourly.yaml").spec
    assert spec is not None

    kept = PreferredPlan(mixed, "before.json").fleet_for(spec).at_peak()
    assert {p.name: p.replicas for p in kept.pools} == {name: n for name, n in running.items() if n}
    assert {n.offer: n.nodes for n in kept.nodes} == {
        n.offer: n.nodes_by_period["peak"] for n in mixed.nodes if n.nodes_by_period["peak"]
    }


def test_what_is_in_the_way_of_hourly_demand_names_no_copy(catalog: Catalog) -> None:
    text = few_periods().replace("planning:", "  budget: 100 USD/month\nplanning:")
    plan = make_plan(prepare(load_spec(text, "hourly.yaml"), catalog), Options())
    assert plan.infeasible is not None
    assert [c.key for c in plan.infeasible.conflict] == ["supply.budget"]
    assert plan.infeasible.relaxations
    assert "@" not in dump(plan)


def test_variants_are_planned_in_the_same_periods(catalog: Catalog) -> None:
    prepared = prepare(load_spec(few_periods(), "hourly.yaml"), catalog)
    plan = make_plan(prepared, Options(periods=3))
    again = sensitivities(plan, *variants(prepared, plan))
    assert plan.objective is not None
    assert len(plan.periods) == 3
    more = next(s for s in again if s.name == "demand of ask +10 %")
    assert more.usd_per_hour is not None
    assert 1.0 < more.usd_per_hour / plan.objective.usd_per_hour < 1.3


def test_limits_hold_in_each_period_and_money_over_all(catalog: Catalog) -> None:
    text = NEWSVENDOR.replace("DEMAND", HOURLY).replace("RESERVED", "0.55")
    free = planned(text, catalog)
    assert free.objective is not None
    month = free.objective.usd_per_month
    assert free.objective.peak_usd_per_hour * 730.0 > month * 1.1
    held = planned(text.replace("planning:", f"  budget: {month * 1.0001:.0f} USD/month\nplanning:"), catalog)
    assert held.objective is not None
    assert held.objective.usd_per_month <= month * 1.0001
    most = sum(n.nodes_by_period["peak"] for n in free.nodes)
    rules = f"  limits: {{gpus: {{L4: {most}}}, rules: [{{match: {{terms: [1y]}}, usd_per_month: 500 USD/month}}]}}\nplanning:"
    limited = planned(text.replace("planning:", rules), catalog)
    base = [n for n in limited.nodes if n.term == "1y"]
    assert sum(n.usd_per_hour for n in base) * 730.0 <= 500.0
