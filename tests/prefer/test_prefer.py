"""Fleets that run: kept where they hold and cost little more, changed as little as possible elsewhere."""

from __future__ import annotations

import pytest
from planned import HOURLY

from planner.catalog import Catalog
from planner.diagnostics import DiagnosticError
from planner.pipeline import Options, make_plan, prepare
from planner.plan.io import dump, loads
from planner.plan.schema import Plan
from planner.prefer.earlier import PreferredPlan
from planner.spec import load_spec

TWO = """\
version: 1
fleet: two
models:
  chat: {use: llama-3.1-8b, max_model_len: 8k}
  code: {use: qwen3-32b, max_model_len: 8k, weights: [fp8], kv_cache: [bf16]}
workloads:
  assistant:
    model: chat
    traffic: {rate: 40 req/s, input_tokens: 1000, output_tokens: 200}
    slo: {ttft_p95: 1 s, tpot_p95: 50 ms}
  complete:
    model: code
    traffic: {rate: 2 req/s, input_tokens: 1500, output_tokens: 100}
    slo: {ttft_p95: 2 s, tpot_p95: 100 ms}
supply:
  offers: [{name: cloud, provider: aws, region: us-east-1, gpus: [L40S, A10G]}]
policies: [{max_monthly_cost_increase: 15 %}]
"""
CODE_ONLY = TWO.replace("  chat: {use: llama-3.1-8b, max_model_len: 8k}\n", "").replace(
    TWO[TWO.index("  assistant:") : TWO.index("  complete:")], ""
)
LESS = TWO.replace("rate: 40", "rate: 30")
NEW_WORKLOAD = """\
  urgent:
    model: chat
    traffic: {rate: 1 req/s, input_tokens: 1000, output_tokens: 200}
    slo: {ttft_p95: 80 ms}
"""
REASONS = {
    "workloads": (
        TWO.replace("supply:", NEW_WORKLOAD + "supply:").replace("gpus: [L40S", "gpus: [H100-SXM-80GB, L40S"),
        ("workload urgent of model chat: no pool can serve it, within its limits and on nodes that it may use",),
    ),
    "demand": (TWO.replace("tpot_p95: 50", "tpot_p95: 25"), ("model chat: its replicas carry ", "(assistant)")),
    "losses": (
        TWO + "reliability: {spare_replicas: 1}\n",
        ("model code: without 1 replica of L40S-tp1-fp8-kvbf16 ", "%"),
    ),
    "nodes": (TWO + "reliability: {survive: node}\n", ("model chat: without 1 replica of L40S-tp1-int8-kvfp8 ", "%")),
    "GPUs": (
        TWO.replace("policies", "  limits: {gpus: {L40S: 6}}\npolicies"),
        ("supply.limits.gpus.L40S is 6, and the fleet takes 8",),
    ),
    "cost": (LESS, ("the fleet as it was costs $", "(14.3 %) more than the best fleet; 1 % is allowed")),
    "offers": (
        TWO.replace("[L40S, A10G]", "[A10G]"),
        (
            "pool chat: no offer has L40S any more",
            "offer cloud/us-east-1/g6e.xlarge/on-demand is not in the supply any more",
        ),
    ),
    "formats": (
        TWO.replace("weights: [fp8]", "weights: [bf16]"),
        ("pool code: L40S-tp1-fp8-kvbf16 is no candidate today",),
    ),
}


def planned(text: str, catalog: Catalog, before: Plan | None = None, within: float | None = None) -> Plan:
    prefer = PreferredPlan(before, "before.json") if before is not None else None
    plan = make_plan(prepare(load_spec(text, "fleet.yaml"), catalog), Options(prefer=prefer, stay_within=within))
    assert loads(dump(plan).encode(), "plan.json").digests == plan.digests
    return plan


@pytest.fixture(scope="module")
def before(catalog: Catalog) -> Plan:
    """The plan of the spec with two models."""
    return planned(TWO, catalog)


