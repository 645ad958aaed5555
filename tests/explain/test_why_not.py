"""Why a shape is not in a plan: every shape of the production spec that was ruled out has its rule with numbers."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from planner.candidates.references import open_catalog
from planner.candidates.types import CandidateTable
from planner.explain.answer import Answer
from planner.explain.named import NothingNamed, all_shapes, named
from planner.explain.trials import Trials
from planner.explain.why_not import answers_about, ruled_out
from planner.pipeline import Options, make_plan, prepare, variants
from planner.plan.io import load
from planner.plan.pools import pool_shape
from planner.plan.schema import Plan
from planner.spec import FleetSpec, load_spec

ROOT = Path(__file__).parents[2]
NUMBER = re.compile(r"\d")
TWO_MODELS = """\
version: 1
fleet: two
models:
  chat: {use: llama-3.1-8b, max_model_len: 8k, max_shapes: 1}
  code: {use: qwen3-32b, max_model_len: 8k, weights: [fp8], kv_cache: [bf16]}
workloads:
  assistant:
    model: chat
    traffic: {rate: 20 req/s, input_tokens: 1000, output_tokens: 200}
    slo: {ttft_p95: 1 s, tpot_p95: 50 ms}
  complete:
    model: code
    traffic: {rate: 2 req/s, input_tokens: 1500, output_tokens: 100}
    slo: {ttft_p95: 2 s, tpot_p95: 100 ms}
supply:
  offers: [{name: cloud, provider: aws, region: us-east-1, gpus: [L40S, A10G]}]
