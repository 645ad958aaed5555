"""Specs without a fleet: the right cause comes first, and every way out that is printed works when it is taken."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
from changed_specs import changed, ways_of

from planner.catalog import Catalog
from planner.explain import trials
from planner.pipeline import Options, make_plan, prepare
from planner.plan.schema import InfeasibleReport, Plan
from planner.spec import load_spec

SPECS = Path(__file__).parents[1] / "data" / "infeasible"
CATALOG = Catalog.open()


def text_of(name: str) -> str:
    return (SPECS / f"{name}.yaml").read_text(encoding="utf-8")


@cache
def planned(text: str) -> Plan:
    return make_plan(prepare(load_spec(text, "fleet.yaml"), CATALOG), Options())


def report_on(text: str) -> InfeasibleReport:
    plan = planned(text)
    assert plan.status == "infeasible"
    assert plan.infeasible is not None
    return plan.infeasible


COMMITTED = text_of("budget").replace("gpus: [L40S, A10G]", "instances: [g6e.48xlarge], nodes: 8, committed: 8")
COMMITTED = COMMITTED.replace("3000 USD", "30000 USD").replace("60 req/s", "3 req/s")
SPARES = (
    text_of("stock").replace("  budget: 50000 USD/month", "reliability: {spare_replicas: 2}").replace("60 req", "3 req")
)
ZERO = text_of("budget").replace("L40S: 100", "L40S: 0, A10G: 0").replace("  budget: 3000 USD/month\n", "")
TWO_LIMITS = text_of("budget").replace("gpus: [L40S, A10G]", "gpus: [L40S]").replace("L40S: 100", "L40S: 2")
TWO_SLOS = text_of("tpot").replace("ttft_p95: 4 s", "ttft_p95: 30 ms")
SLO_AND_BUDGET = text_of("tpot") + "  budget: 100 USD/month\n"
QUALITY = text_of("tpot").replace("4 ms", "100 ms").replace("8k}", "8k, weights: [int4], min_quality: 99.5 %}")
LENGTH = text_of("memory").replace("max_model_len: 8k, parallelism: {tensor: [1]}", "max_model_len: 131072")
LENGTH = LENGTH.replace("L40S, H100-SXM-80GB", "L40S").replace("[bf16], kv_cache", "[fp8], kv_cache")
LENGTH = LENGTH.replace("max_model_len", "parallelism: {tensor: [2]}, max_model_len")
DENIED = text_of("regions").replace("allow: {countries: [DE]}", "deny: {providers: [aws]}")
ENDED = text_of("regions").replace("    allow: {countries: [DE]}\n", "").replace("[L40S]", "[L40S], until: 2025-01-31")

CAUSES = {
    "memory": (text_of("memory"), {"models.chat.parallelism.tensor", "supply.offers.cloud.gpus"}),
    "tpot": (text_of("tpot"), {"workloads.assistant.slo.tpot_p95"}),
    "ttft": (text_of("ttft"), {"workloads.documents.slo.ttft_p99", "supply.offers.cloud.gpus"}),
    "stock": (text_of("stock"), {"supply.offers.cloud.nodes"}),
    "budget": (text_of("budget"), {"supply.budget"}),
    "regions": (text_of("regions"), {"workloads.assistant.allow.countries", "supply.offers.cloud.region"}),
    "denied": (DENIED, {"workloads.assistant.deny"}),
    "committed": (COMMITTED, {"supply.budget", "supply.offers.cloud.committed"}),
    "spares": (SPARES, {"supply.offers.cloud.nodes", "reliability.spare_replicas"}),
    "nothing to buy": (ZERO, {"supply.limits.gpus.L40S", "supply.limits.gpus.A10G"}),
    "quality": (QUALITY, {"models.chat.min_quality"}),
    "length": (
        LENGTH,
        {"models.chat.max_model_len", "models.chat.parallelism.tensor", "supply.offers.cloud.gpus"},
    ),
    "ended": (ENDED, {"supply.offers.cloud.until"}),
}
every_cause = pytest.mark.parametrize("name", CAUSES)


@every_cause
def test_the_keys_in_the_way_are_named(name: str) -> None:
    text, keys = CAUSES[name]

    assert {c.key for c in report_on(text).conflict} == keys


@every_cause
def test_every_way_out_works(name: str) -> None:
    text, keys = CAUSES[name]
    ways = ways_of(report_on(text))

    assert {change.key for way in ways for change in way} & keys
    for way in ways:
        plan = planned(changed(text, way))
        assert plan.status == "solved", way
        assert plan.objective is not None
        assert way[0].usd_per_hour == pytest.approx(plan.objective.usd_per_hour, rel=trials.WAY_GAP)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("memory", "memory; the nearest shape, H100-SXM-80GB-tp1-bf16-kvbf16, is short by"),
        ("tpot", "tpot_p95 of 4 ms is below what any shape reaches; the best is"),
        ("ttft", "ttft_p99 of 500 ms is below what any shape reaches; the best is"),
        ("regions", "allow and deny leave none of the offers"),
        ("stock", "this limit leaves no fleet"),
        ("budget", "this limit leaves no fleet"),
    ],
)
def test_the_right_cause_comes_first(name: str, words: str) -> None:
    report = report_on(text_of(name))

    assert words in report.reason.splitlines()[0]
    assert name in report.conflict[0].key or name not in ("tpot", "ttft", "budget")


def test_latency_is_not_blamed_where_memory_is_the_cause() -> None:
    report = report_on(text_of("memory"))

    assert not [key for key in [*report.conflict, *report.relaxations] if ".slo." in key.key]


def test_the_floor_is_said_with_its_shape_and_the_prompts_that_set_it() -> None:
    first = report_on(text_of("ttft")).reason.splitlines()[0]

    assert " on L40S-tp1-" in first
    assert "prompts of up to 63,999 tokens" in first


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        (TWO_LIMITS, {"supply.budget", "supply.limits.gpus.L40S"}),
        (TWO_SLOS, {"workloads.assistant.slo.tpot_p95", "workloads.assistant.slo.ttft_p95"}),
        (SLO_AND_BUDGET, {"workloads.assistant.slo.tpot_p95", "supply.budget"}),
    ],
)
def test_changes_that_only_help_together_are_one_way(text: str, keys: set[str]) -> None:
    report = report_on(text)
    first = ways_of(report)[0]

    assert {c.key for c in report.conflict} <= keys
    assert {change.key for change in first} == keys
    plan = planned(changed(text, first))
    assert plan.status == "solved"
    assert plan.objective is not None
    assert first[0].usd_per_hour == pytest.approx(plan.objective.usd_per_hour, rel=trials.WAY_GAP)


def test_ways_that_serve_less_come_last_though_they_are_cheaper() -> None:
    ways = ways_of(report_on(text_of("budget")))

    assert [way[0].key for way in ways] == ["supply.budget", "workloads.assistant.traffic.rate"]


def test_a_search_that_is_cut_short_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trials, "MOST_SOLVES", 3)
    monkeypatch.setattr(trials, "LEAST_SOLVES", 3)
    plan = make_plan(prepare(load_spec(text_of("stock"), "fleet.yaml"), CATALOG), Options())

    assert plan.infeasible is not None
    assert "the search was cut short" in plan.infeasible.reason
    assert plan.status == "infeasible"


def test_workloads_that_nothing_serves_are_all_named() -> None:
    second = """  summaries:
    model: chat
    traffic: {rate: 1 req/s, input_tokens: 1000, output_tokens: 200}
    slo: {tpot_p95: 3 ms}
supply:"""
    reason = report_on(text_of("tpot").replace("supply:", second)).reason

    assert "workload assistant of model chat: tpot_p95 of 4 ms" in reason
    assert "workload summaries of model chat: tpot_p95 of 3 ms" in reason