def fleet_of(plan: Plan) -> list[object]:
    return [(p.model, p.gpu, p.weights, p.max_num_seqs, p.replicas, p.placement) for p in plan.pools]


def usd_per_h(plan: Plan) -> float:
    assert plan.objective is not None
    return plan.objective.usd_per_hour


def test_an_unchanged_spec_leads_to_the_same_plan(before: Plan, catalog: Catalog) -> None:
    again = planned(TWO, catalog, before)
    assert again.preferred is not None
    assert (again.preferred.outcome, again.preferred.plan) == ("kept", before.digests.plan)
    assert (again.preferred.changes, again.preferred.reasons, again.preferred.would_save) == ((), (), 0.0)
    assert [(p.outcome, p.actual) for p in again.policies] == [("ok", 0.0)]

    unlike = {"preferred", "digests", "policies"}
    assert again.model_dump(exclude=unlike) == before.model_dump(exclude=unlike)
    assert dump(planned(TWO, catalog, before)) == dump(again)


def test_plans_without_one_say_nothing_of_it(before: Plan) -> None:
    assert before.preferred is None
    assert 'preferred"' not in dump(before)


def test_a_fleet_is_kept_on_purpose(before: Plan, catalog: Catalog) -> None:
    """It is solved though its gap is wide: the bound and what the best fleet would save are said."""
    best, kept = planned(LESS, catalog), planned(LESS, catalog, before, within=0.5)
    assert kept.preferred is not None
    assert kept.objective is not None

    assert fleet_of(kept) == fleet_of(before)
    assert (kept.preferred.outcome, kept.status) == ("kept", "solved")
    assert kept.preferred.best_usd_per_hour == pytest.approx(usd_per_h(best))
    assert kept.preferred.would_save_usd_per_hour == pytest.approx(usd_per_h(kept) - usd_per_h(best))
    assert kept.objective.bound <= usd_per_h(best) * (1.0 + 1e-9)
    assert kept.objective.gap == pytest.approx(1.0 - kept.objective.bound / usd_per_h(kept))
    assert kept.objective.gap > load_spec(LESS, "fleet.yaml").spec.planning.gap  # type: ignore[union-attr]


def test_too_dear_a_fleet_changes_as_little_as_possible(before: Plan, catalog: Catalog) -> None:
    plan = planned(LESS, catalog, before)
    assert plan.preferred is not None
    assert plan.preferred.outcome == "changed"
    assert usd_per_h(plan) <= usd_per_h(planned(LESS, catalog)) * 1.01
    assert [(c.kind, c.from_, c.to) for c in plan.preferred.changes] == [("replicas", 5, 4), ("nodes", 8, 7)]


@pytest.mark.parametrize("case", REASONS)
def test_why_it_cannot_be_kept(case: str, before: Plan, catalog: Catalog) -> None:
    text, words = REASONS[case]
    plan = planned(text, catalog, before)
    assert plan.preferred is not None
    assert plan.preferred.outcome in ("changed", "not_possible")

    said = "\n".join(plan.preferred.reasons)
    assert all(word in said for word in words), said
    assert plan.preferred.changes


def test_fewest_changes_use_what_runs(before: Plan, catalog: Catalog) -> None:
    """More of the same shape instead of other shapes that cost no more."""
    plan = planned(TWO.replace("rate: 40", "rate: 60"), catalog, before, within=0.1)
    assert plan.preferred is not None
    shapes = {c.name for c in plan.preferred.changes if c.kind == "replicas"}
    assert shapes == {"chat on L40S-tp1-int8-kvfp8"}
    assert all(c.to >= c.from_ for c in plan.preferred.changes)


