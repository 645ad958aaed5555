"""What the spec adds to a plan agrees with the plan."""

from __future__ import annotations

import math
from itertools import pairwise
from pathlib import Path

import pytest

from planner.candidates.hours import hours_of, periods_of
from planner.candidates.references import open_catalog
from planner.diagnostics import DiagnosticError
from planner.pipeline import Prepared, prepare
from planner.plan.io import load
from planner.plan.schema import Plan
from planner.spec import FleetSpec, load_spec
from planner.study import Study, study_of
from planner.study.roofline import operating_points

TESTS = Path(__file__).parents[1]
SPECS = TESTS.parent / "specs"


def spec_at(path: Path) -> FleetSpec:
    loaded = load_spec(path.read_text(encoding="utf-8"), str(path))
    assert loaded.spec is not None
    return loaded.spec


@pytest.fixture(scope="module")
def plan() -> Plan:
    return load(TESTS / "data" / "plans" / "prod.json")


@pytest.fixture(scope="module")
def prepared() -> Prepared:
    path = SPECS / "prod.yaml"
    loaded = load_spec(path.read_text(encoding="utf-8"), str(path))
    return prepare(loaded, open_catalog(loaded, None))


@pytest.fixture(scope="module")
def study(plan: Plan, prepared: Prepared) -> Study:
    return study_of(prepared, plan)


def test_curves_pass_through_the_prediction_of_the_plan(plan: Plan, study: Study) -> None:
    worst: dict[tuple[str, str], float] = {}
    for pool in study.curves:
        at = pool.rates.index(pool.planned)
        for curve in pool.curves:
            key = curve.workload, curve.metric
            worst[key] = max(worst.get(key, 0.0), curve.seconds[at])
    checks = {(w.name, c.metric): c.predicted_s for w in plan.workloads for c in w.slo}

    assert worst == pytest.approx(checks, rel=1e-6)


def test_curves_rise_with_the_load(study: Study) -> None:
    for pool in study.curves:
        assert list(pool.rates) == sorted(set(pool.rates))
        for curve in pool.curves:
            assert len(curve.seconds) == len(pool.rates)
            seconds = [s for s in curve.seconds if s is not None]
            assert all(b >= a * (1.0 - 1e-6) for a, b in pairwise(seconds))


def test_curves_end_where_queues_grow_without_end(plan: Plan, prepared: Prepared) -> None:
    """The cap of a batch bounds what a pool bears: no value that saturation has left over is drawn beyond."""
    capped = tuple(p.model_copy(update={"max_num_seqs": math.ceil(p.mean_batch) + 1}) for p in plan.pools)
    broken = tuple(p.model_copy(update={"max_num_seqs": max(1, math.floor(p.mean_batch / 2))}) for p in plan.pools)
    ends: list[list[float]] = []
    for pools in (plan.pools, capped, broken):
        study = study_of(prepared, plan.model_copy(update={"pools": pools}))
        ends.append([rate for c in study.curves for rate in (c.rates[-1],)])
        for pool in study.curves:
            for curve in pool.curves:
                borne = [s is not None for s in curve.seconds]
                seconds = [s for s in curve.seconds if s is not None]
                assert borne == sorted(borne, reverse=True)
                assert len(set(seconds)) == len(seconds)
    assert all(b < a for a, b in zip(*ends[:2], strict=True))


def test_pools_without_limits_have_no_curve(plan: Plan, study: Study) -> None:
    limited = {w.name for w in plan.workloads if w.slo}

    assert {c.pool for c in study.curves} == {p.name for p in plan.pools if limited & set(p.workloads)}
    assert {p.name for p in plan.pools} > {c.pool for c in study.curves}


def test_points_lie_below_the_roof(plan: Plan, study: Study) -> None:
    assert [p.pool for p in study.points] == [p.name for p in plan.pools]
    for point in study.points:
        assert 0.0 < point.flops_per_s < point.roof(point.flop_per_byte)
        assert point.bytes_per_s < point.bandwidth_bytes_per_s
        assert point.flops_per_s / point.bytes_per_s == pytest.approx(point.flop_per_byte)
        assert point.roof(1.0) == point.bandwidth_bytes_per_s


