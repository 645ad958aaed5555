"""One fleet for several scenarios, held against all fleets that could be bought."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product

import pytest

from planner.candidates.ratings import Ratings
from planner.candidates.supply import build_supply
from planner.catalog import Catalog
from planner.diagnostics import DiagnosticError
from planner.pipeline import Options, make_plan, prepare
from planner.plan.io import dump, loads
from planner.plan.schema import Plan
from planner.report.table import render
from planner.robust.plan import Nodes, robust_plan
from planner.robust.scenarios import Case, cases_drawn, cases_of_file
from planner.spec import LoadedSpec, load_spec
from planner.spec.scenario_file import load_scenarios
from planner.sweep.base import Base
from planner.sweep.scenario import Scenario

SPEC = """
version: 1
fleet: two
models:
  chat: {use: Qwen/Qwen3-8B, weights: [int8], kv_cache: [fp8], max_model_len: 16384}
  code: {use: Qwen/Qwen3-4B, weights: [int8], kv_cache: [fp8], max_model_len: 8192}
workloads:
  talk:
    model: chat
    traffic: {rate: 1 req/s, input_tokens: {mean: 900, p95: 3000}, output_tokens: {mean: 250, p95: 600}}
    slo: {ttft_p95: 3 s, tpot_p95: 100 ms}
  edit:
    model: code
    traffic: {rate: 2 req/s, input_tokens: {mean: 1500, p95: 4000}, output_tokens: {mean: 30, p95: 80}}
    slo: {ttft_p95: 1500 ms}
supply:
  offers:
    - {name: east, provider: aws, region: us-east-1, gpus: [L4], instances: [g6.xlarge]}
    - {name: own, provider: owned, country: US, gpus: [L40S], gpus_per_node: 1, nodes: 1, price: 0.1 USD/gpu/h}
    - {name: big, provider: aws, region: us-east-1, gpus: [L40S], instances: [g6e.xlarge]}
