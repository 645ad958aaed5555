"""Whole loads: closed loop and offline runs obey the laws that any queue obeys."""

from __future__ import annotations

import heapq
import math
import random
import statistics

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from speed_cases import DEEPSEEK_R1, GPT_OSS_120B, H100, H200, LLAMA_8B, LLAMA_70B, constants

from planner.physics.loads import (
    ClosedLoop,
    closed_loop,
    lone_prompt_s,
    marginal_prefill_s,
    max_throughput,
    prompt_s,
    slot_waits,
)
from planner.physics.speed import StepCoefficients, coefficients, stack
from planner.physics.types import Layout

BUDGET = 8192.0
SHAPES = (
    coefficients(LLAMA_8B, H100, Layout(), "fp8", "fp8", "vllm_new", constants()),
    coefficients(LLAMA_70B, H200, Layout(tensor=2), "fp8", "fp8", "trt_pt", constants()),
    coefficients(LLAMA_70B, H100, Layout(tensor=4, pipeline=2), "bf16", "bf16", "vllm_old", constants()),
    coefficients(GPT_OSS_120B, H100, Layout(tensor=4), "mxfp4", "bf16", "vllm_new", constants()),
    coefficients(DEEPSEEK_R1, H200, Layout(attention_data=8, expert=8), "fp8", "fp8", "modern", constants()),
)
SHAPE = st.sampled_from(SHAPES)
PROMPT = st.floats(32.0, 16384.0)
OUTPUT = st.floats(16.0, 4096.0)
examples = settings(max_examples=100, derandomize=True, deadline=None)


def loop(c: StepCoefficients, users: float, prompt: float, output: float, cap: float = 1e9) -> ClosedLoop:
    return closed_loop(c, users, prompt, output, cap, BUDGET, constants().burst_weight)


@examples
@given(SHAPE, st.floats(1.0, 512.0), PROMPT, OUTPUT)
def test_decoding_sequences_obey_littles_law(c: StepCoefficients, users: float, prompt: float, output: float) -> None:
    answer = loop(c, users, prompt, output)
    assert answer.batch <= users
    assert answer.batch == pytest.approx(answer.requests_per_s * output * answer.tpot_s)
    assert answer.output_tokens_per_s == pytest.approx(answer.requests_per_s * output)


@pytest.mark.parametrize("c", SHAPES)
def test_users_are_either_waiting_for_a_first_token_or_decoding(c: StepCoefficients) -> None:
    users, output = 64.0, 500.0
    answer = loop(c, users, 1000.0, output)
    idle_start = closed_loop(c, users, 1000.0, output, 1e9, BUDGET, 0.0)
    path_s = float(c.request_s) + 0.1 * (users - 1) / 2 * float(answer.prompt_s)
    residence = idle_start.ttft_mean_s - path_s + output * answer.tpot_s
    assert users == pytest.approx(answer.requests_per_s * residence, rel=0.03)


@examples
@given(SHAPE, st.floats(1.0, 64.0), st.floats(1.0, 4.0), st.floats(512.0, 16384.0), st.floats(256.0, 4096.0))
def test_first_tokens_wait_longer_with_more_users(
    c: StepCoefficients, users: float, more: float, prompt: float, output: float
) -> None:
    few, many = loop(c, users, prompt, output), loop(c, users * more, prompt, output)
    assert many.ttft_mean_s >= few.ttft_mean_s * (1 - 1e-3)
    assert few.ttft_mean_s >= few.ttft_median_s > lone_prompt_s(c, prompt)


def test_users_beyond_memory_wait_for_a_place() -> None:
    c = SHAPES[0]
    roomy, tight = loop(c, 256.0, 1000.0, 500.0), loop(c, 256.0, 1000.0, 500.0, cap=64.0)
    assert tight.batch <= 64.0
    assert tight.ttft_mean_s > (256 - 64) / tight.requests_per_s
    assert tight.ttft_mean_s > roomy.ttft_mean_s
    assert tight.output_tokens_per_s < roomy.output_tokens_per_s


def test_equal_lengths_stay_in_step() -> None:
    c = SHAPES[0]
    uneven = closed_loop(c, 64.0, 1000.0, 500.0, 1e9, BUDGET, constants().burst_weight)
    even = closed_loop(c, 64.0, 1000.0, 500.0, 1e9, BUDGET, constants().burst_weight, equal_lengths=True)
    assert even.ttft_median_s == even.ttft_mean_s
    assert even.ttft_mean_s - uneven.ttft_mean_s == pytest.approx(
        (1 - 0.1 - 0.2 * constants().burst_weight) * 63 / 2 * even.prompt_s
    )


