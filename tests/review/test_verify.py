"""A fleet that runs is held against the spec of today: what it breaks, by how much, and what mends it."""

from __future__ import annotations

from functools import cache

import pytest
from edited_specs import PAIR, before, edited, prepared

from planner.pipeline import Options
from planner.plan.schema import Plan
from planner.prefer.earlier import PreferredPlan
from planner.report.table import print_blocks
from planner.report.verify import blocks
from planner.review.verification import Verification
from planner.review.verify import Subject, verify

HOURLY = "{hourly: [1, 1, 1, 1, 1, 1, 1, 1, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 1, 1, 1, 1, 1, 1], "


def verified(text: str, plan: Plan | None = None, *, repairs: bool = False) -> Verification:
    """Hold the fleet of before, or of a plan, against a spec."""
    plan = plan or before().plan
    options = Options(prefer=PreferredPlan(plan, "plan.json"))
    return verify(prepared(text), Subject(plan, "plan.json"), options, repairs=repairs)


def test_an_unchanged_spec_is_satisfied() -> None:
    """With the very predictions of the plan, and nothing stale."""
    found = verified(PAIR)

    assert found.holds
    assert (found.broken, found.stale, found.rerouted, found.repair) == ((), (), (), None)
    assert found.usd_per_month == pytest.approx(before().plan.objective.usd_per_month)  # type: ignore[union-attr]
    for workload in found.workloads:
        assert workload.demand_requests_per_s == workload.planned_requests_per_s
        for limit in workload.slo:
            assert limit.predicted_s == pytest.approx(limit.planned_s, rel=1e-9)


def test_a_change_that_leaves_room_is_stale_and_holds() -> None:
    found = verified(edited(("rate: 6 req/s", "rate: 5 req/s")))

    assert found.holds
    assert [s.what for s in found.stale] == ["spec"]
    assistant = next(w for w in found.workloads if w.name == "assistant")
    assert (assistant.planned_requests_per_s, assistant.demand_requests_per_s) == (6.0, 5.0)
    assert all(limit.margin is not None and limit.margin > (limit.planned_margin or 0.0) for limit in assistant.slo)


@pytest.mark.parametrize(
    ("old", "new", "check", "subject", "key"),
    [
        ("rate: 6 req/s", "rate: 12 req/s", "demand", "chat", "models.chat"),
        ("tpot_p95: 50 ms", "tpot_p95: 20 ms", "latency", "assistant", "workloads.assistant.slo.tpot_p95"),
        ("budget: 60000", "budget: 3000", "limit", "supply.budget", "supply.budget"),
        ("nodes: 2, price", "nodes: 1, price", "limit", "supply.offers.rack.nodes", "supply.offers.rack.nodes"),
        ("gpus: [L40S], terms", "gpus: [H100-SXM-80GB], terms", "supply", "chat", "supply.offers"),
        ("[bf16], kv_cache: [bf16]", "[fp8], kv_cache: [bf16]", "supply", "code", "models.code"),
        ("use: qwen3-8b,", "use: qwen3-8b, reliability: {spare_replicas: 1},", "loss", "code", "models.code.reliability"),
    ],
)  # fmt: skip
def test_what_breaks_is_named_with_its_line(old: str, new: str, check: str, subject: str, key: str) -> None:
    found = verified(edited((old, new)))

    assert not found.holds
    about = [b for b in found.broken if b.check == check and b.subject == subject]
    assert about, found.broken
    assert about[0].key == key
    assert about[0].place is not None
    assert about[0].place.path == "new.yaml"


def test_a_limit_that_is_missed_says_by_how_much() -> None:
    found = verified(edited(("tpot_p95: 50 ms", "tpot_p95: 20 ms")))

    missed = next(b for b in found.broken if b.check == "latency")
    limit = next(c for w in found.workloads if w.name == "assistant" for c in w.slo if c.metric == "tpot_p95")
    assert missed.metric == "tpot_p95"
    assert missed.limit == 0.020
    assert missed.actual == limit.predicted_s
    assert limit.margin == pytest.approx(1.0 - (missed.actual or 0.0) / 0.020)
    assert limit.margin < 0.0
    assert limit.planned_margin is not None
    assert limit.planned_margin > 0.0
    assert "tpot_p95 of assistant would be" in print_blocks(blocks(found))


def test_the_repair_says_what_it_costs() -> None:
    """The fewest changes from what runs; here one more node for one more replica."""
    found = verified(edited(("rate: 6 req/s", "rate: 12 req/s")), repairs=True)

    assert found.repair is not None
    assert found.repair.usd_per_month_delta == pytest.approx(1.8612 * 730.0, rel=1e-3)
    assert [(c.kind, c.from_, c.to) for c in found.repair.changes] == [("replicas", 1, 2), ("nodes", 1, 2)]


def test_a_spec_that_nothing_meets_has_no_repair() -> None:
    found = verified(edited(("budget: 60000", "budget: 2000")), repairs=True)

    assert found.repair is not None
    assert found.repair.status == "infeasible"
    assert found.repair.usd_per_month is None


@cache
def hourly() -> tuple[str, Plan]:
    """Return a spec with hourly demand and its plan of two periods."""
    from planner.pipeline import make_plan

    text = edited(("{rate: 6 req/s, ", HOURLY))
    return text, make_plan(prepared(text), Options())


