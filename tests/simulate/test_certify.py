"""Certified plans: what fails its replay is tightened and planned anew, until it holds."""

from __future__ import annotations

from pathlib import Path

import pytest
from planned import HOURLY

from planner.catalog import Catalog
from planner.pipeline import Options, make_plan, prepare
from planner.plan.io import dump, loads
from planner.plan.schema import Plan
from planner.simulate.fleet import Settings
from planner.simulate.trace import read_trace
from planner.spec import load_spec

TRACES = Path(__file__).parents[2] / "specs" / "traces"
BURSTY = """\
version: 1
fleet: bursty
models:
  chat: {use: llama-3.1-8b, max_model_len: 8k}
workloads:
  assistant:
    model: chat
    traffic: {rate: 60 req/s, input_tokens: {mean: 1155, p95: 4083}, output_tokens: {mean: 211, p95: 451}}
    slo: {ttft_p95: 400 ms, tpot_p95: 25 ms}
supply:
  offers: [{name: cloud, provider: aws, region: us-east-1, gpus: [L40S, H100-SXM-80GB]}]
planning: {confidence: 50 %}
"""


def certified(text: str, catalog: Catalog, settings: Settings) -> Plan:
    plan = make_plan(prepare(load_spec(text, "fleet.yaml"), catalog), Options(certify=settings))
    assert loads(dump(plan).encode(), "plan.json").digests == plan.digests
    return plan


def test_what_fails_is_tightened_until_it_holds(catalog: Catalog) -> None:
    """Real arrivals are burstier than the closed form was told."""
    settings = Settings(traces={"assistant": read_trace(TRACES / "azure2023_conv_10min.csv")})
    plan = certified(BURSTY, catalog, settings)
    plain = make_plan(prepare(load_spec(BURSTY, "fleet.yaml"), catalog), Options())
    found = plan.certificate

    assert found is not None
    assert plan.objective is not None
    assert plain.objective is not None
    assert found.replayed.verdict == "pass"
    assert found.rounds > 1
    assert found.tightened[0].round == 1
    assert all(0.0 < t.kept_share < 1.0 and t.failed for t in found.tightened)
    assert found.first_usd_per_hour == pytest.approx(plain.objective.usd_per_hour)
    assert plan.objective.usd_per_hour == pytest.approx(found.first_usd_per_hour + found.price_usd_per_hour)
    assert found.price_usd_per_hour > 0.0
    assert {p.name for p in found.replayed.pools} == {p.name for p in plan.pools}


def test_what_nothing_can_hold_is_said(catalog: Catalog) -> None:
    """With the stock of the first fleet alone there is no other: it is planned all the same, and not certified."""
    plain = make_plan(prepare(load_spec(BURSTY, "fleet.yaml"), catalog), Options())
    gpus = ", ".join(f"{n.gpu}: {n.nodes * n.gpus_per_node}" for n in plain.nodes)
    others = ", ".join(f"{g}: 0" for g in ("L40S", "H100-SXM-80GB") if g not in {n.gpu for n in plain.nodes})
    text = BURSTY.replace("planning:", f"  limits: {{gpus: {{{gpus}{', ' if others else ''}{others}}}}}\nplanning:")
    settings = Settings(traces={"assistant": read_trace(TRACES / "azure2023_conv_10min.csv")})
    plan = certified(text, catalog, settings)

    assert plan.status == "solved"
    assert plan.certificate is not None
    assert plan.certificate.replayed.verdict == "fail"


def test_every_period_is_replayed(catalog: Catalog) -> None:
    settings = Settings(replications=2, requests=4000)
    plan = certified(HOURLY, catalog, settings)
    assert dump(certified(HOURLY, catalog, settings)) == dump(plan)
    found = plan.certificate

    assert found is not None
    assert {(p.name, p.period) for p in found.replayed.pools} == {
        (pool.name, period) for pool in plan.pools for period, count in pool.replicas_by_period.items() if count
    }
    assert {w.name for p in found.replayed.pools for w in p.workloads} == {"assistant"}
    assert {p.replicas for p in found.replayed.pools} == {
        count for pool in plan.pools for count in pool.replicas_by_period.values() if count
    }
