"""Small edits of a spec and of the catalog: the comparison names the edit, and what it does to cost and pools."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from edited_specs import CATALOG, PAIR, before, difference, edited, prepared

from planner.catalog import Catalog
from planner.pipeline import Options
from planner.report.diff import blocks, sentence
from planner.report.table import print_blocks
from planner.review.diff import Side, compare, planned_side
from planner.review.difference import Difference
from planner.review.inputs import SpecPair
from planner.spec import load_spec

CHAT = "  chat: {use: llama-3.1-8b, max_model_len: 8k,"
CODE = "  code: {use: qwen3-8b, max_model_len: 8k,"
RACK = "    - {name: rack, provider: owned, gpus: [L4], gpus_per_node: 4, nodes: 2, price: 0.30 USD/gpu/h}\n"
PLANNING = "planning: {gap: 1 %}"
BOTH, NONE = {"chat", "code"}, set[str]()

EDITS = [
    ("rate: 6 req/s", "rate: 12 req/s", "workloads.assistant.traffic.rate", "up", {"chat"}),
    ("rate: 6 req/s", "rate: 2 req/s", "workloads.assistant.traffic.rate", "same", NONE),
    ("rate: 3 req/s", "rate: {peak: 9 req/s, mean: 2 req/s}", "workloads.completion.traffic.rate", "up", {"code"}),
    ("input_tokens: 1000", "input_tokens: 4000", "workloads.assistant.traffic.input_tokens", "up", {"chat"}),
    ("output_tokens: 200", "output_tokens: 800", "workloads.assistant.traffic.output_tokens", "up", {"chat"}),
    (
        "output_tokens: 100}",
        "output_tokens: 100, shared_prefix: {tokens: 600, hit_rate: 90 %}}",
        "workloads.completion.traffic.shared_prefix",
        "same",
        {"code"},
    ),
    (
        "output_tokens: 100}",
        "output_tokens: 100, peak_to_mean_30s: 3}",
        "workloads.completion.traffic.peak_to_mean_30s",
        "up",
        {"code"},
    ),
    (
        "output_tokens: 100}",
        "output_tokens: 100, arrival_cv2: 4}",
        "workloads.completion.traffic.arrival_cv2",
        "same",
        {"code"},
    ),
    ("tpot_p95: 50 ms", "tpot_p95: 20 ms", "workloads.assistant.slo.tpot_p95", "up", {"chat"}),
    ("ttft_p95: 1500 ms", "ttft_p95: 300 ms", "workloads.assistant.slo.ttft_p95", "same", {"chat"}),
    ("2 s, tpot_p95: 60 ms", "2 s, tpot_p95: 25 ms", "workloads.completion.slo.tpot_p95", "up", {"code"}),
    ("tpot_p95: 60 ms}", "tpot_p95: 60 ms, e2e_p95: 3 s}", "workloads.completion.slo.e2e_p95", "up", {"code"}),
    ("[bf16], kv_cache: [bf16]", "[bf16, fp8], kv_cache: [bf16]", "models.code.weights", "same", NONE),
    ("weights: [fp8], kv_cache: [fp8]", "weights: [bf16], kv_cache: [fp8]", "models.chat.weights", "up", {"chat"}),
    ("use: qwen3-8b", "use: qwen3-14b", "models.code.use", "up", {"code"}),
    (CODE, f"{CODE} reliability: {{spare_replicas: 1}},", "models.code.reliability", "up", {"code"}),
    (CODE, f"{CODE} deny: {{gpus: [L4]}},", "models.code.deny", "up", {"code"}),
    (CHAT, f"{CHAT} parallelism: {{tensor: [4]}},", "models.chat.parallelism", "up", {"chat"}),
    (CHAT, f"{CHAT} engine: {{max_num_seqs: 8}},", "models.chat.engine", "up", {"chat"}),
    (PLANNING, f"{PLANNING}\nreliability: {{headroom: 60 %}}", "reliability", "up", BOTH),
    (PLANNING, "planning: {gap: 1 %, confidence: 95 %}", "planning.confidence", "up", BOTH),
    (PLANNING, "planning: {gap: 1 %, hours_per_month: 744}", "planning.hours_per_month", "up", BOTH),
    ("nodes: 2, price", "nodes: 1, price", "supply.offers.rack.nodes", "up", {"code"}),
    ("price: 0.30 USD/gpu/h", "price: 0.45 USD/gpu/h", "supply.offers.rack.price", "up", {"code"}),
    ("[on-demand]}", "[on-demand], discount: 20 %}", "supply.offers.cloud.discount", "down", {"chat"}),
    ("[on-demand]}", "[on-demand, 1y]}", "supply.offers.cloud.terms", "same", NONE),
    ("[L40S], terms", "[L40S, H100-SXM-80GB], terms", "supply.offers.cloud.gpus", "same", NONE),
    (RACK, "", "supply.offers.rack", "down", {"code"}),
    ("{gpus: {L40S: 24}}", "{gpus: {L40S: 0}}", "supply.limits.gpus.L40S", "none", BOTH),
    ("budget: 60000 USD/month", "budget: 2000 USD/month", "supply.budget", "none", BOTH),
]


def direction(found: Difference) -> str:
    """Return what happens to the cost."""
    delta = found.usd_per_month_delta
    if delta is None:
        return "none"
    return "same" if abs(delta) < 0.005 else "up" if delta > 0.0 else "down"


@pytest.mark.parametrize(
    ("old", "new", "key", "way", "models"), EDITS, ids=[f"{e[2]}-{i}" for i, e in enumerate(EDITS)]
)
def test_the_edit_is_named_as_the_cause(old: str, new: str, key: str, way: str, models: set[str]) -> None:
    """With its line, as the cause of every pool that changes; pools of other models change indirectly."""
    found = difference(edited((old, new)))

    assert [cause.key for cause in found.causes] == [key]
    assert direction(found) == way
    changed = [pool for pool in found.pools if pool.kind != "unchanged"]
    assert {pool.model for pool in changed} == models
    assert all(pool.causes == (1,) for pool in changed)
    owner = {"assistant": "chat", "completion": "code"}.get(key.split(".")[1], key.split(".")[1]) if "." in key else ""
    about = {owner} if key.startswith(("workloads.", "models.")) else NONE
    assert {pool.model for pool in changed if pool.is_direct} == models & about
    place = found.causes[0].place
    assert place is not None
    lines = (edited((old, new)) if place.path == "new.yaml" else PAIR).splitlines()
    assert key.split(".")[-1] in lines[place.line - 1]


def test_each_of_several_edits_gets_its_own_part() -> None:
    """Taken one after the other, the parts add up to the whole difference."""
    both = edited(("rate: 6 req/s", "rate: 12 req/s"), ("price: 0.30 USD/gpu/h", "price: 0.45 USD/gpu/h"))

    found = difference(both)

    assert [c.key for c in found.causes] == ["workloads.assistant.traffic.rate", "supply.offers.rack.price"]
    parts = [s.usd_per_month_delta for s in found.steps]
    assert None not in parts
    assert sum(p for p in parts if p is not None) == pytest.approx(found.usd_per_month_delta)
    assert all(p is not None and p > 0.0 for p in parts)
    causes = {p.model: (p.causes, p.is_direct) for p in found.pools}
    assert causes == {"chat": ((1,), True), "code": ((2,), False)}


def test_a_model_and_its_workload_go_together() -> None:
    """A workload of a model that is gone is no spec: both changes are one step."""
    model = "  code: {use: qwen3-8b, max_model_len: 8k, weights: [bf16], kv_cache: [bf16], max_shapes: 1}\n"
    workload = PAIR[PAIR.index("  completion:") : PAIR.index("supply:")]

    found = difference(edited((model, ""), (workload, "")))

    assert [(c.key, c.step) for c in found.causes] == [("models.code", 1), ("workloads.completion", 1)]
    assert [s.outcome for s in found.steps] == ["together"]
    gone = next(p for p in found.pools if p.model == "code")
    assert (gone.kind, gone.causes, gone.is_direct) == ("removed", (1, 2), True)


def test_what_is_only_written_otherwise_is_no_change() -> None:
    found = difference(
        edited(
            ("gap: 1 %", "gap: 0.01"),
            ("ttft_p95: 1500 ms", "ttft_p95: 1.5 s"),
            ("8k, weights: [fp8]", "8000, weights: [fp8]"),
        )
    )

    assert not found.causes
    assert not found.changed


def test_a_price_of_the_catalog_is_named(tmp_path: Path) -> None:
    """A price list that rises changes pools whose spec did not."""
    root = tmp_path / "catalog"
    shutil.copytree(CATALOG.root, root)
    prices = root / "offers" / "aws.yaml"
    text = prices.read_text(encoding="utf-8")
    assert "1.861" in text
    prices.write_text(text.replace("1.861", "2.861"), encoding="utf-8")

    found = difference(PAIR, Catalog.open(root))

    offer = "cloud/us-east-1/g6e.xlarge/on-demand"
    named = [c for c in found.causes if c.kind == "price" and c.key == offer]
    assert [(c.from_, c.to) for c in named] == [("$1.86 per node hour", "$2.86 per node hour")]
    chat = next(p for p in found.pools if p.model == "chat" and p.kind != "unchanged")
    assert not chat.is_direct
    assert named[0].number in chat.causes


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("gpus/L40S.yaml", "bandwidth_tb_s: 0.864", "bandwidth_tb_s: 0.3"),
        ("models/meta-llama/Llama-3.1-8B-Instruct.yaml", "  layers: 32", "  layers: 64"),
    ],
)
def test_an_entry_of_the_catalog_is_named(file: str, old: str, new: str, tmp_path: Path) -> None:
    """What the fleet is built of, not only what it costs."""
    root = tmp_path / "catalog"
    shutil.copytree(CATALOG.root, root)
    text = (root / file).read_text(encoding="utf-8")
    assert text.count(old) == 1
    (root / file).write_text(text.replace(old, new), encoding="utf-8")

    found = difference(PAIR, Catalog.open(root))

    assert [(c.kind, c.key) for c in found.causes] == [("catalog", file)]
    assert found.changed


def test_noise_does_not_change_the_fleet() -> None:
    """A fleet that is a little cheaper is not worth a change: the old one is kept, and the saving is told."""
    other = "    - {name: other, provider: aws, region: us-east-1, gpus: [L40S], discount: 2 %}\n"

    kept = difference(edited(("  limits:", f"{other}  limits:")), options=Options(stay_within=0.05))

    assert kept.preferred is not None
    assert kept.preferred.outcome == "kept"
    assert not kept.changed
    assert any("best one would save" in line for line in print_blocks(blocks(kept)).splitlines())


def test_plans_alone_are_compared_by_what_they_say() -> None:
    """Without specs nothing is taken by itself; demand, limits and prices are told from the plans."""
    after = planned_side("new.yaml", prepared(edited(("rate: 6 req/s", "rate: 12 req/s"))), Options(), before())

    found = compare(Side("a.json", before().plan), Side("b.json", after.plan), Options())

    assert [(c.key, c.from_, c.to) for c in found.causes] == [("workloads.assistant.traffic", "6 req/s", "12 req/s")]
    assert not found.steps
    assert next(p for p in found.pools if p.model == "chat").causes == (1,)


def test_a_change_cannot_loosen_the_policy_that_it_breaks() -> None:
    """The cap of before still judges, as a waiver added by the change does not count yet; the edit is reported."""
    raised = edited(("rate: 6 req/s", "rate: 200 req/s"), ("20000 USD", "90000 USD"), ("{L40S: 24}", "{L40S: 99}"))

    found = difference(raised)

    outcomes = {(p.file, p.limit): p.outcome for p in found.policies}
    assert outcomes == {(None, 90000.0): "ok", ("old.yaml", 20000.0): "deny"}
    assert [(e.id, e.kind, e.loosens) for e in found.policy_edits] == [("cap", "changed", True)]


def test_the_report_starts_with_the_difference_in_cost() -> None:
    found = difference(edited(("rate: 6 req/s", "rate: 12 req/s")))

    text = print_blocks(blocks(found))

    assert sentence(found) == "pair: monthly cost up $1,359 (+43.7 %): $3,111 -> $4,469"
    assert text.splitlines()[0].strip() == sentence(found)
    assert "workloads.assistant.traffic.rate  6 req/s  12 req/s  new.yaml:9" in text


def test_changes_that_only_work_together_are_all_kept() -> None:
    """A default that both models override does nothing alone, nor do the overrides that go; the budget has no part in it."""
    start = edited(
        ("models:\n", "defaults: {engine: {max_num_seqs: 64}}\nmodels:\n"),
        (CHAT, f"{CHAT} engine: {{max_num_seqs: 64}},"),
        (CODE, f"{CODE} engine: {{max_num_seqs: 64}},"),
    )
    end = start.replace("defaults: {engine: {max_num_seqs: 64}}", "defaults: {engine: {max_num_seqs: 4}}")
    end = end.replace(" engine: {max_num_seqs: 64},", "").replace("60000 USD", "60001 USD")
    old = planned_side("old.yaml", prepared(start, "old.yaml"), Options())
    new = planned_side("new.yaml", prepared(end), Options(), old)

    found = compare(old, new, Options())

    assert [c.key for c in found.causes] == [
        "defaults.engine.max_num_seqs",
        "models.chat.engine",
        "models.code.engine",
        "supply.budget",
    ]
    assert found.steps[-1].usd_per_month_delta == pytest.approx(0.0)
    assert all(c in (1, 2, 3) for p in found.pools for c in p.causes)


def test_a_rate_and_the_budget_that_it_needs_go_together() -> None:
    """Neither step alone has a fleet to speak of: the rate is a cause, directly, and the budget with it."""
    start = edited(("budget: 60000", "budget: 3500"))
    end = start.replace("rate: 6 req/s", "rate: 12 req/s").replace("budget: 3500", "budget: 6000")
    old = planned_side("old.yaml", prepared(start, "old.yaml"), Options())
    new = planned_side("new.yaml", prepared(end), Options(), old)

    found = compare(old, new, Options())

    assert [(c.key, c.step) for c in found.causes] == [
        ("workloads.assistant.traffic.rate", 1),
        ("supply.budget", 1),
    ]
    chat = next(p for p in found.pools if p.model == "chat")
    assert (chat.causes, chat.is_direct) == ((1, 2), True)


def test_a_list_item_that_goes_leaves_the_others_alone() -> None:
    """Rules by what they are, unnamed offers by what they are: no rule that nobody wrote is planned in between."""
    rules = "  limits: {gpus: {L40S: 24}, rules: [{match: {provider: aws}, gpus: 20}, {match: {terms: [on-demand]}, gpus: 22}]}\n"
    start = edited(("  limits: {gpus: {L40S: 24}}\n", rules))
    end = start.replace("{match: {provider: aws}, gpus: 20}, ", "")
    pair = SpecPair(load_spec(start, "old.yaml"), load_spec(end, "new.yaml"))

    assert [(c.key, c.new) for c in pair.changes] == [("supply.limits.rules.0", None)]


def test_an_offer_with_another_name_is_the_same_offer() -> None:
    found = difference(edited(("name: cloud", "name: clouds")))

    assert not found.changed
    assert all(n.kind == "unchanged" for n in found.nodes)


def test_names_with_dots_are_told_apart() -> None:
    """A change of `assistant.eu` is no change of `assistant`."""
    eu = PAIR[PAIR.index("  assistant:") : PAIR.index("  completion:")].replace("assistant", "assistant.eu")
    start = edited(("supply:\n", f"{eu}supply:\n"))
    end = start.replace(
        "assistant.eu:\n    model: chat\n    traffic: {rate: 6", "assistant.eu:\n    model: chat\n    traffic: {rate: 9"
    )
    old = planned_side("old.yaml", prepared(start, "old.yaml"), Options())
    new = planned_side("new.yaml", prepared(end), Options(), old)

    found = compare(old, new, Options())

    assert {w.name: w.causes for w in found.workloads} == {"assistant": (), "assistant.eu": (1,), "completion": ()}


def test_plans_alone_are_judged_by_what_they_say_too() -> None:
    """A cap that the new plan's spec raised is still told of, as not evaluated, where the specs are not at hand."""
    new = planned_side("new.yaml", prepared(edited(("20000 USD", "90000 USD"))), Options(), before())

    found = compare(Side("a.json", before().plan), Side("b.json", new.plan), Options())

    assert [(p.file, p.limit, p.outcome) for p in found.policies] == [
        (None, 90000.0, "ok"),
        ("a.json", 20000.0, "not_evaluated"),
    ]