def test_each_period_is_held_by_itself() -> None:
    text, plan = hourly()
    assert len(plan.periods) == 2

    same, more = verified(text, plan), verified(text.replace("6, 6, 6, 6, 6", "6, 6, 6, 14, 6"), plan)

    assert same.holds
    assert not same.stale
    assert same.usd_per_month == pytest.approx(plan.objective.usd_per_month)  # type: ignore[union-attr]
    assert not more.holds
    assert {b.period for b in more.broken} == {"peak"}


def test_what_is_deployed_is_verified_without_a_plan() -> None:
    """Without routing and batch caps of a plan: whatever carries the demand may do."""
    entry = "deployed:\n  - {model: chat, gpu: L40S, tensor_parallel: 1, weights: fp8, kv_cache: fp8, replicas: COUNT, offer: cloud}\n"
    entry += "  - {model: code, gpu: L4, tensor_parallel: 4, weights: bf16, kv_cache: bf16, replicas: 2, offer: rack}\n"
    enough, few = (PAIR.replace("6 req/s", "12 req/s") + entry.replace("COUNT", count) for count in ("2", "1"))

    held, short = (verify(prepared(text), Subject(None), Options(), repairs=False) for text in (enough, few))

    assert held.holds
    assert held.subject == "deployed"
    assert held.planned_usd_per_month is None
    assert not short.holds
    assert [b.check for b in short.broken] == ["demand"]


def test_a_workload_that_no_pool_serves_is_broken() -> None:
    """A model that is new, or has another name, is served by nothing that runs."""
    new = edited(
        (
            "workloads:\n",
            "  more: {use: llama-3.1-8b, max_model_len: 8k, weights: [fp8], kv_cache: [fp8]}\nworkloads:\n",
        ),
        (
            "supply:\n",
            "  extra: {model: more, traffic: {rate: 1 req/s, input_tokens: 100, output_tokens: 20}}\nsupply:\n",
        ),
    )

    found = verified(new)

    assert [(b.check, b.subject, b.actual) for b in found.broken] == [("demand", "extra", 0.0)]
    assert found.usd_per_month == pytest.approx(before().plan.objective.usd_per_month)  # type: ignore[union-attr]


def test_nodes_of_models_that_are_gone_are_still_paid_for() -> None:
    """In the budget and in policies: what runs costs what it costs."""
    workload = PAIR[PAIR.index("  assistant:") : PAIR.index("  completion:")]
    model = "  chat: {use: llama-3.1-8b, max_model_len: 8k, weights: [fp8], kv_cache: [fp8]}\n"
    cost = before().plan.objective.usd_per_month  # type: ignore[union-attr]

    held = verified(edited((workload, ""), (model, ""), ("20000 USD", "2000 USD")))
    over = verified(edited((workload, ""), (model, ""), ("budget: 60000", "budget: 2000")))

    assert held.holds
    assert held.usd_per_month == pytest.approx(cost)
    assert [(p.outcome, p.actual) for p in held.policies] == [("deny", pytest.approx(cost))]
    assert [b.key for b in over.broken] == ["supply.budget"]


@pytest.mark.parametrize(
    ("old", "new", "key"),
    [
        ("use: llama-3.1-8b", "use: mistral-7b-instruct-v0.3", "models.chat.use"),
        ("use: llama-3.1-8b,", "use: llama-3.1-8b, engine: {gpu_memory_utilization: 0.5},", "models.chat.engine.gpu_memory_utilization"),
        ("use: llama-3.1-8b,", "use: llama-3.1-8b, engine: {max_num_batched_tokens: 2048},", "models.chat.engine.max_num_batched_tokens"),
        ("use: llama-3.1-8b,", "use: llama-3.1-8b, engine: {name: sglang},", "models.chat.engine.name"),
        ("use: llama-3.1-8b, max_model_len: 8k", "use: llama-3.1-8b, max_model_len: 16k", "models.chat.max_model_len"),
    ],
)  # fmt: skip
def test_pools_that_run_with_other_settings_are_not_those_of_the_spec(old: str, new: str, key: str) -> None:
    found = verified(edited((old, new)))

    assert not found.holds
    assert key in [b.key for b in found.broken if b.check == "settings"]


def test_too_few_replicas_are_named() -> None:
    found = verified(edited(("use: llama-3.1-8b,", "use: llama-3.1-8b, reliability: {min_replicas: 3},")))

    assert [(b.key, b.actual, b.limit) for b in found.broken] == [("models.chat.reliability.min_replicas", 1.0, 3.0)]


def test_nodes_that_are_paid_for_anyway_are_part_of_the_fleet() -> None:
    """More owned nodes than run hold nothing and break nothing; they cost what they cost."""
    found = verified(edited(("nodes: 2, price", "nodes: 3, price")))

    assert found.holds
    assert found.usd_per_month == pytest.approx(before().plan.objective.usd_per_month + 4 * 0.30 * 730.0)  # type: ignore[union-attr]


def test_pools_of_one_shape_keep_their_own_caps() -> None:
    """What a pool misses with its own cap is not hidden by another of the same shape."""
    plan = before().plan
    pools = [p.model_copy(update={"max_num_seqs": 2}) if p.model == "chat" else p for p in plan.pools]
    capped = plan.model_copy(update={"pools": tuple(pools)})

    found = verified(PAIR, capped)

    assert not found.holds
    assert all(b.subject in ("chat", "assistant") for b in found.broken)
