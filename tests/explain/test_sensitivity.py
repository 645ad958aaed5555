"""What a change costs is what the changed spec costs when it is planned alone."""

from __future__ import annotations

import pytest
from changed_specs import set_values

from planner.catalog import Catalog
from planner.explain.sensitivity import Sensitivity, sensitivities
from planner.pipeline import Options, make_plan, prepare, variants
from planner.plan.schema import Plan
from planner.spec import load_spec

RACK = """\
version: 1
fleet: rack
models:
  chat: {use: llama-3.1-8b, max_model_len: 8k}
workloads:
  assistant:
    model: chat
    traffic: {rate: {peak: 30 req/s, mean: 10 req/s}, input_tokens: 1000, output_tokens: 200}
    slo: {ttft_p95: 1 s, tpot_p95: 40 ms}
  batch:
    model: chat
    traffic: {tokens_per_day: {input: 100M, output: 20M}, input_tokens: 1000, output_tokens: 200}
  nightly:
    model: chat
    traffic: {requests_per_day: 20k, input_tokens: 500, output_tokens: 100}
  hours:
    model: chat
    traffic: {hourly: [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2], input_tokens: 500, output_tokens: 100}
supply:
  offers:
    - {name: cloud, provider: aws, region: us-east-1, gpus: [L40S]}
    - {name: rack, provider: owned, gpus: [L40S], gpus_per_node: 2, nodes: 1, price: 0.5 USD/gpu/h, country: DE}
"""


def planned(text: str, catalog: Catalog) -> Plan:
    return make_plan(prepare(load_spec(text, "rack.yaml"), catalog), Options())


@pytest.fixture(scope="module")
def plan(catalog: Catalog) -> Plan:
    return planned(RACK, catalog)


@pytest.fixture(scope="module")
def found(plan: Plan, catalog: Catalog) -> dict[str, Sensitivity]:
    spec, trials = variants(prepare(load_spec(RACK, "rack.yaml"), catalog), plan)
    return {s.name: s for s in sensitivities(plan, spec, trials)}


CHANGES = {
    "demand of assistant +10 %": {"workloads.assistant.traffic.rate": "{peak: 33 req/s, mean: 11 req/s}"},
    "demand of batch +10 %": {"workloads.batch.traffic.tokens_per_day": "{input: 110M, output: 22M}"},
    "demand of nightly +10 %": {"workloads.nightly.traffic.requests_per_day": "22k"},
    "demand of hours +10 %": {"workloads.hours.traffic.hourly": f"[{'1.1, ' * 23}2.2]"},
    "tpot_p95 of assistant +10 ms": {"workloads.assistant.slo.tpot_p95": "50 ms"},
    "ttft_p95 of assistant +10 %": {"workloads.assistant.slo.ttft_p95": "1.1 s"},
    "one more node of rack": {"supply.offers.rack.nodes": "2"},
}


def test_every_wish_is_asked_about(found: dict[str, Sensitivity]) -> None:
    assert set(found) == set(CHANGES)


@pytest.mark.parametrize("name", CHANGES)
def test_a_difference_is_that_of_two_plans(
    name: str, plan: Plan, found: dict[str, Sensitivity], catalog: Catalog
) -> None:
    changed = planned(set_values(RACK, CHANGES[name]), catalog)
    answer = found[name]

    assert plan.objective is not None
    assert changed.objective is not None
    assert answer.usd_per_hour == pytest.approx(changed.objective.usd_per_hour, rel=0.005)
    assert answer.more_usd_per_hour == pytest.approx(answer.usd_per_hour - plan.objective.usd_per_hour, abs=1e-8)


def test_more_demand_never_saves_beyond_the_gap(found: dict[str, Sensitivity]) -> None:
    more = [s for name, s in found.items() if name.startswith("demand")]

    assert all(s.more_usd_per_hour is not None and (s.more_usd_per_hour >= 0.0 or s.is_within_gap) for s in more)
    assert any(s.more_usd_per_hour for s in more)


def test_a_node_that_is_cheaper_than_the_cloud_saves(found: dict[str, Sensitivity]) -> None:
    answer = found["one more node of rack"]

    assert answer.more_usd_per_hour is not None
    assert answer.more_usd_per_hour < 0.0
    assert not answer.is_within_gap


ONE_GPU = """\
version: 1
fleet: one
models:
  chat: {use: llama-3.1-8b, max_model_len: 8k, weights: [fp8], kv_cache: [fp8]}
workloads:
  assistant:
    model: chat
    traffic: {rate: 2 req/s, input_tokens: 1000, output_tokens: 200}
    slo: {ttft_p95: 1 s, tpot_p95: 40 ms}
supply:
  offers: [{name: cloud, provider: aws, region: us-east-1, instances: [g6e.xlarge], nodes: 1}]
"""
"""One shape on one GPU: what it holds is all there is."""


def test_a_change_without_a_fleet_has_no_cost(catalog: Catalog) -> None:
    most = planned(ONE_GPU, catalog).workloads[0].next_step_requests_per_s
    tight = ONE_GPU.replace("2 req/s", f"{0.97 * most:.4g} req/s")
    plan = planned(tight, catalog)
    spec, trials = variants(prepare(load_spec(tight, "one.yaml"), catalog), plan)
    answers = {s.name: s for s in sensitivities(plan, spec, trials)}

    assert plan.status == "solved"
    assert answers["demand of assistant +10 %"].usd_per_hour is None
    assert answers["demand of assistant +10 %"].more_usd_per_hour is None
    assert answers["one more node of cloud"].usd_per_hour is not None
