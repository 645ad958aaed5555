"""Mean flow of a replica: throughput, saturation, and their inverse."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from latency_cases import Case, dense, experts, lengths, pairs

from planner.physics.latency import batch_at, saturation, throughput
from planner.physics.step import step_s

CASES = (
    Case(),
    Case(replicas=4),
    Case(prompt=200, output=100),
    Case(prompt=4000, output=300, slots=64),
    Case(chunked=False),
    Case(prompt=500, output=1),
    Case(prompt=8000, output=30, slots=256),
)


@pytest.mark.parametrize("share", [1e-4, 0.1, 0.5, 0.9, 0.999])
def test_batch_at_inverts_throughput(share: float) -> None:
    some = pairs(*CASES)
    rate = share * saturation(some).requests_per_s
    assert throughput(some, batch_at(some, rate)).requests_per_s == pytest.approx(rate, rel=1e-8)


def test_rates_above_saturation_return_the_batch_at_saturation() -> None:
    some = pairs(*CASES)
    top = saturation(some)
    assert batch_at(some, 2.0 * top.requests_per_s) == pytest.approx(top.batch)


def test_a_step_without_prompt_work_is_the_decode_step() -> None:
    """Prompts of one token hide under the weight read: the flow is `B / (E[o - 1] f(B))`."""
    case = Case(prompt=1, spread=0.0, output=200)
    batch = np.array([32.0])
    expected = float(np.asarray(step_s(dense(), 32.0, 32.0, 1.0 + 200.0 / 2.0)))
    flow = throughput(pairs(case), batch)
    assert flow.mean_step_s[0] == pytest.approx(expected, rel=2e-3)
    assert flow.requests_per_s[0] == pytest.approx(32.0 / (199.0 * flow.mean_step_s[0]))


def test_prompts_per_step_do_not_depend_on_the_step_time() -> None:
    slow = replace(pairs(Case()), step_factor=np.array([3.0]))
    batch = np.array([20.0])
    quick, slowed = throughput(pairs(Case()), batch), throughput(slow, batch)
    assert slowed.prompts_per_step == pytest.approx(quick.prompts_per_step)
    assert slowed.requests_per_s == pytest.approx(quick.requests_per_s / 3.0)


def test_the_token_budget_bounds_a_step() -> None:
    """With long prompts the tokens of a mean step reach the budget before the slots run out."""
    case = Case(prompt=8000, output=30, slots=256)
    top = saturation(pairs(case))
    flow = throughput(pairs(case), top.batch)
    mean_prompt = lengths(8000, 1.0).mean()
    assert top.batch[0] < 256
    assert top.batch[0] + flow.prompts_per_step[0] * mean_prompt == pytest.approx(case.budget)
    assert flow.prompt_utilization[0] == pytest.approx(1.0, rel=1e-3)


def test_single_token_outputs_saturate_at_the_prompt_server() -> None:
    case = Case(prompt=512, spread=0.0, output=1, budget=2048)
    top = saturation(pairs(case))
    full_step = float(np.asarray(step_s(dense(), 2048.0, 0.0, 0.0, 2048.0, 512.0))) * dense().prefill_factor
    assert top.requests_per_s[0] == pytest.approx(4.0 / full_step, rel=1e-6)


def test_the_kv_pool_binds_like_slots() -> None:
    by_kv, by_slots = pairs(Case(kv_slots=40.0)), pairs(Case(slots=40))
    assert saturation(by_kv).requests_per_s == pytest.approx(saturation(by_slots).requests_per_s)


def test_experts_make_the_first_prompt_token_dear_and_never_break_the_flow() -> None:
    some = pairs(Case(), Case(chunked=False), step=experts())
    flow = throughput(some, np.array([4.0, 4.0]))
    assert np.isfinite(flow.requests_per_s).all()
    assert (flow.requests_per_s > 0).all()


def test_pipeline_streams_multiply_the_flow_of_one_stream() -> None:
    single = pairs(Case(slots=64))
    double = replace(pairs(Case(slots=128)), step=replace(single.step, streams=np.array([2.0])))
    batch = np.array([50.0])
    assert throughput(double, batch).requests_per_s == pytest.approx(2.0 * throughput(single, batch / 2).requests_per_s)
    assert saturation(double).batch == pytest.approx(2.0 * saturation(single).batch)


def test_more_batch_never_lowers_the_flow() -> None:
    some = pairs(*CASES)
    batches = saturation(some).batch * np.linspace(0.02, 1.0, 30)[:, None]
    rates = throughput(some, batches).requests_per_s
    assert (np.diff(rates, axis=0) > -1e-9 * rates[1:]).all()