@examples
@given(SHAPE, st.floats(1.0, 1024.0), st.floats(1.0, 4.0), PROMPT, OUTPUT)
def test_a_larger_cap_never_slows_full_waves(
    c: StepCoefficients, cap: float, more: float, prompt: float, output: float
) -> None:
    small, large = (float(max_throughput(c, b, prompt, output, BUDGET, b).step_s / b) for b in (cap, cap * more))
    assert large <= small * (1 + 1e-9)


def test_an_offline_run_is_full_waves_and_a_rest() -> None:
    c = SHAPES[1]
    whole = max_throughput(c, 100.0, 500.0, 200.0, BUDGET, 300.0)
    expected = 300 * whole.prompt_s + 200 * 3 * whole.step_s
    assert whole.duration_s == pytest.approx(expected)
    uneven = max_throughput(c, 100.0, 500.0, 200.0, BUDGET, 310.0)
    assert whole.duration_s < uneven.duration_s < whole.duration_s + 10 * whole.prompt_s + 200 * whole.step_s
    alone = max_throughput(c, 100.0, 500.0, 200.0, BUDGET, 10.0)
    assert alone.batch == 10.0


def test_prompt_chunks_respect_the_budget() -> None:
    c = SHAPES[0]
    chunk = marginal_prefill_s(c, 8.0, 30050.0, 2048.0, 30000.0)
    assert prompt_s(c, 8.0, 30000.0, 100.0, 2048.0) == pytest.approx(chunk * 30000 / 2048)
    assert prompt_s(c, 8.0, 1000.0, 1000.0, 8192.0) == marginal_prefill_s(c, 8.0, 1500.0, 1000.0, 1000.0)
    crowded = marginal_prefill_s(c, 64.0, 1008.0, 4000.0, 1000.0) / 4
    assert prompt_s(c, 64.0, 1000.0, 16.0, 8192.0) == pytest.approx(crowded)


def test_arrays_of_pairs_give_what_each_gives_alone() -> None:
    pairs = stack(SHAPES)
    users = np.linspace(4.0, 64.0, len(SHAPES))
    together = closed_loop(pairs, users, 700.0, 300.0, 48.0, BUDGET, constants().burst_weight)
    for index, c in enumerate(SHAPES):
        alone = closed_loop(c, float(users[index]), 700.0, 300.0, 48.0, BUDGET, constants().burst_weight)
        assert together.ttft_mean_s[index] == pytest.approx(alone.ttft_mean_s)
        assert together.output_tokens_per_s[index] == pytest.approx(alone.output_tokens_per_s)
    offline = max_throughput(pairs, users, 700.0, 300.0, BUDGET)
    assert offline.duration_s.shape == users.shape


RUNS = 20


def simulated_waits(requests: int, slots: int, mean_s: float, arriving: float, run: int) -> list[float]:
    """Wait of every request for one of `slots`, served in order of arrival, with memoryless times in the slot."""
    draw = random.Random(run)
    free = [0.0] * slots
    waits = []
    for index in range(requests):
        arrival = index / arriving
        start = max(arrival, heapq.heappop(free))
        heapq.heappush(free, start + draw.expovariate(1.0 / mean_s))
        waits.append(start - arrival)
    return waits


@pytest.mark.parametrize(
    ("requests", "slots", "mean_s", "arriving"),
    [(1000, 256, 18.7, 32.0), (1000, 256, 18.7, 1000.0), (1000, 256, 18.7, math.inf), (2000, 64, 5.0, 16.0)],
)
def test_waits_for_a_slot_are_those_of_a_simulated_queue(
    requests: int, slots: int, mean_s: float, arriving: float
) -> None:
    runs = [simulated_waits(requests, slots, mean_s, arriving, run) for run in range(RUNS)]
    mean, median = slot_waits(float(requests), float(slots), slots / mean_s, arriving)
    assert mean == pytest.approx(statistics.mean(statistics.mean(waits) for waits in runs), rel=0.04)
    assert median == pytest.approx(statistics.mean(statistics.median(waits) for waits in runs), rel=0.04)


def test_nobody_waits_for_a_slot_where_all_fit_or_all_are_served() -> None:
    assert slot_waits(100.0, 100.0, 5.0, math.inf) == (0.0, 0.0)
    assert slot_waits(1000.0, 100.0, 5.0, 4.0) == (0.0, 0.0)