"""


def opened(text: str, path: str) -> tuple[FleetSpec, Trials, CandidateTable, Callable[[], Plan]]:
    loaded = load_spec(text, path)
    prepared = prepare(loaded, open_catalog(loaded, ROOT / "catalog"))
    stored = load(ROOT / "tests" / "data" / "plans" / "prod.json")
    spec, trials = variants(prepared, stored)
    return spec, trials, trials.table(spec), lambda: make_plan(prepared, Options())


@pytest.fixture(scope="module")
def prod() -> tuple[Plan, FleetSpec, Trials, CandidateTable]:
    path = ROOT / "specs" / "prod.yaml"
    spec, trials, table, _ = opened(path.read_text(encoding="utf-8"), "specs/prod.yaml")
    return load(ROOT / "tests" / "data" / "plans" / "prod.json"), spec, trials, table


@pytest.fixture(scope="module")
def two() -> tuple[Plan, FleetSpec, Trials, CandidateTable]:
    spec, trials, table, plan = opened(TWO_MODELS, "two.yaml")
    return plan(), spec, trials, table


def asked(case: tuple[Plan, FleetSpec, Trials, CandidateTable], name: str, pool: str | None = None) -> list[Answer]:
    plan, spec, trials, table = case
    chosen = next((p for p in plan.pools if p.name == pool), None)
    return answers_about(plan, spec, table, trials, named(name, table, trials.catalog), chosen)


def test_every_rejected_shape_has_its_rule_and_numbers(prod: tuple[Plan, FleetSpec, Trials, CandidateTable]) -> None:
    _, _, trials, table = prod
    lost = [r for r in table.rejections if r.shape]

    assert len(lost) > 200
    for rejection in lost:
        found = ruled_out(table, named(rejection.shape, table, trials.catalog))
        own = [a for a in found if (a.model, a.workload) == (rejection.model, rejection.workload)]
        assert rejection.rule in {a.rule for a in own}
        assert all(NUMBER.search(a.reason) for a in own), own


def test_shapes_that_are_ruled_out_need_no_solve(prod: tuple[Plan, FleetSpec, Trials, CandidateTable]) -> None:
    _, _, trials, table = prod
    allowed = {c.shape.name for c in table.candidates}
    ruled = [name for name in all_shapes(table) if name not in allowed]

    assert len(ruled) > 100
    assert all(asked(prod, name) for name in ruled)
    assert trials.solves == 0


def test_a_shape_that_is_allowed_has_its_price(two: tuple[Plan, FleetSpec, Trials, CandidateTable]) -> None:
    plan, spec, trials, table = two
    used = {pool_shape(p) for p in plan.pools if p.model == "chat"}
    other = min(c.shape.name for c in table.candidates if c.shape.model == "chat" and c.shape.name not in used)
    (answer,) = [a for a in asked(two, other, "chat") if a.rule == "allowed"]

    assert plan.objective is not None
    assert answer.usd_per_hour is not None
    assert answer.more_usd_per_hour == pytest.approx(answer.usd_per_hour - plan.objective.usd_per_hour)
    assert answer.more_usd_per_hour >= -plan.objective.gap * plan.objective.usd_per_hour
    restricted = spec.model_copy(
        update={"models": {**spec.models, "chat": _only_shape(spec, other)}},
    )
    again = trials.plan(restricted)
    assert again is not None
    assert again.objective is not None
    assert answer.usd_per_hour == pytest.approx(again.objective.usd_per_hour, rel=2 * spec.planning.gap)


def _only_shape(spec: FleetSpec, shape: str) -> object:
    """Return the chat model with the formats, degree and GPU of a shape alone, as a user would restrict it."""
    gpu, tensor, weights, kv_cache = re.fullmatch(r"(.+)-tp(\d+)-(\w+)-kv(\w+)", shape).groups()  # type: ignore[union-attr]
    chat = spec.models["chat"]
    return chat.model_copy(
        update={
            "weights": (weights,),
            "kv_cache": (kv_cache,),
            "parallelism": chat.parallelism.model_copy(update={"tensor": (int(tensor),)}),
            "allow": chat.allow.model_copy(update={"gpus": (gpu,)}),
        }
    )


def test_what_the_plan_uses_is_said_to_be_chosen(two: tuple[Plan, FleetSpec, Trials, CandidateTable]) -> None:
    pool = next(p for p in two[0].pools if p.model == "code")

    assert [a.rule for a in asked(two, pool_shape(pool), pool.name)] == ["chosen"]


def test_a_gpu_alone_stands_for_all_of_its_shapes(two: tuple[Plan, FleetSpec, Trials, CandidateTable]) -> None:
    plan = two[0]
    unused = {"L40S", "A10G"} - {p.gpu for p in plan.pools if p.model == "chat"}
    answers = asked(two, min(unused).lower(), "chat")

    assert len([a for a in answers if a.rule == "allowed"]) == 1
    assert all(a.shape.startswith(min(unused)) for a in answers)


def test_short_names_and_offers(prod: tuple[Plan, FleetSpec, Trials, CandidateTable]) -> None:
    _, _, trials, table = prod
    tp2 = named("h100-sxm-tp2-fp8", table, trials.catalog)

    assert tp2.shapes == {"H100-SXM-80GB-tp2-fp8-kvbf16", "H100-SXM-80GB-tp2-fp8-kvfp8"}
    assert named("h100-sxm-80gb-TP2-fp8-kvfp8", table, trials.catalog).shapes == {"H100-SXM-80GB-tp2-fp8-kvfp8"}
    assert {a.rule for a in ruled_out(table, named("gcp", table, trials.catalog))} == {"no-price"}


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("b200", "no offer of the spec sells B200-SXM-180GB; they sell A100-SXM-80GB,"),
        ("h100-sxm-80gb-tp2-fp9-kvfp8", "did you mean `H100-SXM-80GB-tp2-fp8-kvfp8`?"),
        ("nonsense", "no shape or offer `nonsense` was considered; a shape is called as in `A100-SXM-80GB-tp1-"),
    ],
)
def test_what_was_never_considered_is_said(
    name: str, words: str, prod: tuple[Plan, FleetSpec, Trials, CandidateTable]
) -> None:
    with pytest.raises(NothingNamed, match=re.escape(words)):
        named(name, prod[3], prod[2].catalog)


def test_a_limit_that_leaves_no_fleet_with_a_shape_is_said(two: tuple[Plan, FleetSpec, Trials, CandidateTable]) -> None:
    assert two[0].objective is not None
    tight = TWO_MODELS + f"  budget: {two[0].objective.usd_per_month * 1.01:.0f} USD/month\n"
    spec, trials, table, make = opened(tight, "tight.yaml")
    plan = make()
    assert plan.status == "solved"
    used = {pool_shape(p) for p in plan.pools}
    dear = [
        a for name in all_shapes(table) if name not in used for a in asked((plan, spec, trials, table), name, "chat")
    ]

    assert {a.rule for a in dear} >= {"no-fleet"}
