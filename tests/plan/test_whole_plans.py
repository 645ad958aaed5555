"""Whole specs through the pipeline: what must hold whatever the numbers are."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from functools import cache

import pytest
from planned import FAILING, NODES, SHARED, SMALL

from planner.catalog import Catalog
from planner.pipeline import Options, make_plan, prepare
from planner.plan.schema import Plan
from planner.spec import load_spec


@cache
def plan(text: str, catalog: Catalog, **options: object) -> Plan:
    return make_plan(prepare(load_spec(text, "fleet.yaml"), catalog), replace(Options(), **options))  # type: ignore[arg-type]


UNTIL = SMALL.replace("regions: [us-east-1]", "regions: [us-east-1], until: 2027-01-31")


@pytest.mark.parametrize(("as_of", "status"), [(date(2027, 1, 31), "solved"), (date(2027, 2, 1), "infeasible")])
def test_as_of_decides_what_has_ended(as_of: date, status: str, catalog: Catalog) -> None:
    found = plan(UNTIL, catalog, as_of=as_of)
    assert (found.status, found.as_of) == (status, as_of.isoformat())


@pytest.mark.parametrize(
    ("change", "key"),
    [
        (("planning:", "  limits: {power: 400 W}\nplanning:"), "supply.limits.power"),
        (("planning:", "  limits: {rules: [{match: {region: us-*}, vcpus: 4}]}\nplanning:"), "supply.limits.rules.0"),
        (("planning:", "  limits: {rules: [{match: {}, share: 50 %}]}\nplanning:"), "supply.limits.rules.0"),
    ],
)
def test_infeasible_specs_name_the_key_in_the_way(change: tuple[str, str], key: str, catalog: Catalog) -> None:
    """Limits that `tests/explain/test_infeasible.py` has no spec for."""
    old, new = change
    assert old in SMALL
    found = plan(SMALL.replace(old, new), catalog)
    assert found.status == "infeasible"
    assert found.infeasible is not None
    assert found.objective is None
    assert any(c.key.startswith(key) for c in found.infeasible.conflict), found.infeasible


@pytest.mark.parametrize("rule", ["gpus: 1", "nodes: 0", "vcpus: 4", "usd_per_month: 100 USD/month"])
def test_a_quota_that_is_relaxed_as_offered_works(rule: str, catalog: Catalog) -> None:
    tight = SMALL.replace("planning:", f"  limits: {{rules: [{{match: {{provider: aws}}, {rule}}}]}}\nplanning:")
    report = plan(tight, catalog).infeasible
    assert report is not None
    measure = rule.partition(":")[0]
    way = report.relaxations[0]
    assert way.key == f"supply.limits.rules.0.{measure}"
    assert plan(tight.replace(rule, f"{measure}: {way.to}"), catalog).status == "solved"


TWO_CLOUDS = SMALL.replace(
    "regions: [us-east-1]}\n",
    "regions: [us-east-1]}\n    - {name: other, provider: gcp, gpus: [L4], region: us-central1}\n",
)


def test_a_share_of_the_cost_is_kept(catalog: Catalog) -> None:
    free = plan(TWO_CLOUDS, catalog)
    spread = plan(
        TWO_CLOUDS.replace("planning:", "  limits: {rules: [{match: {provider: aws}, share: 60 %}]}\nplanning:"),
        catalog,
    )
    assert {n.provider for n in free.nodes} == {"aws"}
    assert spread.objective is not None
    assert free.objective is not None
    aws = sum(n.usd_per_hour for n in spread.nodes if n.provider == "aws")
    assert 0.0 < aws <= 0.6 * spread.objective.usd_per_hour
    assert spread.objective.usd_per_hour >= free.objective.usd_per_hour


OWN_POWER = SMALL.replace(
    "    - {name: cloud, provider: aws, gpus: [L40S, A10G], regions: [us-east-1]}\n",
    "    - {name: rack, provider: owned, gpus: [L40S], gpus_per_node: 2, nodes: 2, price: 1 USD/gpu/h, SITE}\n",
)


def test_owned_nodes_draw_power_with_host_and_pue_and_pay_for_it(catalog: Catalog) -> None:
    site = "host_power: 300 W, pue: 1.5, electricity: 0.20 USD/kWh"
    found = plan(OWN_POWER.replace("SITE", site).replace("planning: {", "planning: {objective: power, "), catalog)
    node_w = (2 * catalog.gpu("L40S").device().tdp_w + 300.0) * 1.5
    assert found.objective is not None
    assert found.objective.value == pytest.approx(2 * node_w)
    assert found.nodes[0].usd_per_node_hour == pytest.approx(2.0 + node_w / 1000.0 * 0.20)


COMMITTED = SMALL.replace(
    "    - {name: cloud, provider: aws, gpus: [L40S, A10G], regions: [us-east-1]}\n",
    "    - {name: rack, provider: owned, gpus: [L40S], gpus_per_node: 4, nodes: 3, price: 0.50 USD/gpu/h, until: 2028-12-31}\n"
    "    - {name: cloud, provider: aws, gpus: [L40S], region: us-east-1, instances: [g6e.xlarge], price: 2 USD/gpu/h}\n",
)


def test_commitments_say_what_idles_and_when_they_pay(catalog: Catalog) -> None:
    found = plan(COMMITTED, catalog)
    (rack,) = found.commitments
    used = sum(p.gpus for p in found.pools)
    assert (rack.offer, rack.until, rack.upfront, rack.nodes) == ("rack/owned", "2028-12-31", None, 3)
    assert rack.idle_nodes == 3 - -(-used // 4)
    assert rack.gpu_utilization == pytest.approx(used / 12)
    assert rack.idle_usd_per_month == pytest.approx(rack.idle_nodes * 4 * 0.50 * 730.0)
    assert rack.on_demand_offer == "cloud/us-east-1/g6e.xlarge/on-demand"
    assert rack.break_even_utilization == pytest.approx(0.50 / 2.0)
    assert found.objective is not None
    assert found.objective.idle_committed_usd_per_month == pytest.approx(rack.idle_usd_per_month)


def test_without_on_demand_offers_the_catalog_says_what_a_commitment_is_worth(catalog: Catalog) -> None:
    alone = COMMITTED.replace(COMMITTED[COMMITTED.index("    - {name: cloud") : COMMITTED.index("planning:")], "")
    (rack,) = plan(alone, catalog).commitments
    listed = [
        o.prices_usd_per_node_h["on-demand"] / o.gpus_per_node
        for provider in catalog.providers()
        for o in catalog.offers(provider)
        if o.gpu == "L40S" and "on-demand" in o.prices_usd_per_node_h
    ]
    assert rack.on_demand_usd_per_gpu_hour == min(listed)


def test_nodes_of_long_terms_are_commitments(catalog: Catalog) -> None:
    long = SMALL.replace(
        "provider: aws, gpus: [L40S, A10G], regions: [us-east-1]", "provider: gcp, gpus: [L4], terms: [1y]"
    )
    found = plan(long, catalog)
    assert [(c.term, c.upfront, c.nodes, c.idle_nodes) for c in found.commitments] == [
        ("1y", "none", n.nodes, 0) for n in found.nodes
    ]


def preferring(gpu: str, penalty: str) -> str:
    return SMALL.replace("max_model_len: 8k", f"max_model_len: 8k, prefer: {{gpus: [{gpu}], penalty: {penalty}}}")


def test_a_preference_holds_up_to_its_penalty(catalog: Catalog) -> None:
    free = plan(SMALL, catalog)
    assert free.objective is not None
    chosen = {p.gpu for p in free.pools}
    assert chosen == {"L40S"}
    forced = plan(SMALL.replace("gpus: [L40S, A10G]", "gpus: [A10G]"), catalog)
    assert forced.objective is not None
    saving = forced.objective.usd_per_hour / free.objective.usd_per_hour - 1.0
    mild, strong = (plan(preferring("a10g", f"{100.0 * p:.2f} %"), catalog) for p in (0.5 * saving, 2.0 * saving + 0.5))
    assert mild.objective is not None
    assert strong.objective is not None
    assert {p.gpu for p in mild.pools} == {"L40S"}
    assert mild.objective.usd_per_hour == free.objective.usd_per_hour
    assert mild.objective.preference_penalty > 0.0
    assert mild.objective.value == pytest.approx(mild.objective.usd_per_hour + mild.objective.preference_penalty)
    assert mild.objective.bound_usd_per_hour is None
    assert {p.gpu for p in strong.pools} == {"A10G"}
    assert strong.objective.preference_penalty == 0.0


@pytest.mark.parametrize(("instance", "on_node"), [("g6e.xlarge", 1), ("g6e.12xlarge", 4), ("g6e.48xlarge", 8)])
def test_a_node_that_is_lost_takes_all_replicas_that_fit(instance: str, on_node: int, catalog: Catalog) -> None:
    found = plan(NODES.replace("g6e.xlarge, g6e.12xlarge, g6e.48xlarge", instance), catalog)
    (only,) = found.pools
    assert only.tensor_parallel == 1
    assert only.spare_replicas >= on_node
    assert sum(n.nodes for n in found.nodes) >= 2


def test_small_nodes_lose_less(catalog: Catalog) -> None:
    found = plan(NODES, catalog)
    assert {n.gpus_per_node for n in found.nodes} == {1}


def test_spot_saves_and_zones_cost(catalog: Catalog) -> None:
    no_spot = FAILING.replace("    spot: {max_share: 40 %}\n", "")
    variants = (FAILING, no_spot, FAILING.replace("survive: zone", "survive: replica"))
    costs = [found.objective.usd_per_hour for text in variants if (found := plan(text, catalog)).objective]
    assert costs[0] < costs[1]
    assert costs[2] < costs[0]


def test_one_zone_alone_is_no_zone_to_survive(catalog: Catalog) -> None:
    found = plan(FAILING.replace("regions: [us-central1, us-east4]", "region: us-central1"), catalog)
    assert found.infeasible is not None
    assert [(r.key, r.to) for r in found.infeasible.relaxations] == [("models.chat.reliability.survive", "node")]


def test_a_time_limit_never_makes_a_spec_infeasible(catalog: Catalog) -> None:
    assert plan(SHARED, catalog, time_limit_s=0.0).status in ("solved", "unproven")


def test_stages_report_their_time(catalog: Catalog) -> None:
    seen: list[str] = []
    make_plan(prepare(load_spec(SMALL, "fleet.yaml"), catalog), Options(), lambda stage, _: seen.append(stage))
    assert seen[0] == "candidates"
    assert seen[-1] == "plan"
    assert "solve" in seen


@pytest.mark.parametrize("objective", ["cost", "gpus", "power"])
def test_every_objective_is_proven(objective: str, catalog: Catalog) -> None:
    found = plan(SMALL.replace("planning: {", f"planning: {{objective: {objective}, "), catalog)
    assert found.status == "solved"
    assert found.objective is not None
    assert found.objective.minimised == objective
    assert (found.objective.bound_usd_per_hour is None) == (objective != "cost")
    expected = {
        "cost": found.objective.usd_per_hour,
        "gpus": float(sum(n.nodes * n.gpus_per_node for n in found.nodes)),
        "power": sum(n.nodes * n.gpus_per_node * catalog.gpu(n.gpu).device().tdp_w for n in found.nodes),
    }
    assert found.objective.value == pytest.approx(expected[objective])


FREE = (
    SHARED.replace("price: 1.5 USD/gpu/h", "price: 0 USD/gpu/h")
    .replace(
        "    - {name: cloud, provider: aws, gpus: [L40S], regions: [us-east-1, us-west-2], terms: [on-demand]}\n", ""
    )
    .replace("rate: 70 req/s", "rate: 5 req/s")
    .replace("  limits: {gpus: {L40S: 64}, gpu_types: 2}\n", "")
)


def test_free_owned_hardware_with_spares(catalog: Catalog) -> None:
    found = plan(FREE, catalog)
    assert found.status == "solved"
    assert found.objective is not None
    assert (found.objective.usd_per_hour, found.objective.gap) == (0.0, 0.0)


SMALL_NODES = (
    SMALL.replace("llama-3.1-8b-instruct", "llama-3.3-70b")
    .replace("    slo: {ttft_p95: 1.5 s, tpot_p95: 60 ms}\n", "")
    .replace(
        "    - {name: cloud, provider: aws, gpus: [L40S, A10G], regions: [us-east-1]}\n",
        "    - {name: us, provider: aws, gpus: [L40S], region: us-east-1, instances: [g6e.xlarge]}\n"
        "    - {name: eu, provider: aws, gpus: [L40S], region: eu-central-1, instances: [g6e.48xlarge]}\n",
    )
    .replace(
        "supply:",
        "  batch:\n    model: chat\n    traffic: {rate: 1 req/s, input_tokens: 800, output_tokens: 200}\nCOUNTRY"
        "supply:",
    )
)
"""A model that takes several GPUs of one node, and a place that has only nodes of one GPU."""


@pytest.mark.parametrize(("country", "status"), [("DE", "solved"), ("US", "infeasible")])
def test_a_workload_bound_to_nodes_that_are_too_small(country: str, status: str, catalog: Catalog) -> None:
    found = plan(SMALL_NODES.replace("COUNTRY", f"    allow: {{countries: [{country}]}}\n"), catalog)
    assert found.status == status


RACK_AND_CLOUD = """\
version: 1
fleet: own2
models:
  chat: {use: llama-3.1-8b-instruct, max_model_len: 8k}
workloads:
  assistant:
    model: chat
    traffic: {rate: 200 req/s, input_tokens: {mean: 800, p95: 2000}, output_tokens: {mean: 200, p95: 450}}
    slo: {ttft_p95: 1.5 s, tpot_p95: 60 ms}
    deny: {gpus: [H100-SXM-80GB]}
  batch:
    model: chat
    traffic: {rate: 5 req/s, input_tokens: {mean: 2000, p95: 4000}, output_tokens: {mean: 400, p95: 900}}
    allow: {gpus: [H100-SXM-80GB]}
supply:
  offers:
    - {name: rack, provider: owned, gpus: [L40S], gpus_per_node: 4, nodes: 1, price: 0.3 USD/gpu/h, country: DE}
    - {name: cloud, provider: aws, gpus: [A10G, H100-SXM-80GB], regions: [us-east-1], terms: [on-demand]}
planning: {gap: 0.1 %}
"""
"""A rack that could replace cloud nodes were it larger, and a workload that may go elsewhere only."""


def test_owned_nodes_of_which_there_are_few_leave_the_cloud_in_the_program(catalog: Catalog) -> None:
    assert plan(RACK_AND_CLOUD, catalog).status == "solved"
