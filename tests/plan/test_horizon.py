"""Plans of the months ahead: what is bought when, held against all that could be bought, and audited."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.candidates.growth import months_after, steps_of
from planner.catalog import Catalog
from planner.diagnostics import DiagnosticError
from planner.pipeline import Options, make_plan, prepare
from planner.plan.horizon import audit_growth
from planner.plan.io import dump, loads
from planner.plan.schema import Plan
from planner.prefer.earlier import PreferredPlan
from planner.report.diff import blocks
from planner.report.table import print_blocks
from planner.review.diff import Side, compare, planned_side
from planner.review.verify import Subject, verify
from planner.solve.outcome import Solution
from planner.solve.packing import bought_by
from planner.spec import load_spec

YEAR_PRICE, HOUR_PRICE, HOURS = 4.4, 6.88, 730.0
SPEC = """
version: 1
fleet: grow
models: {chat: {use: Qwen/Qwen3-32B, weights: [fp8], kv_cache: [fp8], max_model_len: 16384}}
workloads:
  talk:
    model: chat
    traffic: {rate: RATE, input_tokens: {mean: 1155, p95: 4083}, output_tokens: {mean: 211, p95: 451}}
    slo: {ttft_p95: 2 s, tpot_p95: 60 ms}
supply:
  offers:
    - {name: hour, provider: aws, region: us-east-1, instances: [p5.4xlarge], terms: [on-demand]}
    - {name: year, provider: aws, region: us-east-1, instances: [p5.4xlarge], terms: [1y], price: PRICE USD/gpu/h}