def test_points_are_what_the_rows_of_the_plan_say_by_gpu(plan: Plan, study: Study) -> None:
    for pool, point in zip(plan.pools, study.points, strict=True):
        used = {row.row: row.used for row in pool.rows}
        assert point.bytes_per_s * pool.gpus == pytest.approx(used["bandwidth_ceiling"] * 1e9)
        assert point.flops_per_s * pool.gpus == pytest.approx(used["compute_ceiling"] * 1e12)


def test_a_pool_that_streams_nothing_or_is_of_an_older_release_has_no_point(plan: Plan, prepared: Prepared) -> None:
    device = prepared.catalog.gpu("H100-SXM-80GB").device()
    pool = plan.pools[0]
    idle = tuple(r.model_copy(update={"used": 0.0}) if r.row == "bandwidth_ceiling" else r for r in pool.rows)
    for rows in ((), idle):
        other = plan.model_copy(update={"pools": (pool.model_copy(update={"rows": rows}),)})
        assert operating_points(other, {pool.name: device}) == ()


def test_one_shape_is_considered_for_each_workload_and_gpu_type(plan: Plan, study: Study) -> None:
    used = {(w, p.gpu) for p in plan.pools for w in p.workloads}
    rows = {(r.workload, r.gpu): r for r in study.considered}

    assert len(rows) == len(study.considered)
    assert {key for key, row in rows.items() if row.verdict == "used"} == used
    assert all((row.usd_per_hour is None) == (row.verdict == "ruled out") for row in study.considered)
    assert rows["agent", "A100-SXM-80GB"].why == "all nodes of rack-7 are in use"
    assert rows["assistant", "L40S"].why.startswith("latency: tpot_p95 of 60 ms")


def test_full_use_costs_no_more_than_the_pools_do(plan: Plan, study: Study) -> None:
    """Divisible replicas are a lower bound where each workload has pools of one shape to itself."""
    rows = {(r.workload, r.gpu): r.usd_per_hour or 0.0 for r in study.considered}
    reason = next(p for p in plan.pools if p.name == "reason")

    assert sum(rows[w, reason.gpu] for w in reason.workloads) < reason.usd_per_hour


def test_rows_are_those_of_the_program(plan: Plan, study: Study) -> None:
    assert study.rows["demand"] == len(plan.workloads)
    assert study.rows["step_time"] == plan.candidates
    assert study.rows["spot_share"] == 0


def test_a_plan_of_another_release_is_refused(plan: Plan, prepared: Prepared) -> None:
    other = plan.pools[0].model_copy(update={"weights": "int3"})

    with pytest.raises(DiagnosticError, match="would not consider pool chat-1"):
        study_of(prepared, plan.model_copy(update={"pools": (other,)}))


def test_hours_belong_to_the_period_that_is_planned_for_them() -> None:
    spec = spec_at(SPECS / "examples" / "hourly-demand.yaml")
    hours, periods = hours_of(spec), {p.name: p for p in periods_of(spec)}

    assert len(hours.periods) == 24
    assert set(hours.periods) == set(periods)
    for name, rates in hours.requests_per_s.items():
        highest = {p: max(r for r, own in zip(rates, hours.periods, strict=True) if own == p) for p in periods}
        assert highest == {p: period.requests_per_s[name] for p, period in periods.items()}
    shares = {p: hours.periods.count(p) / 24 for p in periods}
    assert shares == pytest.approx({p: period.share for p, period in periods.items()})


def test_without_hourly_demand_there_is_one_hour() -> None:
    spec = spec_at(SPECS / "staging.yaml")

    assert hours_of(spec).periods == ("peak",)
    assert periods_of(spec)[0].share == 1.0
