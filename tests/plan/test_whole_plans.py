"""Whole specs through the pipeline: what must hold whatever the numbers are."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

import pytest
from planned import SHARED, SMALL

from planner.catalog import Catalog
from planner.pipeline import Options, make_plan, prepare
from planner.plan.schema import Plan
from planner.spec import load_spec


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
        (("planning:", "  budget: 100 USD/month\nplanning:"), "supply.budget"),
        (("planning:", "  limits: {gpus: {L40S: 1, A10G: 1}}\nplanning:"), "supply.limits.gpus"),
        (("name: cloud,", "name: cloud, nodes: 1, instances: [g6e.xlarge, g5.xlarge],"), "supply.offers.cloud.nodes"),
        (("ttft_p95: 1.5 s", "ttft_p95: 1 ms"), "workloads.assistant.slo.ttft_p95"),
        (("max_model_len: 8k", "max_model_len: 8k, min_quality: 100 %, weights: [int4]"), "models.chat.min_quality"),
    ],
)
def test_infeasible_specs_name_the_key_in_the_way(change: tuple[str, str], key: str, catalog: Catalog) -> None:
    old, new = change
    assert old in SMALL
    found = plan(SMALL.replace(old, new), catalog)
    assert found.status == "infeasible"
    assert found.infeasible is not None
    assert found.objective is None
    assert any(c.key.startswith(key) for c in found.infeasible.conflict), found.infeasible


def test_a_relaxation_that_is_offered_works(catalog: Catalog) -> None:
    tight = SMALL.replace("planning:", "  budget: 100 USD/month\nplanning:")
    report = plan(tight, catalog).infeasible
    assert report is not None
    (way,) = report.relaxations
    assert way.key == "supply.budget"
    relaxed = plan(tight.replace("100 USD/month", f"{float(way.to.split()[0]) + 1:.0f} USD/month"), catalog)
    assert relaxed.status == "solved"
    assert relaxed.objective is not None
    assert way.usd_per_hour == pytest.approx(relaxed.objective.usd_per_hour)


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
    .replace("rate: 60 req/s", "rate: 5 req/s")
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