"""
RATINGS = Ratings()
TALK, EDIT = "workloads.talk.traffic.rate", "workloads.edit.traffic.rate"
SCENARIOS = (
    ("talk doubles", ((TALK, "2.4 req/s"),)),
    ("edit doubles", ((EDIT, "8 req/s"),)),
    ("both", ((TALK, "1.6 req/s"), (EDIT, "5 req/s"))),
    ("own is gone", (("supply.offers.own.nodes", "0"),)),
)
LESS = ("less", ((EDIT, "1 req/s"),))
CLOUD = ("big/us-east-1/g6e.xlarge/on-demand", "east/us-east-1/g6.xlarge/on-demand")


def base_of(catalog: Catalog) -> Base:
    return Base(load_spec(SPEC, "two.yaml"), catalog)


def cases_of(base: Base, scenarios: Sequence[tuple[str, tuple[tuple[str, str], ...]]] = SCENARIOS) -> tuple[Case, ...]:
    found = cases_drawn([Scenario(i, values) for i, (_, values) in enumerate(scenarios, 1)], base)
    return tuple(replace(c, name=name) for c, (name, _) in zip(found, scenarios, strict=True))


def holds_on(nodes: Nodes, case: Case) -> bool:
    options = Options(nodes=nodes, gap=0.99, explains=False)
    return make_plan(case.prepared, options, ratings=RATINGS).objective is not None


def holding(nodes: Nodes, cases: Sequence[Case]) -> Mapping[int, bool]:
    return {c.scenario.number: holds_on(nodes, c) for c in cases}


def planned(base: Base, cases: Sequence[Case], hold_in: float = 1.0) -> Plan:
    return robust_plan(prepare(base.loaded, base.catalog), cases, Options(), hold_in, holding)


@pytest.fixture(scope="module")
def base(catalog: Catalog) -> Base:
    return base_of(catalog)


@pytest.fixture(scope="module")
def plan(base: Base) -> Plan:
    return planned(base, cases_of(base))


@pytest.fixture(scope="module")
def fleets(base: Base) -> dict[Nodes, tuple[float, frozenset[str]]]:
    """All fleets of few nodes that hold for the spec, with what they cost and the scenarios that they hold in."""
    assert base.loaded.spec is not None
    prices = {o.name: o.usd_per_node_h for o in build_supply(base.loaded.spec, base.catalog).offers}
    (own,) = (name for name in prices if name.startswith("own"))
    spec = replace(cases_of(base)[0], prepared=prepare(base.loaded, base.catalog))
    found: dict[Nodes, tuple[float, frozenset[str]]] = {}
    for counts in product(range(2), range(3)):
        nodes = tuple(sorted((*zip(CLOUD, counts, strict=True), (own, 1))))
        if holds_on(nodes, spec):
            cost = sum(prices[offer] * count for offer, count in nodes)
            found[nodes] = cost, frozenset(c.name for c in cases_of(base) if holds_on(nodes, c))
    return found


@pytest.mark.parametrize("lost", [0, 2])
def test_no_other_nodes_that_hold_cost_less(
    base: Base, fleets: Mapping[Nodes, tuple[float, frozenset[str]]], lost: int
) -> None:
    found = planned(base, cases_of(base), hold_in=1.0 - lost / len(SCENARIOS))
    least = min(cost for cost, holds in fleets.values() if len(holds) >= len(SCENARIOS) - lost)

    assert found.status == "solved"
    assert found.objective is not None
    assert found.robust is not None
    assert found.objective.usd_per_hour == pytest.approx(least, rel=0.006)
    assert found.robust.held >= len(SCENARIOS) - lost


def test_what_is_said_of_scenarios_is_so(base: Base, plan: Plan) -> None:
    assert plan.robust is not None
    own = tuple(sorted((n.offer, n.nodes) for n in plan.nodes))
    nominal = tuple(sorted(plan.robust.nominal_nodes.items()))
    for case, told in zip(cases_of(base), plan.robust.scenarios, strict=True):
        assert told.name == case.name
        assert told.holds is holds_on(own, case) is True
        assert told.nominal_holds is holds_on(nominal, case)
    assert {s.name for s in plan.robust.scenarios if not s.nominal_holds} == {"both", "own is gone"}
    assert plan.robust.nominal_held == sum(s.nominal_holds for s in plan.robust.scenarios)


def test_the_extra_cost_is_that_over_the_spec_alone(base: Base, plan: Plan) -> None:
    assert plan.robust is not None
    assert plan.objective is not None
    alone = make_plan(prepare(base.loaded, base.catalog), Options())
    assert alone.objective is not None
    assert plan.robust.nominal_usd_per_month == alone.objective.usd_per_month
    assert plan.robust.extra_usd_per_month == pytest.approx(
        plan.objective.usd_per_month - alone.objective.usd_per_month
    )
    assert plan.robust.extra_usd_per_month > 0.0
    assert dump(loads(dump(plan).encode(), "plan.json")) == dump(plan)


def test_scenarios_that_ask_for_nothing_more_cost_nothing(base: Base) -> None:
    found = planned(base, cases_of(base, (LESS,)))
    assert found.robust is not None
    assert (found.robust.extra_usd_per_month, found.robust.held) == (0.0, 1)
    assert not any(s.decides for s in found.robust.scenarios)


def test_the_report_says_where_which_nodes_hold(plan: Plan) -> None:
    text = render(plan)
    assert "These nodes hold in 4 of 4 scenarios (all asked for), and for the spec as it is." in text
    assert "both          holds      FAILS" in text


def test_a_scenario_without_a_fleet_is_named(base: Base) -> None:
    found = planned(base, cases_of(base, (("slow", (("workloads.talk.slo.ttft_p95", "1 ms"),)),)))
    assert found.status == "infeasible"
    assert found.infeasible is not None
    assert found.infeasible.reason.startswith("scenario slow has no fleet by itself")


def test_scenarios_without_a_fleet_may_be_given_up(base: Base) -> None:
    scenarios = (*SCENARIOS[:1], ("slow", (("workloads.talk.slo.ttft_p95", "1 ms"),)))
    found = planned(base, cases_of(base, scenarios), hold_in=0.5)
    assert found.robust is not None
    assert [s.holds for s in found.robust.scenarios] == [True, False]


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ((("price." + CLOUD[1], "0.1 USD/node/h"),), "the price of east"),
        ((("supply.offers.east.price", "0.1 USD/gpu/h"),), "the price of east"),
        ((("supply.limits.gpu_types", "1"),), "`supply.limits` is the same in all scenarios"),
        ((("supply.budget", "9000 USD/month"),), "`supply.budget` is the same"),
        ((("supply.offers.east.nodes", "3"),), "east has other nodes"),
        ((("supply.offers.own.gpus", "[H100-SXM-80GB]"),), "the nodes of own/owned are other ones"),
        ((("planning.gap", "1 %"),), "`planning` is the same"),
        ((("supply.offers.east.instances", "[g6.xlarge, g6.2xlarge]"),), "scenarios only take offers away"),
        ((("growth", "{rate: 1 %/month, horizon: 2 months}"),), "`growth` is the same"),
    ],
)
def test_what_is_decided_before_is_refused(base: Base, values: tuple[tuple[str, str], ...], words: str) -> None:
    with pytest.raises(DiagnosticError, match="draw 1: ") as caught:
        cases_of(base, (("x", values),))
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("text", "code", "line"),
    [
        ("scenarios: []", "spec/empty", 1),
        ("scenarios:\n- {name: a, set: {}}", "scenario/nothing-set", 2),
        ("scenarios:\n- {name: a}", "spec/missing-key", 2),
        ("scenarios:\n- {name: a, set: {workloads.tlak.traffic.rate: 2 req/s}}", "scenario/invalid", 2),
        (f"scenarios:\n- name: a\n  set: {{{TALK}: 2 ms}}", "scenario/invalid", 3),
        (
            f"scenarios:\n- {{name: a, set: {{{TALK}: 2 req/s}}}}\n- {{name: a, set: {{{EDIT}: 2 req/s}}}}",
            "scenario/repeated",
            3,
        ),
        ("scenario: []", "spec/unknown-key", 1),
        (
            f"scenarios:\n- name: a\n  set: {{{TALK}: 2 req/s, Workloads.talk.traffic.rate: 3 req/s}}",
            "scenario/invalid",
            3,
        ),
        ("- a", "yaml/not-a-mapping", 1),
        ("a: &a [*a]", "yaml/alias-expansion", 1),
    ],
)
def test_files_that_are_refused(base: Base, text: str, code: str, line: int) -> None:
    loaded = load_scenarios(text, "s.yaml")
    found = list(loaded.diagnostics)
    if loaded.scenarios is not None:
        with pytest.raises(DiagnosticError) as caught:
            cases_of_file(loaded, base)
        found = list(caught.value.diagnostics)
    assert (code, line) in [(d.code, d.span.line if d.span else 0) for d in found]


def test_a_file_is_read(base: Base) -> None:
    text = f"scenarios:\n- name: one\n  set: {{{TALK}: 2 req/s, models.chat.weights: [int8]}}\n"
    (case,) = cases_of_file(load_scenarios(text, "s.yaml"), base)
    assert case.name == "one"
    assert case.prepared.spec.workloads["talk"].traffic.peak_requests_per_s() == 2.0


def test_the_spec_is_never_given_up(base: Base) -> None:
    loaded: LoadedSpec = load_spec(SPEC.replace("ttft_p95: 3 s", "ttft_p95: 1 ms"), "two.yaml")
    slow = Base(loaded, base.catalog)
    found = planned(slow, cases_of(slow, (("fast", (("workloads.talk.slo.ttft_p95", "3 s"),)),)), hold_in=0.01)
    assert found.status == "infeasible"
    assert found.robust is None


def test_cheaper_nodes_that_may_be_gone_are_mixed_with_surer_ones(catalog: Catalog) -> None:
    """Offers of the same nodes are no twins where one of them is not there in some scenario."""
    text = """
