"""Specs without a fleet: the right cause comes first, and every way out that is printed works when it is taken."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
from changed_specs import changed, set_values, ways_of

from planner.catalog import Catalog
from planner.explain import trials
from planner.pipeline import Options, make_plan, prepare
from planner.plan.schema import InfeasibleReport, Plan
from planner.spec import load_spec
from planner.spec.keys import key_path

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
ELSEWHERE = text_of("country").replace("[FR]", "[DE]")
ONLY_SPOT = text_of("spot").replace("    spot: {max_share: 50 %}\n", "")
ZONE = text_of("regions").replace("    allow: {countries: [DE]}\n", "") + "reliability: {survive: zone}\n"
NODE = (
    text_of("stock")
    .replace("60 req", "3 req")
    .replace("nodes: 2", "nodes: 1")
    .replace("[g6e.xlarge]", "[g6e.12xlarge]")
)
NODE = NODE.replace("  budget: 50000 USD/month", "reliability: {survive: node}")
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
    "country": (
        text_of("country"),
        {"workloads.assistant.allow.countries", "supply.offers.a.region", "supply.offers.g.region"},
    ),
    "elsewhere": (
        ELSEWHERE,
        {"workloads.assistant.allow.countries", "supply.offers.a.region", "supply.offers.g.region"},
    ),
    "spot share": (text_of("spot"), {"workloads.assistant.spot.max_share", "supply.offers.cloud.terms"}),
    "only spot": (ONLY_SPOT, {"workloads.assistant.spot", "supply.offers.cloud.terms"}),
    "zone": (ZONE, {"reliability.survive"}),
    "node": (NODE, {"reliability.survive", "supply.offers.cloud.nodes"}),
    "shapes": (text_of("shapes"), {"models.chat.max_shapes"}),
    "sequences": (text_of("sequences"), {"models.chat.engine.max_num_seqs", "supply.limits.gpus.L40S"}),
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


@every_cause
def test_what_the_spec_does_not_say_is_named_only_where_changing_it_helps(name: str) -> None:
    text, _ = CAUSES[name]
    loaded, report = load_spec(text, "fleet.yaml"), report_on(text)
    changes = {change.key for way in ways_of(report) for change in way}

    assert loaded.document is not None
    for conflict in report.conflict:
        assert loaded.document.has(key_path(loaded, conflict.key)) or conflict.key in changes


WAYS = {
    "country": {"workloads.assistant.allow.countries": "[FR, US]"},
    "elsewhere": {"workloads.assistant.allow.countries": "[DE, US]", "supply.offers.g.region": "europe-west3"},
    "spot share": {"workloads.assistant.spot.max_share": "100 %", "supply.offers.cloud.terms": "[spot, on-demand]"},
    "only spot": {"workloads.assistant.spot": "{}", "supply.offers.cloud.terms": "[spot, on-demand]"},
    "zone": {"reliability.survive": "node"},
    "node": {"reliability.survive": "replica", "supply.offers.cloud.nodes": "2"},
    "shapes": {"models.chat.max_shapes": "2"},
}


@pytest.mark.parametrize("name", WAYS)
def test_ways_are_as_small_as_will_do(name: str) -> None:
    ways = ways_of(report_on(CAUSES[name][0]))

    assert {change.key: change.to for way in ways for change in way} == WAYS[name]


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("stock", "supply.offers.cloud.nodes"),
        ("sequences", "models.chat.engine.max_num_seqs"),
        ("sequences", "supply.limits.gpus.L40S"),
    ],
)
def test_one_less_would_not_do(name: str, key: str) -> None:
    text = CAUSES[name][0]
    (change,) = (c for way in ways_of(report_on(text)) for c in way if c.key == key)

    assert planned(set_values(text, {key: f"{int(change.to) - 1}"})).status == "infeasible"


def test_replicas_are_lowered_no_more_than_they_must() -> None:
    most = text_of("stock").replace("60 req", "3 req").replace("  budget: 50000 USD/month\n", "")
    ways = ways_of(report_on(most + "reliability: {min_replicas: 9}\n"))

    assert {c.key: c.to for way in ways for c in way}["reliability.min_replicas"] == "2"


def test_a_budget_of_several_periods_is_what_they_cost() -> None:
    text = text_of("budget").replace("rate: 60 req/s", f"hourly: [{'1, ' * 12}{'60, ' * 12}]")
    (way,) = ways_of(report_on(text))
    plan = planned(changed(text, way))

    assert plan.objective is not None
    assert float(way[0].to.split()[0]) == pytest.approx(plan.objective.usd_per_month, rel=trials.WAY_GAP)


def test_what_is_inherited_can_be_taken_back() -> None:
    text = text_of("regions").replace("    allow: {countries: [DE]}\n", "")
    text = text.replace("models:", "defaults: {deny: {providers: [aws]}}\nmodels:")
    ways = [w for w in ways_of(report_on(text)) if w[0].key == "models.chat.deny"]

    assert [change.to for change in ways[0]] == ["{providers: []}"]
    assert planned(changed(text, ways[0])).status == "solved"


def test_settings_of_the_engine_are_in_the_way_where_they_leave_no_memory() -> None:
    text = text_of("regions").replace("    allow: {countries: [DE]}\n", "")
    text = text.replace("8k}", "8k, weights: [bf16], engine: {gpu_memory_utilization: 5 %}}")
    way = next(w for w in ways_of(report_on(text)) if w[0].key == "models.chat.engine.gpu_memory_utilization")

    assert planned(changed(text, way)).status == "solved"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("memory", "memory; the nearest shape, H100-SXM-80GB-tp1-bf16-kvbf16, is short by"),
        ("tpot", "tpot_p95 of 4 ms is below what any shape reaches; the best is"),
        ("ttft", "ttft_p99 of 500 ms is below what any shape reaches; the best is"),
        ("regions", "allow and deny leave none of the offers"),
        ("only spot", "all offers are spot nodes, and the workload does not allow spot"),
        ("spot share", "these limits together leave no fleet"),
        ("stock", "this limit leaves no fleet"),
        ("budget", "this limit leaves no fleet"),
    ],
)
def test_the_right_cause_comes_first(name: str, words: str) -> None:
    report = report_on(CAUSES[name][0])

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
    assert {c.key for c in plan.infeasible.conflict} <= {"supply.offers.cloud.nodes", "supply.budget"}


def test_workloads_that_nothing_serves_are_all_named() -> None:
    second = """  summaries:
    model: chat
    traffic: {rate: 1 req/s, input_tokens: 1000, output_tokens: 200}
    slo: {tpot_p95: 3 ms}
supply:"""
    reason = report_on(text_of("tpot").replace("supply:", second)).reason

    assert "workload assistant of model chat: tpot_p95 of 4 ms" in reason
    assert "workload summaries of model chat: tpot_p95 of 3 ms" in reason
