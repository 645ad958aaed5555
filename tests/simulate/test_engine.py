"""The engine that jumps: equal to the one that steps, and to what queueing theory says of its limits."""

from __future__ import annotations

import numpy as np
import pytest
from engine_cases import Case, random_case
from hypothesis import given
from hypothesis import strategies as st
from naive import replay_by_steps

from planner.simulate.pool import Replay, replay
from planner.simulate.types import Batching, EngineRules, Requests, Router, StepCosts

SCENARIOS = 400


def jumped(case: Case) -> Replay:
    return replay(case.costs, case.rules, case.requests, case.engines, case.router, case.failure)


@pytest.mark.parametrize("first", range(0, SCENARIOS, 50))
def test_jumps_end_where_steps_do(first: int) -> None:
    """Admission, first token, end, preemptions and engine of every request are the same, without any tolerance."""
    for seed in range(first, first + 50):
        case = random_case(seed)
        fail = None if case.failure is None else (case.failure.at_ps, case.failure.engines[0])
        by_steps = replay_by_steps(case.costs, case.rules, case.requests, case.engines, case.router, fail)

        assert jumped(case).served == by_steps, seed


def test_the_random_pools_are_no_easy_ones() -> None:
    cases = [random_case(seed) for seed in range(SCENARIOS)]
    runs = [jumped(case) for case in cases]

    assert sum(sum(run.served.preemptions) for run in runs) > 400
    assert {(c.rules.batching, c.router, c.failure is not None) for c in cases} == {
        (batching, router, fails) for batching in Batching for router in Router for fails in (False, True)
    }


@pytest.mark.parametrize("batching", [Batching.CHUNKED, Batching.PROMPTS_FIRST])
def test_every_token_is_decoded_once(batching: Batching) -> None:
    """Each request decodes all tokens but its first, and one fewer for each time its prompt is computed again."""
    for seed in range(SCENARIOS):
        case = random_case(seed)
        if case.rules.batching is not batching or case.failure is not None:
            continue
        run = jumped(case)
        decoded = sum(o.decoded_tokens for o in run.occupancy)
        due = sum(case.requests.output_tokens) - len(case.requests)

        assert due - sum(run.served.preemptions) <= decoded <= due


@given(st.integers(0, 10_000))
def test_one_engine_is_the_same_under_every_router(seed: int) -> None:
    case = random_case(seed)
    runs = [replay(case.costs, case.rules, case.requests, 1, router).served for router in Router]

    assert runs[0] == runs[1] == runs[2]


@given(st.integers(0, 10_000))
def test_requests_end_in_order_of_what_happens_to_them(seed: int) -> None:
    case = random_case(seed)
    served = jumped(case).served

    for n in range(len(case.requests)):
        assert case.requests.arrival_ps[n] <= served.admitted_ps[n] < served.first_ps[n] <= served.finish_ps[n]
        assert (served.first_ps[n] == served.finish_ps[n]) == (case.requests.output_tokens[n] == 1)


def queue(arrival_ps: list[int], prompts: list[int], answers: list[int]) -> Requests:
    nothing = [0] * len(arrival_ps)
    return Requests(arrival_ps, prompts, answers, nothing, nothing, nothing)


def single_server(per_token_ps: int) -> tuple[StepCosts, EngineRules]:
    """Return an engine that serves prompts of one token of output one by one, each in one step."""
    table = [per_token_ps * n for n in range(200_000)]
    costs = StepCosts(decode_ps=[0, 1], prompt_ps=table, alone_ps=table, context_ps=0, attended_ps=0)
    return costs, EngineRules(Batching.CHUNKED, 1, 199_999, 100_000, 0)


def poisson(draw: np.random.Generator, rate_per_ps: float, count: int) -> list[int]:
    return np.rint(np.cumsum(draw.exponential(1.0 / rate_per_ps, count))).astype(np.int64).tolist()


@pytest.mark.parametrize("load", [0.5])
def test_mean_wait_of_a_queue_with_equal_service(load: float) -> None:
    r"""M/D/1: `\rho s / (2 (1 - \rho))` (Kleinrock, Queueing Systems I, 5.2)."""
    service = 1_000_000
    costs, rules = single_server(1000)
    waits = []
    for seed in range(8):
        arrivals = poisson(np.random.default_rng(seed), load / service, 20_000)
        served = replay(costs, rules, queue(arrivals, [1000] * 20_000, [1] * 20_000), 1, Router.ROUND_ROBIN).served
        waits.append(float(np.mean(np.array(served.admitted_ps[2000:]) - np.array(arrivals[2000:]))))

    assert within(waits, load * service / (2.0 * (1.0 - load)))


@pytest.mark.parametrize("load", [0.8])
def test_mean_wait_of_a_queue_with_exponential_service(load: float) -> None:
    r"""M/M/1: `\rho s / (1 - \rho)`, with prompts of exponential length."""
    mean_tokens = 2000
    costs, rules = single_server(1000)
    waits = []
    for seed in range(8):
        draw = np.random.default_rng(seed)
        arrivals = poisson(draw, load / (1000 * mean_tokens), 20_000)
        prompts = np.clip(np.rint(draw.exponential(mean_tokens, 20_000)), 1, 199_000).astype(int).tolist()
        served = replay(costs, rules, queue(arrivals, prompts, [1] * 20_000), 1, Router.ROUND_ROBIN).served
        waits.append(float(np.mean(np.array(served.admitted_ps[2000:]) - np.array(arrivals[2000:]))))

    assert within(waits, load * 1000 * mean_tokens / (1.0 - load))


@pytest.mark.parametrize(("slots", "load"), [(4, 0.7), (16, 0.9)])
def test_mean_wait_for_a_slot(slots: int, load: float) -> None:
    """M/M/c: Erlang's C formula, with steps that take the same whatever is in them and answers of geometric length."""
    step, mean_tokens = 1000, 500
    costs = StepCosts([step] * (slots + 1), [0] * 4096, [0] * 4096, 0, 0)
    rules = EngineRules(Batching.CHUNKED, slots, 4095, 1_000_000, 0)
    service = step * mean_tokens
    waits = []
    for seed in range(8):
        draw = np.random.default_rng(seed)
        arrivals = poisson(draw, load * slots / service, 20_000)
        answers = draw.geometric(1.0 / mean_tokens, 20_000).tolist()
        served = replay(costs, rules, queue(arrivals, [1] * 20_000, answers), 1, Router.ROUND_ROBIN).served
        late = np.array(served.admitted_ps[2000:]) - np.array(arrivals[2000:])
        waits.append(float(np.mean(np.maximum(late - step / 2, 0.0))))  # half a step goes by until the next boundary

    assert within(waits, erlang_c(slots, load * slots) * service / (slots * (1.0 - load)), slack=0.02)


def erlang_c(servers: int, offered: float) -> float:
    blocked = 1.0
    for n in range(1, servers + 1):
        blocked = offered * blocked / (n + offered * blocked)
    return blocked / (1.0 - offered / servers * (1.0 - blocked))


def within(values: list[float], expected: float, slack: float = 0.0) -> bool:
    """Tell whether a mean is within three standard errors of what is expected, and the errors small enough to say so."""
    error = float(np.std(values, ddof=1)) / np.sqrt(len(values))
    assert error < 0.06 * expected
    return abs(float(np.mean(values)) - expected) <= 3.0 * error + slack * expected
