"""The parts of a report that goldens of solved plans do not reach."""

from __future__ import annotations

from typing import Any

import pytest
from stored import infeasible_origin, stored

from planner.plan.schema import (
    ApiComparison,
    Period,
    Plan,
    PlanAssumption,
    PolicyResult,
    PolicyWaiver,
    Pool,
    Preferred,
    PreferredChange,
)
from planner.report import explain, table
from planner.report.sections.notes import assumptions
from planner.report.sections.pools import layout


def changed(**objective: Any) -> Plan:
    """Return the production plan with another objective."""
    plan = stored("prod")
    assert plan.objective is not None
    return plan.model_copy(update={"objective": plan.objective.model_copy(update=objective)})


def test_an_unproven_plan_says_so_first() -> None:
    plan = changed(gap=0.0321).model_copy(update={"status": "unproven"})

    assert table.render(plan).splitlines()[0].endswith("; NOT PROVEN, at most 3.3 % from the best")


@pytest.mark.parametrize(
    ("objective", "line"),
    [
        ("gpus", "  Minimised is gpus: 48 GPUs, lower bound 47 GPUs."),
        ("power", "  Minimised is power: 48 W, lower bound 47 W."),
        ("cost", "  Minimised is cost with preferences: 48 USD/h, lower bound 47 USD/h."),
    ],
)
def test_other_objectives_show_their_bound(objective: str, line: str) -> None:
    plan = changed(minimised=objective, value=48.0, bound=47.0, bound_usd_per_hour=None)

    assert line in table.render(plan).splitlines()


def test_idle_commitments_are_told() -> None:
    text = table.render(changed(committed_usd_per_month=1000.0, idle_committed_usd_per_month=250.0))

    assert "  Paid whether used or not: $1,000 per month, $250 of it for idle nodes.\n" in text
    assert "Paid whether used or not: " not in table.render(changed(committed_usd_per_month=0.0))


def test_policies_by_outcome() -> None:
    results = [
        PolicyResult(id="cap", rule="max_monthly_cost", outcome="deny", limit=100.0, actual=120.5, path="policies[0]"),
        PolicyResult(id="t4", rule="forbid", outcome="waived", limit="gpus T4", actual="T4", path="policies[1]"),
        PolicyResult(
            id="up", rule="max_monthly_cost_increase", outcome="warn", limit=0.15, actual=0.2, path="policies[2]"
        ),
    ]
    text = table.render(stored("prod").model_copy(update={"policies": tuple(results)}))
    rows = [line.split() for line in text.partition("\nPolicies\n")[2].splitlines()[1:4]]

    assert rows == [
        ["cap", "max_monthly_cost", "DENY", "$100", "$120", "policies[0]"],
        ["t4", "forbid", "waived", "gpus", "T4", "T4", "policies[1]"],
        ["up", "max_monthly_cost_increase", "warn", "15", "%", "20", "%", "policies[2]"],
    ]


def test_policies_say_what_they_count_who_waived_them_and_where_they_stand() -> None:
    until = {"by": "ops\x1b[2J", "until": "2027-01-31"}
    results = [
        PolicyResult(
            id="margin", rule="min_latency_margin", outcome="waived", limit=0.05, actual=0.0496, path="policies[0]",
            at="chat ttft_p95", file="org.yaml", waiver=PolicyWaiver(reason="launch", expired=False, **until),
        ),
        PolicyResult(
            id="age", rule="max_price_age", outcome="deny", limit=30.0, actual=31.0, path="policies[1]", at="aws/x",
            waiver=PolicyWaiver(reason="a | b", expired=True, **until),
        ),
        PolicyResult(id="mtok", rule="max_cost_per_million_tokens", outcome="ok", limit=0.8, actual=0.05, path="p"),
        PolicyResult(id="new", rule="of_a_later_release", outcome="ok", limit=0.8, actual="x", path="p"),
        PolicyResult(id="all", rule="forbid", outcome="deny", limit="gpus: T4", actual=", ".join("abcdefgh"), path="p"),
    ]  # fmt: skip
    text = table.render(stored("prod").model_copy(update={"policies": tuple(results)}))
    lines = [" ".join(line.split()) for line in text.partition("\nPolicies\n")[2].splitlines()[1:8]]

    assert lines == [
        "margin min_latency_margin waived 5 % 4.96 %: chat ttft_p95 org.yaml policies[0]",
        "age max_price_age DENY 30 days 31 days: aws/x policies[1]",
        "mtok max_cost_per_million_tokens ok $0.80/Mtok $0.05/Mtok p",
        "new of_a_later_release ok 0.8 x p",
        "all forbid DENY gpus: T4 a, b, c, d, e, f and 2 more p",
        "margin: waived until 2027-01-31, that day included, by ops\ufffd[2J: launch",
        "age: the waiver until 2027-01-31 has expired. By ops\ufffd[2J: a | b",
    ]