version: 1
fleet: one
models: {chat: {use: Qwen/Qwen3-8B, weights: [int8], kv_cache: [fp8], max_model_len: 16384}}
workloads:
  talk:
    model: chat
    traffic: {rate: 2 req/s, input_tokens: {mean: 900, p95: 3000}, output_tokens: {mean: 250, p95: 600}}
    slo: {ttft_p95: 3 s, tpot_p95: 100 ms}
supply:
  offers:
    - {name: cheap, provider: aws, region: us-east-1, instances: [g6.xlarge], price: 0.5 USD/gpu/h}
    - {name: sure, provider: aws, region: us-west-2, instances: [g6.xlarge], price: 0.8 USD/gpu/h}
"""
    one = Base(load_spec(text, "one.yaml"), catalog)
    gone = ("supply.offers.cheap.nodes", "0")
    found = {
        rate: {
            n.offer.partition("/")[0]: n.nodes
            for n in planned(one, cases_of(one, (("x", (gone, (TALK, rate))),))).nodes
        }
        for rate in ("2 req/s", "0.5 req/s")
    }
    assert found == {"2 req/s": {"sure": 2}, "0.5 req/s": {"cheap": 1, "sure": 1}}


def test_models_that_are_the_same_in_a_scenario_may_change_nodes_too(catalog: Catalog) -> None:
    text = """
