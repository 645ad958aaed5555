"""`estimate` and `solve` say the same about the same deployment."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import pytest
from estimate_cases import CATALOG, deployed

from planner.candidates.knowledge import Knowledge
from planner.candidates.models import resolve_models
from planner.candidates.traffic import resolve_workloads
from planner.estimate.deployment import Deployment
from planner.estimate.loaded import resolved_model, shape_of
from planner.estimate.memory import fit
from planner.physics.bands import Provenance
from planner.pipeline import Options, Prepared, make_plan, prepare
from planner.plan.assess import PoolLoad, assess
from planner.plan.levers import slowest_part
from planner.plan.schema import Plan, Pool
from planner.spec import load_spec

ROOT = Path(__file__).parents[2]
SPEC = ROOT / "specs" / "prod.yaml"
NAMES = [pool["name"] for pool in json.loads((ROOT / "tests/data/plans/prod.json").read_text())["pools"]]


@cache
def golden() -> tuple[Prepared, Plan]:
    """The plan of the production fleet."""
    prepared = prepare(load_spec(SPEC.read_text(encoding="utf-8"), "specs/prod.yaml"), CATALOG)
    return prepared, make_plan(prepared, Options())


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
    assert pool.kv_tokens == budget.kv_tokens
    assert pool.max_concurrency == budget.max_concurrency


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