def of_two_periods() -> Plan:
    """Return the production plan as if its first pool ran at night only and the others by day."""
    plan = stored("prod")
    day, night = (Period(name=name, hours_per_month=365.0) for name in ("peak", "p2"))

    def pool(own: Pool, at: str) -> Pool:
        return own.model_copy(
            update={
                "replicas_by_period": {p.name: own.replicas if p.name == at else 0 for p in (day, night)},
                "workloads": own.workloads if at == "peak" else {},
                "workloads_by_period": {p.name: own.workloads if p.name == at else {} for p in (day, night)},
            }
        )

    first, *others = plan.pools
    nodes = tuple(n.model_copy(update={"nodes_by_period": {"peak": n.nodes, "p2": n.nodes}}) for n in plan.nodes)
    demand = {w.name: w.demand_requests_per_s for w in plan.workloads}
    return plan.model_copy(
        update={
            "periods": (day, night),
            "demand_by_period": {"peak": demand, "p2": demand},
            "pools": (pool(first, "p2"), *(pool(p, "peak") for p in others)),
            "nodes": nodes,
        }
    )


def section(text: str, title: str) -> list[str]:
    """Return the lines of a part of a report below its title."""
    return text.partition(f"\n{title}\n")[2].partition("\n\n")[0].splitlines()


def test_figures_of_pools_are_those_of_a_period_that_is_named() -> None:
    plan = of_two_periods()
    text = table.render(plan)
    head, first, *others = section(text, "Pools")
    assert head.split()[:3] == ["Pool", "Period", "Model"]
    assert first.split()[:2] == ["chat-1", "p2"]
    assert {line.split()[1] for line in others[: len(plan.pools) - 1]} == {"peak"}
    assert "at peak with headroom" not in text
    assert "neither replicas nor GPUs add up" in " ".join(text.split())
    assert plan.pools[0].workloads_by_period is not None
    first, *others = section(text, "Predicted in the period of each pool")[1:]
    assert first.split()[:3] == ["chat-1", "p2", min(plan.pools[0].workloads_by_period["p2"])]
    assert "Predicted at peak" not in text
    assert "none" not in first
    assert any("chat-1 in p2" in line for line in section(text, "What limits the pools"))
    assert "  Nodes: the most in any period. $/h: the mean over all hours." in section(text, "Nodes to buy")


def test_a_plan_of_an_older_release_shows_all_traffic_of_a_pool_as_one() -> None:
    plan = of_two_periods()
    older = plan.model_copy(
        update={"pools": tuple(p.model_copy(update={"workloads_by_period": None}) for p in plan.pools)}
    )
    first = section(table.render(older), "Predicted in the period of each pool")[1].split()

    assert first[:3] == ["chat-1", "p2", "all"]


def test_what_is_scarce_names_the_period_too() -> None:
    plan = of_two_periods()
    text = table.print_blocks([*explain.scarcity(plan), *explain.growth(plan)], width=120)
    rows = [line.split()[:2] for line in section("\n" + text, "What is scarce") if "TFLOP/s" in line]

    assert rows == [["chat-1", "p2"], *([p.name, "peak"] for p in plan.pools[1:])]
    assert "at the planned peak" not in text
    assert "Growth is that of all hours alike" in text
    assert {p["name"]: p["period"] for p in explain.as_data(plan)["pools"]}["chat-1"] == "p2"
    assert all("period" not in p for p in explain.as_data(stored("prod"))["pools"])


def test_layouts() -> None:
    pool = stored("prod").pools[0]
    degrees = {"tensor_parallel": 8, "pipeline_parallel": 2, "expert_parallel": 8, "attention_data_parallel": 1}

    assert layout(pool.model_copy(update=degrees)) == "TP8 PP2 EP8"
    assert layout(pool.model_copy(update=dict.fromkeys(degrees, 1))) == "TP1"