version: 1
fleet: two
models:
  chat: {use: Qwen/Qwen3-8B, weights: [int8], kv_cache: [fp8], max_model_len: 16384}
  code: {use: Qwen/Qwen3-4B, weights: [int8], kv_cache: [fp8], max_model_len: 8192, allow: {gpus: [L4]}}
workloads:
  talk:
    model: chat
    traffic: {rate: 0.3 req/s, input_tokens: {mean: 900, p95: 3000}, output_tokens: {mean: 250, p95: 600}}
    slo: {ttft_p95: 5 s, tpot_p95: 100 ms}
  edit:
    model: code
    traffic: {rate: 0.5 req/s, input_tokens: {mean: 1500, p95: 4000}, output_tokens: {mean: 30, p95: 80}}
    slo: {ttft_p95: 3 s}
supply:
  offers:
    - {name: x, provider: aws, region: us-east-1, instances: [g6.xlarge]}
    - {name: y, provider: aws, region: us-east-1, instances: [g5.xlarge]}
"""
    swapped = Base(load_spec(text, "two.yaml"), catalog)
    found = planned(swapped, cases_of(swapped, (("other GPU", (("models.code.allow", "{gpus: [A10G]}"),)),)))
    assert {n.offer.partition("/")[0]: n.nodes for n in found.nodes} == {"x": 1, "y": 1}


def test_offers_that_are_gone_in_other_scenarios_are_no_twins(catalog: Catalog) -> None:
    """Each of two cheaper offers is gone in a scenario in which the third is there: that one is worth its price."""
    text = """
version: 1
fleet: one
models: {chat: {use: Qwen/Qwen3-8B, weights: [int8], kv_cache: [fp8], max_model_len: 16384}}
workloads:
  talk:
    model: chat
    traffic: {rate: 0.3 req/s, input_tokens: {mean: 900, p95: 3000}, output_tokens: {mean: 250, p95: 600}}
    slo: {ttft_p95: 5 s, tpot_p95: 100 ms}
supply:
  offers:
    - {name: d, provider: owned, country: US, gpus: [L4], gpus_per_node: 1, nodes: 1, price: 0.01 USD/gpu/h}
    - {name: a, provider: aws, region: us-east-1, instances: [g6.xlarge], price: 1.00 USD/gpu/h}
    - {name: b, provider: aws, region: us-east-1, instances: [g6.xlarge], price: 1.05 USD/gpu/h}
    - {name: c, provider: aws, region: us-east-1, instances: [g6.xlarge], price: 1.00 USD/gpu/h}
    - {name: e, provider: aws, region: us-east-1, instances: [g5.xlarge], price: 0.5 USD/gpu/h}
"""
    base = Base(load_spec(text, "one.yaml"), catalog)
    gone = [("a", "e"), ("c", "e"), ("b",)]
    scenarios = [
        (f"without {' '.join(names)}", ((TALK, "1.6 req/s"), *((f"supply.offers.{n}.nodes", "0") for n in names)))
        for names in gone
    ]
    found = planned(base, cases_of(base, scenarios))
    assert {n.offer.partition("/")[0]: n.nodes for n in found.nodes} == {"b": 1, "d": 1, "e": 1}
