"""Why a plan does not use an offer: it does, a rule keeps it out, or this is what a fleet costs with workloads on it alone."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from planner.catalog import Catalog
from planner.explain.answer import Answer
from planner.explain.named import NothingNamed, named
from planner.explain.trials import Trials
from planner.explain.why_not import answers_about
from planner.pipeline import Options, make_plan, prepare, variants
from planner.plan.schema import Plan
from planner.spec import FleetSpec, load_spec

SPECS = Path(__file__).parents[2] / "specs" / "examples"
ONE = """\
version: 1
fleet: one
models:
  chat: {use: llama-3.1-8b, max_model_len: 8k, weights: [fp8], kv_cache: [fp8]}
workloads:
  ask:
    model: chat
    traffic: {rate: 12 req/s, input_tokens: 1000, output_tokens: 200}
    slo: {ttft_p95: 2 s, tpot_p95: 80 ms}
supply:
  offers:
    - {name: v, provider: aws, region: us-east-1, gpus: [L40S, L4]}
    - {name: g, provider: gcp, region: us-central1, gpus: [L4, H100-SXM-80GB]}
planning: {gap: 0.1 %}
"""
USED = "v/us-east-1/g6e.xlarge/on-demand"
UNUSED = "g/us-central1/g2-standard-4/on-demand"
UNPRICED = "g/us-central1/a3-highgpu-1g/on-demand"

TWO = """\
version: 1
fleet: two
models:
  chat: {use: llama-3.1-8b, max_model_len: 8k, weights: [fp8], kv_cache: [fp8]}
  code: {use: qwen3-8b, max_model_len: 8k, weights: [fp8], kv_cache: [fp8]}
workloads:
  ask:
    model: chat
    traffic: {rate: 10 req/s, input_tokens: 1000, output_tokens: 200}
    slo: {ttft_p95: 2 s, tpot_p95: 80 ms}
    deny: {providers: [gcp]}
  complete:
    model: code
    traffic: {rate: 10 req/s, input_tokens: 1000, output_tokens: 50}
    slo: {ttft_p95: 2 s, tpot_p95: 80 ms}
    allow: {providers: [gcp]}
supply:
  offers:
    - {name: v, provider: aws, region: us-east-1, gpus: [L40S]}
    - {name: g, provider: gcp, region: us-central1, gpus: [L4]}
