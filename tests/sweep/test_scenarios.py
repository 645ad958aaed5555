"""Scenarios as workers plan them: the same plan as a spec that says so, whatever was planned before."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from swept import OFFER, PRICE, RATE, TEXT, base, job, scenario

from planner.pipeline import Options, make_plan, prepare
from planner.spec import load_spec
from planner.sweep.scenario import Scenario
from planner.sweep.work import Bench, OtherWorkerError, answer


@pytest.fixture(scope="module")
def bench() -> Bench:
    """One worker, which keeps what it rated."""
    return Bench(job())


def row(bench: Bench, asked: Scenario) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(bench.planned(asked).line)
    return found


def test_a_scenario_is_planned_as_the_spec_that_it_stands_for(bench: Bench) -> None:
    written = load_spec(TEXT.replace("2 req/s", "9 req/s"), "small.yaml")
    plan = make_plan(prepare(written, base().catalog), Options())
    assert plan.objective is not None
    before = row(bench, scenario(1, rate="2 req/s"))

    found = row(bench, scenario(2, rate="9 req/s"))

    assert found["usd_per_month"] == pytest.approx(plan.objective.usd_per_month)
    assert found["nodes"] == {node.offer: node.nodes for node in plan.nodes}
    assert found["margins"] == {"assistant": pytest.approx(min(c.margin for c in plan.workloads[0].slo))}
    assert found["gpus"] == sum(pool.gpus for pool in plan.pools)
    assert row(bench, scenario(1, rate="2 req/s")) == before != found


def test_a_price_replaces_the_listed_one(bench: Bench) -> None:
    cheap = row(bench, scenario(price="1 USD/node/h"))
    cheaper = row(bench, scenario(price="0.5 USD/gpu/h"))
    dear = row(bench, scenario(price="90 USD/node/h"))

    assert cheap["nodes"] == cheaper["nodes"] == {OFFER: 1}
    assert (cheap["usd_per_month"], cheaper["usd_per_month"]) == (730.0, 365.0)
    assert OFFER not in dear["nodes"]


def test_a_figure_of_the_catalog_changes_what_is_rated(bench: Bench) -> None:
    slow = row(bench, Scenario(1, (("catalog.gpus.L40S.memory.bandwidth_tb_s", "0.3"),)))
    as_it_is = row(bench, Scenario(2, (("catalog.gpus.L40S.memory.bandwidth_tb_s", "0.864"),)))

    assert slow["usd_per_month"] > as_it_is["usd_per_month"]


def test_changes_of_a_catalog_are_in_its_digest() -> None:
    changed, catalog = base().variant(((PRICE, "1 USD/node/h"), ("catalog.gpus.L40S.tdp_w", "300")))

    assert changed.spec == base().loaded.spec
    assert catalog.digest() != base().catalog.digest()
    assert catalog.gpu("L40S").tdp_w == 300.0
    assert base().catalog.gpu("L40S").tdp_w != 300.0


def test_values_that_make_no_spec_together_are_the_answer() -> None:
    values = ((f"{RATE}.peak", "1 req/s"), (f"{RATE}.mean", "3 req/s"))
    found = json.loads(answer(job(), Scenario(7, values)).line)

    assert (found["scenario"], found["status"]) == (7, "invalid")
    assert "mean" in found["reason"]


def test_a_bug_in_a_scenario_is_its_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_arguments: object, **_named: object) -> None:
        raise RuntimeError("out of order")

    monkeypatch.setattr("planner.sweep.work.make_plan", broken)
    found = json.loads(answer(job(), scenario()).line)

    assert (found["status"], found["reason"]) == ("failed", "RuntimeError: out of order")


@pytest.mark.parametrize("other", [{"release": "9.9"}, {"catalog_digest": "sha256:0"}])
def test_a_worker_whose_answers_would_be_others_is_refused(other: dict[str, str]) -> None:
    with pytest.raises(OtherWorkerError):
        Bench(replace(job(), **other))