growth: {rate: 15 %/month, horizon: 6 months}
"""


def plan_of(
    catalog: Catalog, extra: str = "", rate: str = "3 req/s", price: float = YEAR_PRICE, **changed: str
) -> Plan:
    text = SPEC.replace("RATE", rate).replace("PRICE", str(price)) + extra
    for old, new in changed.items():
        text = text.replace(old.replace("_", " "), new)
    return make_plan(prepare(load_spec(text, "grow.yaml"), catalog), Options())


@pytest.fixture(scope="module")
def plan(catalog: Catalog) -> Plan:
    return plan_of(catalog)


@given(needed=st.lists(st.integers(0, 3), min_size=1, max_size=5), term=st.integers(1, 5))
def test_no_other_purchases_pay_for_fewer_steps(needed: list[int], term: int) -> None:
    def paid(bought: tuple[int, ...]) -> list[int]:
        return [sum(bought[max(0, now - term + 1) : now + 1]) for now in range(len(bought))]

    found = paid(tuple(bought_by(needed, term)))
    all_others = (paid(bought) for bought in product(range(max(needed) + 1), repeat=len(needed)))
    least = min(sum(p) for p in all_others if all(a >= b for a, b in zip(p, needed, strict=True)))

    assert all(a >= b for a, b in zip(found, needed, strict=True))
    assert sum(found) == least


def test_the_plan_is_that_of_the_first_step(plan: Plan) -> None:
    growth = plan.growth
    assert growth is not None
    assert plan.objective is not None
    assert plan.objective.usd_per_month == growth.steps[0].usd_per_month
    assert {n.offer: n.nodes for n in plan.nodes} == growth.steps[0].nodes
    assert plan.objective.value == pytest.approx(growth.usd / HOURS / 6)
    assert growth.bound_usd is not None
    assert growth.bound_usd <= growth.usd
    assert dump(loads(dump(plan).encode(), "plan.json")) == dump(plan)


def test_demand_compounds_by_the_month(plan: Plan) -> None:
    assert plan.growth is not None
    for step in plan.growth.steps:
        assert step.requests_per_s["talk"] == pytest.approx(3.0 * 1.15 ** (step.first_month - 1))


def test_what_is_bought_is_the_cheapest_of_all_purchases(catalog: Catalog) -> None:
    """Every node is equal: the year is tried against the hour in all ways for the nodes that each month needs."""
    for price in (6.5, 7.5):
        growth = plan_of(catalog, price=price).growth
        assert growth is not None
        needed = [sum(step.nodes.values()) for step in growth.steps]
        cheapest = min(
            sum(kept * price + max(0, need - kept) * HOUR_PRICE for kept, need in zip(held, needed, strict=True))
            for held in product(range(max(needed) + 1), repeat=len(needed))
            if list(held) == sorted(held)
        )
        assert growth.usd == pytest.approx(cheapest * HOURS, rel=0.005)
        assert bool(growth.purchases) == (price < HOUR_PRICE)


def test_what_is_still_due_after_the_horizon_is_counted(plan: Plan) -> None:
    assert plan.growth is not None
    for purchase in plan.growth.purchases:
        left = 12 - (6 - purchase.first_month + 1)
        assert purchase.usd_after_horizon == pytest.approx(left * purchase.usd_per_month)
    assert plan.growth.usd_after_horizon == pytest.approx(sum(p.usd_after_horizon for p in plan.growth.purchases))


def test_months_that_change_nothing_alone_cost_the_same_together(catalog: Catalog) -> None:
    """Steps of two months are planned for the last of them: never cheaper than month by month."""
    fine, coarse = (
        plan_of(catalog).growth,
        plan_of(catalog, **{"horizon:_6_months": "horizon: 6 months, step: 2 months"}).growth,
    )
    assert fine is not None
    assert coarse is not None
    assert [s.first_month for s in coarse.steps] == [1, 3, 5]
    assert coarse.usd >= fine.usd * 0.995


def test_hours_are_planned_in_every_step(catalog: Catalog) -> None:
    hourly = "HOURLY"
    text = SPEC.replace("rate: RATE", f"hourly: {[1] * 12 + [5] * 12}").replace("PRICE", "4.4")
    found = make_plan(prepare(load_spec(text, f"{hourly}.yaml"), catalog), Options())
    assert found.growth is not None
    assert [p.name for p in found.periods] == ["peak", "p2"]
    assert found.objective is not None
    assert found.growth.steps[0].usd_per_month == found.objective.usd_per_month
    assert found.growth.steps[-1].requests_per_s["talk"] == pytest.approx(5.0 * 1.15**5)


def test_a_comparison_tells_of_the_months_ahead(catalog: Catalog, plan: Plan) -> None:
    text = SPEC.replace("RATE", "3 req/s").replace("PRICE", str(YEAR_PRICE))
    slow, fast = (prepare(load_spec(text.replace("15 %", rate), "grow.yaml"), catalog) for rate in ("15 %", "30 %"))
    before = Side("old", loads(dump(plan).encode(), "plan.json"), slow)
    after = planned_side("new", fast, Options(), before)

    found = compare(before, after, Options())
    assert found.changed
    assert after.plan.growth is not None
    assert found.new.usd_over_horizon == after.plan.growth.usd
    assert plan.growth is not None
    (step,) = found.steps
    assert step.usd_over_horizon_delta == pytest.approx(after.plan.growth.usd - plan.growth.usd)
    assert step.changes_fleet
    assert "Months ahead: $" in print_blocks(blocks(found))
    assert not compare(before, planned_side("new", slow, Options(), before), Options()).changed


def test_a_repair_is_of_the_fleet_of_today(catalog: Catalog, plan: Plan) -> None:
    more = prepare(load_spec(SPEC.replace("RATE", "9 req/s").replace("PRICE", "4.4"), "grow.yaml"), catalog)
    found = verify(more, Subject(plan, "plan.json"), Options(prefer=PreferredPlan(plan, "plan.json")))
    assert found.broken
    assert found.repair is not None
    assert found.repair.usd_per_month is not None


def test_terms_end_with_their_offer(catalog: Catalog) -> None:
    growth = plan_of(catalog, **{"4.4_USD/gpu/h": "4.4 USD/gpu/h, until: 2026-10-01"}).growth
    assert growth is not None
    (bought,) = growth.purchases
    years = [s.nodes.get(bought.offer, 0) for s in growth.steps if s.due <= "2026-10-01"]
    assert (bought.due, bought.until, bought.usd_after_horizon) == (growth.steps[0].due, "2026-10-01", 0.0)
    assert set(years) == {bought.nodes}
    assert not any(bought.offer in s.nodes for s in growth.steps[len(years) :])


@pytest.mark.parametrize("ends", ["", ", until: 2026-10-01"])
def test_nodes_that_are_committed_already_are_no_purchases(catalog: Catalog, ends: str) -> None:
    growth = plan_of(catalog, **{"terms:_[1y]": f"terms: [1y], nodes: 3, committed: 1{ends}"}).growth
    assert growth is not None
    assert growth.steps[0].nodes == {"year/us-east-1/p5.4xlarge/1y": 1}
    assert [(p.first_month, p.nodes) for p in growth.purchases] == ([] if ends else [(4, 1)])


def test_owned_nodes_are_gone_once_they_end(catalog: Catalog) -> None:
    rack = "\n".join(
        [
            "    - {name: rack, provider: owned, country: US, gpus: [H100-SXM-80GB], gpus_per_node: 1, nodes: 1,",
            "       price: 1 USD/gpu/h, until: 2026-09-15}",
        ]
    )
    text = SPEC.replace("RATE", "3 req/s").replace("PRICE", "4.4").replace("growth: {", f"{rack}\ngrowth: {{")
    found = make_plan(prepare(load_spec(text, "rack.yaml"), catalog), Options(as_of=date(2026, 8, 1)))
    assert found.growth is not None
    assert ["rack/owned/owned/owned" in s.nodes or any("rack" in o for o in s.nodes) for s in found.growth.steps] == [
        True, True, False, False, False, False,
    ]  # fmt: skip


def test_the_first_month_without_a_fleet_is_named(catalog: Catalog) -> None:
    text = SPEC.replace("RATE", "3 req/s").replace("PRICE", "4.4")
    text = text.replace("growth: {", "  limits: {gpus: {H100-SXM-80GB: 1}}\ngrowth: {")
    found = make_plan(prepare(load_spec(text, "short.yaml"), catalog), Options())
    assert found.infeasible is not None
    assert found.infeasible.reason.startswith("month 4 (from 2026-10-30) is the first without a fleet")
    assert {(r.key, r.to) for r in found.infeasible.relaxations} == {("supply.limits.gpus.H100-SXM-80GB", "2")}


def test_the_budget_holds_in_every_month(plan: Plan, catalog: Catalog) -> None:
    text = SPEC.replace("RATE", "3 req/s").replace("PRICE", "4.4")
    assert plan.growth is not None
    most = max(s.usd_per_month for s in plan.growth.steps)
    short = text.replace("growth: {", f"  budget: {most - 1:.0f} USD/month\ngrowth: {{")
    assert make_plan(prepare(load_spec(short, "grow.yaml"), catalog), Options()).status == "infeasible"
    enough = text.replace("growth: {", f"  budget: {most + 1:.0f} USD/month\ngrowth: {{")
    assert make_plan(prepare(load_spec(enough, "grow.yaml"), catalog), Options()).status == "solved"


@pytest.mark.parametrize(
    "tampered",
    [
        lambda g: {"usd": g.usd * 1.01},
        lambda g: {"purchases": g.purchases[1:]},
        lambda g: {"purchases": tuple(p.model_copy(update={"nodes": p.nodes + 1}) for p in g.purchases)},
    ],
)
def test_the_audit_finds_what_the_steps_do_not_bear_out(plan: Plan, tampered: object) -> None:
    assert plan.growth is not None
    assert plan.objective is not None
    assert callable(tampered)
    spec = load_spec(SPEC.replace("RATE", "3 req/s").replace("PRICE", "4.4"), "grow.yaml").spec
    assert spec is not None
    plans = [
        plan.model_copy(
            update={
                "objective": plan.objective.model_copy(update={"usd_per_month": s.usd_per_month}),
                "nodes": tuple(
                    plan.nodes[0].model_copy(
                        update={"offer": o, "nodes": n, "term": "1y" if "1y" in o else "on-demand"}
                    )
                    for o, n in s.nodes.items()
                ),
            }
        )
        for s in plan.growth.steps
    ]
    solution = Solution({}, {}, {}, {}, plan.objective.value, plan.objective.bound)
    assert audit_growth(plan, plans, spec, solution) == ()
    changed = plan.model_copy(update={"growth": plan.growth.model_copy(update=tampered(plan.growth))})
    assert audit_growth(changed, plans, spec, solution)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("growth: {rate: 8 %, horizon: 12 months}", "spec/unknown-unit"),
        ("growth: {rate: 8 %/month, horizon: 12}", "spec/missing-unit"),
        ("growth: {rate: 8 %/month, horizon: 12 months, step: 5 months}", "spec/growth-steps"),
        ("growth: {rate: 8 %/month, horizon: 13 months, step: 2 months}", "spec/growth-steps"),
        ("growth: {rate: 8 %/month, horizon: 60 months, step: 1 month}", "spec/growth-steps"),
        ("growth: {rate: -8 %/month, horizon: 12 months}", "spec/out-of-range"),
        ("growth: {rate: 800 %/month, horizon: 12 months}", "spec/out-of-range"),
        ("growth: {horizon: 12 months}", "spec/missing-key"),
        ("growth: {rate: 100 %/month, horizon: 72 months}", "spec/growth-demand"),
    ],
)
def test_growth_that_is_no_growth(text: str, code: str) -> None:
    spec = SPEC.replace("RATE", "3 req/s").replace("PRICE", "4.4")
    loaded = load_spec(spec[: spec.index("growth: {")] + text + "\n", "grow.yaml")
    assert [d.code for d in loaded.diagnostics] == [code]


def test_growth_of_a_workload_needs_months_to_plan() -> None:
    spec = SPEC.replace("RATE", "3 req/s").replace("PRICE", "4.4")
    spec = spec[: spec.index("growth: {")].replace("    slo:", "    growth: 3 %/month\n    slo:")
    assert [d.code for d in load_spec(spec, "grow.yaml").diagnostics] == ["spec/growth-alone"]


def test_nothing_is_kept_or_certified_in_the_months_ahead(catalog: Catalog, plan: Plan) -> None:
    from planner.prefer.earlier import PreferredPlan
    from planner.simulate.fleet import Settings

    prepared = prepare(load_spec(SPEC.replace("RATE", "3 req/s").replace("PRICE", "4.4"), "grow.yaml"), catalog)
    for options in (Options(prefer=PreferredPlan(plan, "p.json")), Options(certify=Settings())):
        with pytest.raises(DiagnosticError, match="months ahead"):
            make_plan(prepared, options)


def test_steps_begin_on_the_same_day_of_each_month() -> None:
    assert months_after(date(2026, 1, 31), 1) == date(2026, 2, 28)
    assert months_after(date(2027, 12, 31), 2) == date(2028, 2, 29)
    loaded = load_spec(SPEC.replace("RATE", "3 req/s").replace("PRICE", "4.4"), "grow.yaml")
    assert loaded.spec is not None
    planning = loaded.spec.planning.model_copy(update={"as_of": date(2026, 10, 31)})
    steps = steps_of(loaded.spec.model_copy(update={"planning": planning}))
    assert [s.due.isoformat() for s in steps][:4] == ["2026-10-31", "2026-11-30", "2026-12-31", "2027-01-31"]
    assert sum(s.share for s in steps) == pytest.approx(1.0)
    assert steps_of(replace(loaded, spec=None).spec or loaded.spec.model_copy(update={"growth": None})) == ()


def test_the_chart_shows_what_each_month_costs(plan: Plan) -> None:
    from planner.report.html.figures import ahead

    assert plan.growth is not None
    (figure,) = ahead(plan)
    assert [row[2] for row in figure.data.rows] == [f"{s.usd_per_month:,.0f}" for s in plan.growth.steps]
    assert "<svg" in figure.svg
    assert ahead(plan.model_copy(update={"growth": None})) == []


def test_shares_of_the_cost_are_refused(catalog: Catalog) -> None:
    text = SPEC.replace("RATE", "3 req/s").replace("PRICE", "6.8")
    text = text.replace("growth: {", "  limits: {rules: [{match: {terms: [1y]}, share: 50 %}]}\ngrowth: {")
    with pytest.raises(DiagnosticError, match="shares of the cost"):
        make_plan(prepare(load_spec(text, "share.yaml"), catalog), Options())


def test_models_that_do_not_grow_may_move(catalog: Catalog) -> None:
    """Demand that does not grow asks for no more than demand that grows a little: its replicas are not held in place."""
    small = (
        "  - {name: x, provider: aws, region: us-east-1, instances: [g6.xlarge], price: 0.5 USD/gpu/h, nodes: 2}\n"
        "  - {name: y, provider: aws, region: us-east-1, instances: [g5.xlarge], price: 2 USD/gpu/h}\n"
    )
    model = "{use: Qwen/Qwen3-8B, weights: [int8], kv_cache: [fp8], max_model_len: 16384, max_shapes: 1}"
    lengths = "input_tokens: {mean: 900, p95: 3000}, output_tokens: {mean: 250, p95: 600}"

    def cost(rate: str) -> float:
        text = f"""