planning: {gap: 0.1 %}
"""

Asker = Callable[[str, str], list[Answer]]
Case = tuple[Plan, FleetSpec, Trials]


@pytest.fixture(scope="module")
def case(catalog: Catalog) -> Callable[[str], Case]:
    @cache
    def planned(text: str) -> Case:
        prepared = prepare(load_spec(text, "offers.yaml"), catalog)
        plan = make_plan(prepared, Options())
        assert plan.status == "solved"
        return plan, *variants(prepared, plan)

    return planned


@pytest.fixture(scope="module")
def ask(case: Callable[[str], Case]) -> Asker:
    """Ask why the plan of a spec does not use what a name means."""

    def asked(text: str, name: str) -> list[Answer]:
        plan, spec, trials = case(text)
        table = trials.table(spec)
        return answers_about(plan, spec, table, trials, named(name, table, trials.catalog))

    return asked


@pytest.mark.parametrize("name", ["v", "V", "v/us-east-1", USED])
def test_an_offer_in_use_is_said_to_be_chosen(name: str, ask: Asker, case: Callable[[str], Case]) -> None:
    (node,) = case(ONE)[0].nodes
    (answer,) = ask(ONE, name)

    assert (node.offer, answer.rule, answer.model) == (USED, "chosen", "chat")
    assert answer.reason == f"the plan serves ask on it: {node.nodes} nodes of {USED} (chat)"


def test_an_offer_that_is_not_used_has_the_price_of_a_fleet_on_it_alone(
    ask: Asker, case: Callable[[str], Case]
) -> None:
    plan = case(ONE)[0]
    (answer,) = ask(ONE, UNUSED)
    alone, _, _ = case(ONE.replace("gpus: [L4, H100-SXM-80GB]", "instances: [g2-standard-4]").replace(_line("v"), ""))

    assert plan.objective is not None
    assert alone.objective is not None
    assert answer.rule == "allowed"
    assert answer.usd_per_hour == pytest.approx(alone.objective.usd_per_hour)
    assert answer.more_usd_per_hour == pytest.approx(alone.objective.usd_per_hour - plan.objective.usd_per_hour)
    assert f"{alone.nodes[0].nodes} nodes of {UNUSED}" in answer.reason


def _line(entry: str) -> str:
    return next(line for line in ONE.splitlines(keepends=True) if f"name: {entry}," in line)


def test_an_entry_stands_for_all_that_it_sells_priced_or_not(ask: Asker) -> None:
    first, *others = ask(ONE, "g")

    assert (first.shape, first.rule) == ("g", "allowed")
    assert first.usd_per_hour is not None
    assert {a.rule for a in others} == {"no-price"}
    assert UNPRICED in {a.shape for a in others}
    assert [a.rule for a in ask(ONE, UNPRICED)] == ["no-price"]


def test_each_model_has_an_answer_of_its_own(ask: Asker) -> None:
    by_model = {a.model: a for a in ask(TWO, "v")}

    assert by_model["chat"].rule == "chosen"
    assert (by_model["code"].rule, by_model["code"].workload) == ("selector", "complete")
    assert by_model["code"].reason == "workloads.complete.allow is {providers: [gcp]}"
    assert {a.model: a.reason for a in ask(TWO, "g")}["chat"] == "workloads.ask.deny is {providers: [gcp]}"


@pytest.mark.parametrize(
    ("old", "new", "name", "rule", "reason"),
    [
        ("kv_cache: [fp8]}", "kv_cache: [fp8], deny: {gpus: [L4]}}", UNUSED, "selector", "models.chat.deny is {gpus: [L4]}"),
        ("gpus: [L4, H", "terms: [on-demand, spot], gpus: [L4, H", UNUSED.replace("on-demand", "spot"), "spot",
         "workloads.ask has no `spot`, so that no spot node serves it"),
        ("planning:", "  limits: {gpus: {H100-SXM-80GB: 4}}\nplanning:", "g/us-central1/a3-highgpu-8g", "limits",
         "supply.limits.gpus.H100-SXM-80GB is 4, a node takes 8"),
        ("planning:", "  limits: {rules: [{match: {provider: gcp}, share: 0 %}]}\nplanning:", UNUSED, "limits",
         "supply.limits.rules.0.share is 0 %"),
        ("kv_cache: [fp8]}", "kv_cache: [fp8], reliability: {survive: zone}}", "g/us-central1/a3-highgpu-8g", "survive",
         "reliability.survive of chat is zone, and all of it is in gcp/us-central1"),
        ("tpot_p95: 80 ms", "tpot_p95: 8 ms", UNUSED, "latency", "on it, no candidate can serve workload ask of model chat: tpot_p95"),
        ("us-central1, gpus", "us-central1, nodes: 1, gpus", UNUSED, "no-fleet",
         "no fleet that serves ask on it alone was found within all limits: supply.offers.g.nodes is 1"),
    ],
    ids=["deny", "spot", "gpus", "share", "zone", "latency", "stock"],
)  # fmt: skip
def test_what_keeps_an_offer_out_is_named(old: str, new: str, name: str, rule: str, reason: str, ask: Asker) -> None:
    assert ONE.count(old) == 1
    (answer,) = ask(ONE.replace(old, new), name)

    assert answer.rule == rule
    assert answer.reason.startswith(reason)
    assert answer.usd_per_hour is None


def test_an_offer_for_a_part_is_told_from_the_offer_alone(ask: Asker) -> None:
    part, alone = ask(ONE.replace("kv_cache: [fp8]}", "kv_cache: [fp8], reliability: {survive: zone}}"), "v")

    assert part.reason.startswith("the plan serves ask on it among others: ")
    assert (alone.shape, alone.rule) == ("v alone", "survive")


def test_where_hours_are_planned_in_periods_counts_are_the_most_of_any(ask: Asker) -> None:
    hourly = ONE.replace("rate: 12 req/s", f"hourly: {[5.0] * 12 + [12.0] * 12}")
    (used,) = ask(hourly, "v")
    (other,) = ask(hourly, UNUSED)

    assert f"at most 2 nodes of {USED}" in used.reason
    assert other.rule == "allowed"
    assert "at most " in other.reason


def test_the_offers_of_the_shipped_example(ask: Asker) -> None:
    text = (SPECS / "spot-and-zones.yaml").read_text(encoding="utf-8")
    iowa = {(a.model, a.shape): a for a in ask(text, "iowa")}
    frankfurt = {(a.model, a.shape): a for a in ask(text, "frankfurt") if a.rule != "no-price"}

    assert iowa["judge", "iowa"].rule == iowa["chat", "iowa"].rule == "chosen"
    assert iowa["chat", "iowa alone"].rule == "survive"
    assert frankfurt["chat", "frankfurt"].rule == "chosen"
    assert frankfurt["judge", "frankfurt"].rule == "no-fleet"  # 80 % of the cost at one provider
    assert "supply.limits.rules.1.share is 80 %" in frankfurt["judge", "frankfurt"].reason


def test_names_that_are_near_are_suggested(case: Callable[[str], Case]) -> None:
    _, spec, trials = case(ONE)
    table = trials.table(spec)
    with pytest.raises(NothingNamed, match=f"did you mean `{USED}`"):
        named(USED.replace("demand", "command"), table, trials.catalog)
    with pytest.raises(NothingNamed, match=r"a shape is called as in `H100.*`, an offer as in `g`"):
        named("nonsense", table, trials.catalog)


def test_workloads_are_held_to_offers(case: Callable[[str], Case]) -> None:
    _, spec, trials = case(TWO)
    held = trials.table(spec, {"ask": frozenset({"v/us-east-1/g6e.xlarge/on-demand"})})
    cells = {c for x in held.candidates if "ask" in x.services for c in x.cells}

    assert {o.name for o in held.supply.offers if o.cell in cells} == {"v/us-east-1/g6e.xlarge/on-demand"}
    assert {o.name for o in held.supply.offers} == {o.name for o in trials.table(spec).supply.offers}