def test_a_change_cannot_turn_the_clock_back() -> None:
    """A waiver that has expired stays so, whatever day the change plans for."""
    waived = "waive: {reason: trial, by: ops, until: 2026-07-01}, id: cap}"
    start = edited(("  - {max_monthly_cost: 20000 USD, id: cap}", f"  - {{max_monthly_cost: 2000 USD, {waived}"))
    end = start.replace("planning: {gap: 1 %}", "planning: {gap: 1 %, as_of: 2026-06-30}")
    old = planned_side("old.yaml", prepared(start, "old.yaml"), Options())
    new = planned_side("new.yaml", prepared(end), Options(), old)

    assert [p.outcome for p in new.plan.policies] == ["waived"]
    assert [p.outcome for p in compare(old, new, Options()).policies] == ["deny"]


def test_no_fleet_on_either_side() -> None:
    """It is said of both, nothing is called removed, and the ways out are those of solve."""
    start = edited(("budget: 60000", "budget: 2000"))
    old = planned_side("old.yaml", prepared(start, "old.yaml"), Options())
    new = planned_side("new.yaml", prepared(start), Options(), old)

    found = compare(old, new, Options())

    assert not found.changed
    assert sentence(found) == "pair: no fleet meets either spec"
    assert found.infeasible is not None
    assert "supply.budget" in [r.key for r in found.infeasible.relaxations]
    assert "What would make it feasible" in print_blocks(blocks(found))
