"""Tails and percentiles: limits that have exact answers, and consistency between the two."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from latency_cases import Array, Case, dense, experts, lengths, pairs, table

from planner.physics.latency import METRICS, AtBatch, Lengths, Pairs, batch_at, saturation, throughput
from planner.physics.step import step_s

CASES = (
    Case(),
    Case(replicas=4, arrival_cv2=2.0),
    Case(prompt=200, output=100, slots=64),
    Case(prompt=4000, output=300, chunked=False),
    Case(prompt=500, output=1),
)


def half_load(some: Pairs) -> Array:
    return batch_at(some, 0.5 * saturation(some).requests_per_s)


def mean_of_tail(some: Pairs, batch: Array, metric: str, longest_s: float) -> float:
    """Integrate the tail over the limit: the mean of the metric."""
    limits = np.linspace(0.0, longest_s, 4001)
    same = np.zeros(limits.size, dtype=np.intp)
    return float(np.trapezoid(AtBatch.of(some.take(same), batch[same]).tail(metric, limits), limits))


@pytest.mark.parametrize("share", [0.2, 0.5, 0.8])
def test_one_slot_and_one_token_wait_as_a_single_server_queue(share: float) -> None:
    """Constant prompts, one at a time: mean wait `rho s / (2 (1 - rho))` above the service time `s`."""
    some = pairs(Case(prompt=1000, spread=0.0, output=1, slots=1))
    service = dense().prefill_factor * float(np.asarray(step_s(dense(), 1000.0, 0.0, 0.0, 1000.0, 1000.0)))
    assert saturation(some).requests_per_s[0] == pytest.approx(1.0 / service, rel=1e-6)
    batch = batch_at(some, np.array([share / service]))
    expected = service * (1.0 + share / (2.0 * (1.0 - share)))
    assert mean_of_tail(some, batch, "ttft", 40.0 * service) == pytest.approx(expected, rel=5e-3)


def test_an_empty_replica_decodes_at_the_step_of_one_sequence() -> None:
    some = pairs(Case(spread=0.0))
    alone = float(np.asarray(step_s(dense(), 1.0, 1.0, 1100.0)))
    assert AtBatch.of(some, np.array([0.0])).percentile("tpot", 0.5)[0] == pytest.approx(alone, rel=0.02)


def test_an_empty_replica_answers_after_its_own_prompt() -> None:
    some = pairs(Case(prompt=1000, spread=0.0))
    own = table(128, 1000.0, 0.0).seconds(0, 0, 1000)
    step = throughput(some, np.array([1e-6])).mean_step_s[0]
    first = AtBatch.of(some, np.array([0.0])).percentile("ttft", 0.5, halved=False)[0]
    assert own < first < own + 1.5 * step


def test_without_kv_cost_the_batch_does_not_stretch_the_step() -> None:
    """No cost per sequence and prompts of one token: a step takes the same at every batch."""
    free = replace(
        dense(), kv_global_s=0.0, host_sequence_s=0.0, attention_token_s=0.0, ffn_token_s=0.0, head_token_s=0.0,
        prefill_global_s=0.0,
    )  # fmt: skip
    some = pairs(Case(prompt=1, spread=0.0, slots=100_000, budget=200_000), step=free)
    step = throughput(some, np.array([1.0])).mean_step_s[0]
    for batch in (10.0, 1000.0, 50_000.0):
        for metric in ("tpot", "itl"):
            assert AtBatch.of(some, np.array([batch])).percentile(metric, 0.99)[0] == pytest.approx(step, rel=1e-3)


@pytest.mark.parametrize("metric", METRICS)
def test_a_percentile_is_the_smallest_limit_that_its_tail_allows(metric: str) -> None:
    some = pairs(*CASES[:4])
    batch = half_load(some)
    for p in (0.5, 0.95, 0.99):
        value = AtBatch.of(some, batch).percentile(metric, p, halved=False)
        assert (AtBatch.of(some, batch).tail(metric, value) <= 1.0 - p).all()
        assert (AtBatch.of(some, batch).tail(metric, value * 0.999) >= 1.0 - p - 1e-3).all()


@pytest.mark.parametrize("metric", METRICS)
def test_tails_fall_with_the_limit_and_stay_shares(metric: str) -> None:
    some = pairs(*CASES)
    batch = half_load(some)
    at = AtBatch.of(some, batch)
    tails = np.array([at.tail(metric, np.full(some.size, limit)) for limit in np.geomspace(1e-4, 1e3, 60)])
    assert np.isfinite(tails).all()
    assert ((tails >= 0.0) & (tails <= 1.0 + 1e-12)).all()
    assert (np.diff(tails, axis=0) <= 1e-9).all()
    assert (tails[-1] < 1e-6).all()


@pytest.mark.parametrize("metric", METRICS)
def test_percentiles_rise_with_the_batch_and_the_share(metric: str) -> None:
    some = pairs(*CASES)
    top = saturation(some).batch
    by_batch = np.array(
        [AtBatch.of(some, share * top).percentile(metric, 0.95) for share in (0.05, 0.2, 0.4, 0.6, 0.8, 0.95)]
    )
    assert (np.diff(by_batch, axis=0) >= -1e-9 * by_batch[1:]).all()
    by_share = np.array([AtBatch.of(some, 0.5 * top).percentile(metric, p) for p in (0.5, 0.9, 0.95, 0.99)])
    assert (np.diff(by_share, axis=0) >= 0.0).all()


@pytest.mark.parametrize("metric", ["tpot", "itl"])
def test_no_step_exceeds_a_full_budget(metric: str) -> None:
    some = pairs(Case(budget=1024))
    batch = half_load(some)
    full_step = table(128, 1000.0, 1.0).seconds(128, 128 * 4000, 1024)
    assert AtBatch.of(some, batch).percentile(metric, 0.999)[0] < full_step


def test_prompts_that_run_alone_stall_whole() -> None:
    """Without chunks a long prompt holds up every sequence for all of its time; chunks bound the gap."""
    whole, chunked = (pairs(Case(prompt=8000, spread=0.0, chunked=chunked)) for chunked in (False, True))
    batch = np.array([6.0])
    prompt_s = table(128, 8000.0, 0.0).seconds(0, 0, 8000)
    assert AtBatch.of(whole, batch).percentile("itl", 0.99, halved=False)[0] > prompt_s
    assert AtBatch.of(chunked, batch).percentile("itl", 0.99, halved=False)[0] < 0.5 * prompt_s


def test_factors_scale_what_they_say() -> None:
    plain = pairs(Case())
    batch = np.array([20.0])
    slow = replace(plain, step_factor=np.array([1.5]))
    for metric in METRICS:
        expected = 1.5 * AtBatch.of(plain, batch).percentile(metric, 0.9)
        assert AtBatch.of(slow, batch).percentile(metric, 0.9) == pytest.approx(expected, rel=1e-6)
    first = replace(plain, ttft_factor=np.array([2.0]), fixed_ttft_s=np.array([0.05]))
    expected = 2.0 * (AtBatch.of(plain, batch).percentile("ttft", 0.9) + 0.05)
    assert AtBatch.of(first, batch).percentile("ttft", 0.9) == pytest.approx(expected, rel=1e-6)
    tpot = AtBatch.of(plain, batch).percentile("tpot", 0.9)
    assert AtBatch.of(first, batch).percentile("tpot", 0.9) == pytest.approx(tpot)


def test_part_of_the_traffic_can_be_observed_alone() -> None:
    """In a shared pool, short prompts get their first token sooner than the mixture, long ones later."""
    some = pairs(Case(replicas=4))
    batch = half_load(some)

    def observed(mean: float) -> Lengths:
        prompt = lengths(mean, 0.0)[None, :]
        return Lengths(prompt, np.full(prompt.shape, 1.0 / prompt.size), some.output_tokens)

    short, all_of_them, long = (
        AtBatch.of(some, batch).percentile("ttft", 0.95, observed=lens)[0]
        for lens in (observed(100), None, observed(6000))
    )
    assert short < all_of_them < long


def test_single_tokens_have_no_decode_metrics() -> None:
    some = pairs(Case(prompt=500, output=1))
    assert AtBatch.of(some, half_load(some)).tail("tpot", np.array([1e-5]))[0] == 0.0
    assert AtBatch.of(some, half_load(some)).tail("itl", np.array([1e-5]))[0] == 0.0


def test_experts_give_finite_latencies() -> None:
    some = pairs(Case(), Case(chunked=False), step=experts())
    for metric in METRICS:
        values = AtBatch.of(some, np.array([2.0, 40.0])).percentile(metric, 0.95)
        assert np.isfinite(values).all()
        assert (values < 60.0).all()


def test_an_unknown_metric_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown latency metric 'latency'"):
        AtBatch.of(pairs(Case()), np.array([1.0])).tail("latency", np.array([1.0]))