def test_assumptions_are_grouped_by_kind() -> None:
    """Names with dots are told from the keys behind them."""
    plan = stored("prod")
    workloads = tuple(w.model_copy(update={"name": n}) for w, n in zip(plan.workloads, "ab", strict=False))
    workloads += (plan.workloads[0].model_copy(update={"name": "a.b"}),)
    found = [
        PlanAssumption(key="workloads.a.traffic.arrival_cv2", value="1", source="default"),
        PlanAssumption(key="workloads.a.b.traffic.arrival_cv2", value="1", source="default"),
        PlanAssumption(key="workloads.b.traffic.truncated", value="1 %", source="spec"),
        PlanAssumption(key="workloads.a.traffic.truncated", value="2 %", source="spec"),
        PlanAssumption(key="workloads.a.b.traffic.truncated", value="3 %", source="spec"),
        PlanAssumption(key="planning.confidence", value="80 %", source="calibration"),
    ]
    block = assumptions(plan.model_copy(update={"workloads": workloads, "assumptions": tuple(found)}))

    assert block is not None
    assert block.lines == (  # type: ignore[union-attr]
        "traffic.arrival_cv2: 1 (a, a.b).",
        "traffic.truncated: 1 % (b); 2 % (a); and 1 more.",
        "planning.confidence: 80 %.",
        "As of 2026-07-30. Each with its source: --format json.",
    )


def test_keys_without_a_place_are_listed() -> None:
    """A saved plan is shown without its spec: the keys stand below the reasons."""
    plan = stored("infeasible")
    alone, beside = table.render(plan), table.render(plan, infeasible_origin())

    assert "\nKeys in the way\n  supply.budget: 1000 USD/month\n" in alone
    assert "Keys in the way" not in beside
    assert "  --> specs/infeasible.yaml:14:11\n" in beside


@pytest.mark.parametrize(("total", "line"), [(1, "Ruled out: 1 shape"), (2, "Ruled out: 2 shapes")])
def test_shapes_that_are_ruled_out_are_counted(total: int, line: str) -> None:
    plan = stored("prod")
    rejections = plan.rejections.model_copy(update={"total": total, "by_rule": {"hbm-fit": total}})
    assert line in table.render(plan.model_copy(update={"rejections": rejections})).splitlines()


def test_what_became_of_the_preferred_fleet() -> None:
    """Names and reasons are a user's text: none of it moves the cursor."""
    change = PreferredChange.model_validate({"kind": "nodes", "name": "cloud\x1b[2J", "from": 3, "to": 1200})
    found = Preferred(
        plan="sha256:" + "ab" * 32,
        outcome="changed",
        stay_within=0.02,
        best_usd_per_hour=9.0,
        would_save_usd_per_hour=0.15,
        would_save=0.016,
        reasons=("offer \x1b[2J is not in the supply any more",),
        changes=(change,),
    )
    text = table.render(stored("prod").model_copy(update={"preferred": found}))
    _, _, section = text.partition("Preferred fleet: changed as little as possible (sha256:abababababab)\n")

    assert section.splitlines()[1].split() == ["nodes", "cloud�[2J", "3", "1,200"]
    assert section.splitlines()[2:4] == [
        "  offer �[2J is not in the supply any more.",
        "  The best fleet would save $0.15 per hour (2 % of its own cost); up to 2 % more is allowed.",
    ]


def test_workloads_against_an_api() -> None:
    """Above capacity, at peak for want of a mean, and beside what is committed: all is said."""
    api = ApiComparison(
        name="big\x1b|one", cached_input_share=0.4, usd_per_request=1e-3, requests_per_s=10.0, usd_per_month=26280.0,
        self_hosted_usd_per_month=52560.0, cheaper="api", break_even_requests_per_s=20.0, break_even_utilization=1.34,
    )  # fmt: skip
    plan = stored("prod")
    workloads = tuple(w.model_copy(update={"api": api}) if w.name == "completion" else w for w in plan.workloads)
    text = table.render(plan.model_copy(update={"workloads": workloads})).partition("\nAgainst an API\n")[2]
    row = text.splitlines()[1].split()

    assert row == ["completion", "big�|one", "10", "peak", "26,280", "27,702", "52,560", "the", "API", "20", "134", "%"]
    assert "above 100 % the API is cheaper" in " ".join(text.split())
    assert "At peak: the spec gives no mean rate" in text
    assert "Whatever is committed is paid until it ends" in text
    assert "\nAgainst an API\n" not in table.render(plan)