def test_models_that_come_and_go_leave_the_others_alone(before: Plan, catalog: Catalog) -> None:
    less = planned(CODE_ONLY, catalog, before)
    more = planned(TWO, catalog, less)
    assert less.preferred is not None
    assert more.preferred is not None

    assert (less.preferred.outcome, more.preferred.outcome) == ("kept", "kept")
    assert [p for p in fleet_of(before) if p[0] == "code"] == fleet_of(less)  # type: ignore[index]
    assert fleet_of(more) == fleet_of(before)


def test_offers_are_known_by_place_where_their_name_changed(before: Plan, catalog: Catalog) -> None:
    plan = planned(TWO.replace("name: cloud", "name: sky"), catalog, before)
    assert plan.preferred is not None
    assert plan.preferred.outcome == "kept"


def test_a_spec_without_a_fleet_says_so(before: Plan, catalog: Catalog) -> None:
    plan = planned(TWO.replace("policies", "  budget: 100 USD/month\npolicies"), catalog, before)
    assert plan.preferred is not None
    assert (plan.status, plan.preferred.outcome) == ("infeasible", "not_possible")
    assert plan.preferred.reasons == ("no fleet meets the spec, neither this one nor another",)


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        (
            TWO.replace("chat", "chad").replace("code", "coda"),
            "plan/other-fleet",
            "it serves chat, code, and the spec chad, coda",
        ),
        (TWO, "plan/no-fleet", "this plan has no fleet to keep"),
    ],
)
def test_plans_that_cannot_be_preferred(text: str, code: str, words: str, before: Plan, catalog: Catalog) -> None:
    plan = before if code == "plan/other-fleet" else before.model_copy(update={"pools": ()})
    with pytest.raises(DiagnosticError) as error:
        planned(text, catalog, plan)
    (found,) = error.value.diagnostics
    assert found.code == code
    assert words in found.message
    assert found.span is not None
    assert found.span.path == "before.json"


def test_nodes_that_cheaper_ones_replace_are_kept_too(catalog: Catalog) -> None:
    """Nodes of an offer with a cheaper twin are no part of the program unless some are paid for."""
    dear = TWO.replace(
        "gpus: [L40S, A10G]}]",
        "gpus: [L40S]}, {name: new, provider: aws, region: us-east-1, gpus: [L40S], discount: 0.5 %}]",
    )
    old = planned(
        dear.replace(", {name: new, provider: aws, region: us-east-1, gpus: [L40S], discount: 0.5 %}", ""), catalog
    )
    plan = planned(dear, catalog, old)
    assert plan.preferred is not None
    assert plan.preferred.outcome == "kept"
    assert {n.offer.partition("/")[0] for n in plan.nodes} == {"cloud"}
    assert plan.preferred.would_save == pytest.approx(0.005, rel=0.01)


DEPLOYED = """\
deployed:
  - {model: chat, gpu: l40s, weights: int8, kv_cache: fp8, replicas: 6, offer: cloud}
  - {model: code, gpu: L40S, weights: fp8, replicas: 3, offer: cloud}
"""


def test_what_is_deployed_is_kept_like_a_plan(before: Plan, catalog: Catalog) -> None:
    """Its nodes are those that its replicas take, its cost that of today, and a plan wins over it."""
    kept = planned(TWO + DEPLOYED, catalog, within=0.2)
    changed, other = planned(TWO + DEPLOYED, catalog), planned(TWO + DEPLOYED, catalog, before)
    assert kept.preferred is not None
    assert changed.preferred is not None
    assert other.preferred is not None

    assert (kept.preferred.outcome, kept.preferred.plan, kept.preferred.changes) == ("kept", None, ())
    assert [(p.model, p.replicas) for p in kept.pools] == [("chat", 6), ("code", 3)]
    assert [(p.outcome, p.actual) for p in kept.policies] == [("ok", 0.0)]
    assert [(c.kind, c.from_, c.to) for c in changed.preferred.changes] == [("replicas", 6, 5), ("nodes", 9, 8)]
    assert (other.preferred.outcome, other.preferred.plan) == ("kept", before.digests.plan)


