"""Largest batch within limits: what binds, what is best, and that nothing better ever rates worse."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from latency_cases import Case, dense, experts, pairs

from planner.physics.latency import (
    METRICS,
    AtBatch,
    batch_at,
    largest_batch,
    saturation,
    throughput,
)
from planner.physics.latency.largest import LONE_REPLICA_FACTOR, UTILIZATION_GUARD
from planner.physics.step import StepCoefficients

CASES = (
    Case(replicas=4),
    Case(prompt=200, output=100, slots=64, replicas=4),
    Case(prompt=4000, output=300, replicas=2),
    Case(chunked=False, replicas=8, arrival_cv2=3.0),
)

# A hair of tolerance: the batch is bisected to 1e-3, and the rate with it.
SLACK = 1.0 - 2e-3

cases = st.builds(
    Case,
    prompt=st.floats(20, 6000),
    output=st.floats(1, 1500),
    spread=st.floats(0, 1.5),
    replicas=st.integers(1, 16),
    slots=st.sampled_from([1, 8, 64, 256]),
    budget=st.sampled_from([512, 2048, 8192]),
    chunked=st.booleans(),
    arrival_cv2=st.floats(0.5, 4),
)
limits = st.fixed_dictionaries(
    {},
    optional={
        f"{metric}_p{p}": st.floats(-3, 2).map(lambda power: 10.0**power) for metric in METRICS for p in (50, 95, 99)
    },
)


def rate(case: Case, asked: dict[str, float], halved: bool = True) -> float:
    found = largest_batch(pairs(case), {key: np.array([value]) for key, value in asked.items()}, halved)
    for values in (found.batch, found.requests_per_s, found.best_s):
        assert np.isfinite(values).all()
        assert (values >= 0).all()
    return float(found.requests_per_s[0])


def test_without_limits_the_guard_stops_the_rate() -> None:
    some = pairs(*CASES, Case())
    found = largest_batch(some, {})
    top = saturation(some).requests_per_s
    assert found.requests_per_s[:4] == pytest.approx(UTILIZATION_GUARD * top[:4])
    assert found.requests_per_s[4] == pytest.approx(LONE_REPLICA_FACTOR * UTILIZATION_GUARD * top[4])
    assert (found.binding == "slots").all()
    assert (found.best_s == 0.0).all()


def test_what_stops_the_flow_is_named() -> None:
    some = pairs(Case(), Case(kv_slots=30.0), Case(prompt=8000, output=20, slots=256), Case(kv_slots=0.4))
    found = largest_batch(some, {})
    assert list(found.binding) == ["slots", "kv", "saturation", "kv"]
    assert found.batch[3] == 0.0
    assert found.requests_per_s[3] == 0.0


def test_infinite_limits_are_no_limits() -> None:
    some = pairs(*CASES)
    free = largest_batch(some, {})
    unlimited = largest_batch(some, {f"{metric}_p95": np.full(some.size, np.inf) for metric in METRICS})
    assert unlimited.requests_per_s == pytest.approx(free.requests_per_s)
    assert list(unlimited.binding) == list(free.binding)


@pytest.mark.parametrize("halved", [True, False])
def test_the_largest_batch_touches_the_limit_that_binds(halved: bool) -> None:
    some = pairs(*CASES)
    asked = {"ttft_p95": np.full(some.size, 0.8), "tpot_p95": np.full(some.size, 0.012)}
    found = largest_batch(some, asked, halved)
    for key, limit in asked.items():
        metric = key.removesuffix("_p95")
        at, above = (AtBatch.of(some, share * found.batch).percentile(metric, 0.95, halved) for share in (1.0, 1.01))
        assert (at <= limit * (1 + 1e-6)).all()
        assert (above[found.binding == key] > 0.995 * limit[found.binding == key]).all()
    assert "tpot_p95" in found.binding


def test_the_batch_carries_the_rate() -> None:
    some = pairs(*CASES, Case())
    found = largest_batch(some, {"tpot_p95": np.full(some.size, 0.012)})
    assert throughput(some, found.batch).requests_per_s == pytest.approx(found.requests_per_s, rel=1e-8)
    assert batch_at(some, found.requests_per_s) == pytest.approx(found.batch, rel=1e-6)


def test_a_lone_replica_is_derated() -> None:
    one = largest_batch(pairs(Case()), {"tpot_p95": np.array([0.012])})
    batch_alone = batch_at(pairs(Case()), one.requests_per_s / LONE_REPLICA_FACTOR)
    assert AtBatch.of(pairs(Case()), batch_alone).percentile("tpot", 0.95)[0] == pytest.approx(0.012, rel=1e-3)
    assert one.requests_per_s[0] < rate(Case(replicas=2), {"tpot_p95": 0.012})


def test_an_infeasible_pair_says_how_low_its_metric_can_get() -> None:
    some = pairs(Case(replicas=4), Case(prompt=4000, replicas=4))
    found = largest_batch(some, {"tpot_p95": np.array([0.001, 0.05]), "ttft_p95": np.array([9.0, 0.02])})
    assert list(found.binding) == ["tpot_p95", "ttft_p95"]
    assert (found.batch == 0.0).all()
    assert (found.requests_per_s == 0.0).all()
    empty = np.zeros(2)
    assert found.best_s[0] == pytest.approx(AtBatch.of(some, empty).percentile("tpot", 0.95)[0], rel=1e-3)
    assert found.best_s[1] == pytest.approx(AtBatch.of(some, empty).percentile("ttft", 0.95)[1], rel=1e-3)


def test_pairs_do_not_touch_each_other() -> None:
    asked = {"ttft_p95": 0.5, "itl_p99": 0.2, "e2e_p95": 20.0}
    together = largest_batch(pairs(*CASES), {key: np.full(len(CASES), value) for key, value in asked.items()})
    alone = [largest_batch(pairs(case), {key: np.array([value]) for key, value in asked.items()}) for case in CASES]
    assert list(together.requests_per_s) == [each.requests_per_s[0] for each in alone]
    assert list(together.binding) == [each.binding[0] for each in alone]


def test_pairs_can_be_taken() -> None:
    some = pairs(*CASES)
    index = np.array([2, 0])
    asked = np.full(4, 0.015)
    whole = largest_batch(some, {"tpot_p99": asked}).requests_per_s
    assert largest_batch(some.take(index), {"tpot_p99": asked[index]}).requests_per_s == pytest.approx(whole[index])


@pytest.mark.parametrize("key", ["ttft", "ttft_p", "ttft_p0", "ttft_p100", "latency_p95", "tpot_pXX"])
def test_an_unknown_limit_is_refused(key: str) -> None:
    with pytest.raises(ValueError, match="unknown latency limit"):
        largest_batch(pairs(Case()), {key: np.array([1.0])})


def random_cases(seed: int, count: int) -> list[Case]:
    rng = np.random.default_rng(seed)
    return [
        Case(
            prompt=10 ** rng.uniform(1.3, 4.0),
            output=10 ** rng.uniform(0.0, 3.3),
            spread=rng.uniform(0.0, 1.8),
            replicas=int(rng.integers(1, 20)),
            slots=int(rng.choice([1, 8, 64, 256])),
            budget=int(rng.choice([512, 2048, 8192])),
            chunked=bool(rng.random() < 0.7),
            arrival_cv2=rng.uniform(0.5, 4.0),
            kv_slots=10 ** rng.uniform(0.0, 3.0),
        )
        for _ in range(count)
    ]


@pytest.mark.parametrize("key", ["ttft_p95", "tpot_p50", "tpot_p99", "itl_p95", "itl_p99", "e2e_p95"])
@pytest.mark.parametrize("step", [dense, experts])
def test_random_pairs_never_rate_better_for_worse_conditions(key: str, step: Callable[[], StepCoefficients]) -> None:
    """80 random pairs at limits around what they can just meet: looser, more replicas, less bursty, faster steps."""
    some = pairs(*random_cases(3, 80), step=step())
    metric, _, p = key.partition("_p")
    floor = AtBatch.of(some, np.zeros(some.size)).percentile(metric, int(p) / 100.0)
    limit = np.maximum(floor, 1e-3) * np.geomspace(0.9, 10.0, some.size)
    rates = largest_batch(some, {key: limit}).requests_per_s
    assert (rates > 0).mean() > 0.8
    looser = largest_batch(some, {key: 1.3 * limit}).requests_per_s
    pooled = largest_batch(replace(some, replicas=some.replicas + 3.0), {key: limit}).requests_per_s
    bursty = largest_batch(replace(some, arrival_cv2=1.5 * some.arrival_cv2), {key: limit}).requests_per_s
    slower = largest_batch(replace(some, step_factor=1.2 * some.step_factor), {key: limit}).requests_per_s
    for better, worse in ((looser, rates), (pooled, rates), (rates, bursty), (rates, slower)):
        assert (better >= SLACK * worse).all()


@given(cases, limits, st.floats(1.0, 10.0))
@settings(max_examples=20, derandomize=True, deadline=None)
def test_a_looser_limit_never_lowers_the_rate(case: Case, asked: dict[str, float], looser: float) -> None:
    loose = {key: value * looser for key, value in asked.items()}
    assert rate(case, loose) >= SLACK * rate(case, asked)
    assert rate(case, {}) >= SLACK * rate(case, asked)


@given(cases, limits, st.integers(1, 8))
@settings(max_examples=20, derandomize=True, deadline=None)
def test_more_replicas_never_lower_the_rate_of_each(case: Case, asked: dict[str, float], more: int) -> None:
    assert rate(replace(case, replicas=case.replicas + more), asked) >= SLACK * rate(case, asked)


@given(cases, limits, st.floats(1.0, 3.0))
@settings(max_examples=20, derandomize=True, deadline=None)
def test_burstier_arrivals_never_raise_the_rate(case: Case, asked: dict[str, float], burstier: float) -> None:
    bursty = replace(case, arrival_cv2=case.arrival_cv2 * burstier)
    assert rate(bursty, asked) <= rate(case, asked) / SLACK


@given(cases, limits)
@settings(max_examples=15, derandomize=True, deadline=None)
def test_the_unbiased_rate_is_never_below_the_safe_one(case: Case, asked: dict[str, float]) -> None:
    assert rate(case, asked, halved=False) >= SLACK * rate(case, asked)


@given(cases, limits)
@settings(max_examples=15, derandomize=True, deadline=None)
def test_limits_hold_at_the_largest_batch(case: Case, asked: dict[str, float]) -> None:
    some = pairs(case)
    found = largest_batch(some, {key: np.array([value]) for key, value in asked.items()})
    if found.batch[0] > 0:
        for key, value in asked.items():
            metric, _, p = key.partition("_p")
            allowed = (1.0 - int(p) / 100.0) * (1.0 if metric == "e2e" else 0.5)
            assert AtBatch.of(some, found.batch).tail(metric, np.array([value]))[0] <= allowed + 1e-9


@given(cases, limits)
@settings(max_examples=20, derandomize=True, deadline=None)
def test_experts_rate_without_faults(case: Case, asked: dict[str, float]) -> None:
    found = largest_batch(pairs(case, step=experts()), {key: np.array([value]) for key, value in asked.items()})
    assert np.isfinite(found.requests_per_s).all()