version: 1
fleet: two
models:
  flat: {model}
  up: {model}
workloads:
  a: {{model: flat, traffic: {{rate: 1.5 req/s, {lengths}}}, slo: {{ttft_p95: 5 s, tpot_p95: 100 ms}}, growth: {rate}}}
  b: {{model: up, traffic: {{rate: 0.95 req/s, {lengths}}}, slo: {{ttft_p95: 5 s, tpot_p95: 100 ms}}}}
growth: {{rate: 100 %/month, horizon: 3 months}}
supply:
  offers:
{small}"""
        found = make_plan(prepare(load_spec(text, "two.yaml"), catalog), Options())
        assert found.growth is not None
        return found.growth.usd

    assert cost("0 %/month") <= cost("0.01 %/month") * 1.005


ONE = """
version: 1
fleet: one
models: {chat: {use: Qwen/Qwen3-8B, weights: [int8], kv_cache: [fp8], max_model_len: 16384}}
workloads:
  talk:
    model: chat
    traffic: {DEMAND, input_tokens: {mean: 900, p95: 3000}, output_tokens: {mean: 250, p95: 600}}
    slo: {ttft_p95: 5 s, tpot_p95: 100 ms}
growth: {GROWTH}
supply:
  offers:
"""


def planned_one(catalog: Catalog, demand: str, growth: str, *supply: str) -> Plan:
    text = ONE.replace("DEMAND", demand).replace("GROWTH", growth) + "\n".join(supply) + "\n"
    return make_plan(prepare(load_spec(text, "one.yaml"), catalog), Options())


def test_a_budget_holds_where_nothing_runs_at_some_hours(catalog: Catalog) -> None:
    """Hours without demand are part of the month: the budget is not smaller for them."""
    offer = "    - {name: h, provider: aws, region: us-east-1, instances: [g6.xlarge], price: 1.00 USD/gpu/h}"
    hours = f"hourly: {[0.8] * 12 + [0] * 12}"
    found = planned_one(catalog, hours, "rate: 0 %/month, horizon: 2 months", offer, "  budget: 700 USD/month")
    assert found.status == "solved"
    assert found.objective is not None
    assert found.objective.usd_per_month == pytest.approx(365.0)


def test_one_more_offer_never_costs_more(catalog: Catalog) -> None:
    """A term that ends with its offer is no twin of one that runs on, however cheap that is."""
    on = "    - {name: a, provider: aws, region: us-east-1, instances: [g6.xlarge], terms: [1y], price: 1.00 USD/gpu/h}"
    ends = on.replace("name: a", "name: b").replace("1.00 USD/gpu/h", "1.05 USD/gpu/h, until: 2026-08-15")
    big = "    - {name: big, provider: aws, region: us-east-1, instances: [g6e.xlarge], price: 1.2 USD/gpu/h}"
    growth = "rate: 60 %/month, horizon: 4 months"
    plans = [planned_one(catalog, "rate: 0.9 req/s", growth, *own) for own in ((ends, big), (on, ends, big))]
    costs = [p.growth.usd for p in plans if p.growth is not None]
    assert costs[1] <= costs[0] * 1.005