def test_what_is_deployed_on_nodes_that_nobody_sells(catalog: Catalog) -> None:
    plan = planned(TWO + DEPLOYED.replace("gpu: l40s", "gpu: h100-sxm-80gb"), catalog)
    assert plan.preferred is not None
    assert plan.preferred.outcome == "changed"
    assert plan.preferred.reasons == (
        "pool deployed 1: no offer has H100-SXM-80GB any more",
        "offer cloud has no such nodes of H100-SXM-80GB any more",
    )


MIXED = """\
version: 1
fleet: mixed
models:
  chat: {use: llama-3.1-8b-instruct, max_model_len: 16k, weights: [fp8], kv_cache: [fp8]}
workloads:
  short:
    model: chat
    traffic: {rate: 48 req/s, input_tokens: {mean: 300, p95: 700}, output_tokens: {mean: 200, p95: 450}}
    slo: {ttft_p95: 1.5 s, tpot_p95: 50 ms}
  long:
    model: chat
    traffic: {rate: 2.4 req/s, input_tokens: {mean: 5000, p95: 8000}, output_tokens: {mean: 100, p95: 250}}
    slo: {ttft_p95: 4 s, tpot_p95: 120 ms}
    deny: {gpus: [L40S]}
supply:
  offers:
    - {name: l40, provider: owned, gpus: [L40S], gpus_per_node: 1, nodes: 1, price: 1.0 USD/gpu/h}
    - {name: h100, provider: owned, gpus: [H100-SXM-80GB], gpus_per_node: 1, nodes: 1, price: 1.5 USD/gpu/h}
    - {name: cloud, provider: aws, gpus: [L40S], regions: [us-east-1], terms: [on-demand]}
deployed:
  - {model: chat, gpu: L40S, weights: fp8, kv_cache: fp8, replicas: 1, offer: l40}
  - {model: chat, gpu: H100-SXM-80GB, weights: fp8, kv_cache: fp8, replicas: 1, offer: h100}
reliability: {spare_replicas: 0}
"""


def test_a_fleet_is_kept_in_a_mix_that_no_candidate_is_rated_for(catalog: Catalog) -> None:
    """The H100 takes all long requests and over half of the short ones: no candidate has such a mix."""
    plan = planned(MIXED, catalog)
    assert plan.preferred is not None
    assert (plan.preferred.outcome, plan.preferred.changes) == ("kept", ())
    h100 = next(p for p in plan.pools if p.gpu == "H100-SXM-80GB")
    assert h100.workloads["long"] == pytest.approx(2.4)
    assert 0.5 * 48 < h100.workloads["short"] < 48


def test_a_fleet_of_several_periods_is_kept_in_each_of_them(catalog: Catalog) -> None:
    before = planned(HOURLY, catalog)
    kept = planned(HOURLY, catalog, before)
    assert kept.preferred is not None
    assert (kept.preferred.outcome, kept.preferred.changes) == ("kept", ())
    assert [p.replicas_by_period for p in kept.pools] == [p.replicas_by_period for p in before.pools]
    assert kept.objective == before.objective


def test_the_fleet_of_a_peak_is_given_up_where_hours_are_cheaper(catalog: Catalog) -> None:
    """What is bought for all hours costs more than what periods ask for; a budget between the two is no reason to fail."""
    text = HOURLY + "planning: {periods: 1}\n"
    before, hours = planned(text, catalog), planned(HOURLY, catalog)
    assert before.objective is not None
    assert hours.objective is not None
    budget = 0.5 * (before.objective.usd_per_month + hours.objective.usd_per_month)
    plan = planned(HOURLY + f"  budget: {budget:.0f} USD/month\n", catalog, before)
    assert plan.preferred is not None
    assert plan.preferred.outcome == "changed"
    assert plan.preferred.reasons[0].startswith("supply.budget is ")
    assert plan.objective is not None
    assert plan.objective.usd_per_month == pytest.approx(hours.objective.usd_per_month)
