"""`estimate` and `solve` say the same about the same deployment."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import pytest
from estimate_cases import CATALOG, LLAMA_8B, deployed, estimated, fitted

from planner.candidates.knowledge import Knowledge
from planner.candidates.models import resolve_models
from planner.candidates.traffic import resolve_workloads
from planner.estimate.answer import Load, LoadKind, Search
from planner.estimate.deployment import Deployment
from planner.estimate.loaded import resolved_model, shape_of
from planner.estimate.memory import fit
from planner.estimate.speed import speed_of
from planner.physics.bands import Provenance
from planner.pipeline import Options, Prepared, make_plan, prepare
from planner.plan.assess import PoolLoad, assess
from planner.plan.io import loads
from planner.plan.levers import slowest_part
from planner.plan.schema import Plan, Pool
from planner.spec import load_spec

ROOT = Path(__file__).parents[2]
SPEC = ROOT / "specs" / "prod.yaml"
PLAN = ROOT / "tests" / "data" / "plans" / "prod.json"
NAMES = [pool["name"] for pool in json.loads(PLAN.read_text(encoding="utf-8"))["pools"]]

ONE_GPU = """version: 1
fleet: one
models:
  chat: {{use: meta-llama/Llama-3.1-8B-Instruct, weights: [bf16], kv_cache: [bf16], max_model_len: 8192}}
workloads:
  requests:
    model: chat
    traffic: {{rate: {rate} req/s, input_tokens: 1024, output_tokens: 256}}
    slo: {slo}
supply:
  offers:
    - {{provider: aws, region: us-east-1, gpus: [L40S]}}
"""


@cache
def golden() -> tuple[Prepared, Plan]:
    """The saved plan of the production fleet, which the suite keeps current, and its spec."""
    prepared = prepare(load_spec(SPEC.read_text(encoding="utf-8"), "specs/prod.yaml"), CATALOG)
    return prepared, loads(PLAN.read_bytes(), str(PLAN))


def pool_of(name: str) -> Pool:
    """A pool of that plan."""
    return next(pool for pool in golden()[1].pools if pool.name == name)


def as_deployment(pool: Pool, **changed: object) -> Deployment:
    """The deployment that a pool has replicas of, asked for by name as a user would."""
    model = golden()[0].spec.models[pool.model]
    asked: dict[str, object] = {
        "tensor": pool.tensor_parallel,
        "weights": pool.weights,
        "kv": pool.kv_cache,
        "engine": pool.engine.name,
        "engine_version": pool.engine.version,
        "utilization": model.engine.gpu_memory_utilization,
        "max_model_len": pool.max_model_len,
        "max_num_batched_tokens": pool.max_num_batched_tokens,
        "max_num_seqs": pool.max_num_seqs,
    }
    return deployed(model.use or "", pool.gpu, **{**asked, **changed})


@pytest.mark.parametrize("name", NAMES)
def test_memory_is_that_of_the_plan(name: str) -> None:
    pool = pool_of(name)
    budget = fit(as_deployment(pool)).budget

    assert pool.hbm_bytes_per_gpu.model_dump() == {
        "usable": budget.usable_bytes,
        "weights": budget.weights_bytes,
        "kv_pool": budget.kv_pool_bytes,
        "activations": budget.activation_bytes,
        "runtime": budget.runtime_bytes,
        "graphs": budget.graph_bytes,
        "free": budget.free_bytes,
    }
    assert pool.kv_tokens == pytest.approx(budget.kv_tokens, rel=1e-11)  # plans are saved to 12 digits
    assert pool.max_concurrency == pytest.approx(budget.max_concurrency, rel=1e-11)


@pytest.mark.parametrize(
    ("slo", "limits_s"),
    [
        ("{tpot_p95: 50 ms}", {"tpot_p95": 0.05}),
        ("{ttft_p95: 400 ms}", {"ttft_p95": 0.4}),
        ("{ttft_p95: 2 s, tpot_p95: 100 ms}", {"ttft_p95": 2.0, "tpot_p95": 0.1}),
    ],
)
@pytest.mark.parametrize("share", [0.4, 0.97])
def test_what_is_scarce_is_that_of_a_plan_with_the_same_limits(
    slo: str, limits_s: dict[str, float], share: float
) -> None:
    asked = {"weights": "bf16", "kv": "bf16", "max_model_len": 8192, "input_tokens": 1024, "output_tokens": 256}
    most = estimated(LLAMA_8B, "L40S", search=Search.MAX_RATE, limits=limits_s, **asked)
    assert most.found is not None
    rate = share * (most.found.value or 0.0)
    at_rate = speed_of(most.fit, Load(LoadKind.RATE, rate, limits_s=limits_s), CATALOG)
    plan = make_plan(prepare(load_spec(ONE_GPU.format(rate=rate, slo=slo), "one.yaml"), CATALOG), Options())
    (pool,) = plan.pools

    assert pool.replicas == 1
    assert at_rate.limited_by == pool.limited_by
    assert at_rate.lever == pool.lever


def test_a_loose_limit_does_not_change_what_tokens_consist_of() -> None:
    asked = {"weights": "bf16", "max_model_len": 8192}
    held = fitted(LLAMA_8B, "L40S", **asked)
    named = [
        speed_of(held, Load(LoadKind.RATE, 2.0, limits_s=limits), CATALOG).limited_by
        for limits in ({}, {"tpot_p95": 0.05}, {"tpot_p95": 10.0})
    ]

    assert named == ["bandwidth"] * 3


@pytest.mark.parametrize("name", NAMES)
def test_speed_under_the_same_traffic_is_that_of_the_plan(name: str) -> None:
    prepared, _ = golden()
    pool = pool_of(name)
    spec = prepared.spec
    workloads = resolve_workloads(spec, resolve_models(spec, prepared.catalog))
    knowledge = Knowledge.of(CATALOG, spec.planning.confidence)
    held = fit(as_deployment(pool, max_num_seqs=None))
    known = Provenance(pool.band.provenance, pool.band.measured)
    shape = shape_of(held, known, pool.band.factor, pool.band.ttft_factor)
    rates = dict(pool.workloads)
    load = PoolLoad(pool.name, shape, pool.max_num_seqs, pool.replicas, rates)
    state = assess(resolved_model(held.deployment), workloads, [load], knowledge.constants)[0]
    shown = {(m, p): getattr(pool.predicted, f"{m}_p{p * 100:.0f}_s") for m, p in state.shown_s}

    assert state.shown_s == pytest.approx(shown, rel=1e-6)
    assert pool.limited_by in (slowest_part(state), "capacity", "queueing", "compute")
    d = held.deployment
    assert known == knowledge.provenance(d.architecture, d.device, d.engine.speed_class(d.device.vendor), d.weights)
