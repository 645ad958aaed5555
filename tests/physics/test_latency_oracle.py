"""The rate that the closed form allows against the rate that simulated replicas achieve, with stored seeds."""

from __future__ import annotations

import numpy as np
import pytest
from latency_cases import Case, achievable, dense, pairs, simulated
from simulation_oracle import Requests, StepTable, sample, simulate

from planner.physics.latency import AtBatch, batch_at, largest_batch, saturation, throughput

SEED = 7
REQUESTS = 6000

# Allowed over achievable; the closed form constrains, so it is to err on the low side.
LOWEST, HIGHEST = 0.5, 1.15

CELLS = [
    (Case(spread=0.5, slots=64), "ttft", 0.15),
    (Case(), "tpot", 0.012),
    (Case(replicas=4), "ttft", 0.25),
    (Case(replicas=4), "tpot", 0.012),
    (Case(prompt=200, output=100, replicas=4), "tpot", 0.012),
    (Case(prompt=200, output=100, spread=0.5, slots=64), "ttft", 0.1),
    (Case(prompt=4000, output=300, replicas=4, slots=64), "tpot", 0.018),
    (Case(prompt=4000, output=300, spread=0.5), "ttft", 1.0),
    (Case(replicas=4, chunked=False), "itl", 0.06),
    (Case(replicas=4), "e2e", 6.0),
]


@pytest.mark.parametrize(("case", "metric", "limit_s"), CELLS)
def test_the_allowed_rate_is_near_the_achievable_one(case: Case, metric: str, limit_s: float) -> None:
    allowed = largest_batch(pairs(case), {f"{metric}_p95": np.array([limit_s])}).requests_per_s[0]
    ratio = allowed / achievable(case, metric, 0.95, limit_s, REQUESTS, SEED, steps=5)
    assert LOWEST <= ratio <= HIGHEST


@pytest.mark.parametrize("case", [Case(replicas=2), Case(prompt=4000, output=300), Case(prompt=200, chunked=False)])
def test_the_mean_step_is_the_simulated_one(case: Case) -> None:
    some = pairs(case)
    rate = 0.5 * saturation(some).requests_per_s
    step = throughput(some, batch_at(some, rate)).mean_step_s[0]
    assert step == pytest.approx(simulated(case, float(rate[0]), "tpot", 0.5, REQUESTS, SEED), rel=0.15)


def test_unbiased_percentiles_are_near_the_simulated_ones() -> None:
    case = Case(replicas=4)
    some = pairs(case)
    rate = 0.6 * saturation(some).requests_per_s
    batch = batch_at(some, rate)
    for metric, tolerance in (("tpot", 0.1), ("itl", 0.1), ("e2e", 0.1), ("ttft", 0.3)):
        measured = simulated(case, float(rate[0]), metric, 0.95, REQUESTS, SEED)
        assert AtBatch.of(some, batch).percentile(metric, 0.95, halved=False)[0] == pytest.approx(
            measured, rel=tolerance
        )


def test_the_simulator_follows_a_schedule_made_by_hand() -> None:
    """Two requests, chunks of 100: the second waits for its first chunk until the first prompt is done."""
    table = StepTable([1.0 + 0.5 * batch for batch in range(3)], 0.0, [[0.0, 3.2, 6.4, 9.6, 12.8, 16.0]] * 3)
    requests = Requests(np.array([0.0, 0.5]), [150, 60], [2, 1])
    served = simulate(table, requests, slots=2, budget=100)
    # Step 1: 100 tokens, 1 + 10 s. Step 2: the other 50 and 50 of the second, 1 + 10 s. Step 3: one sequence decodes
    # (1.5 s) beside the last 10 tokens (1 s).
    assert served.first_s == pytest.approx([22.0, 24.5])
    assert served.finish_s == pytest.approx([24.5, 24.5])


def test_the_simulator_serves_every_token_once() -> None:
    case = Case(slots=32)
    requests = sample(SEED, 500, np.array([100.0, 900.0]), np.array([1.0, 30.0])).at_rate(4.0)
    for chunked in (True, False):
        served = simulate(
            StepTable.tabulate(dense(), 32, 2048, 500.0), requests, slots=case.slots, budget=2048, chunked=chunked
        )
        assert sum(count for _, count in served.gaps) == sum(requests.output_tokens) - 500
        assert (served.first_s > requests.arrival_s).all()
        assert (served.finish_s >= served.first_s).all()


def test_a_single_slot_serves_in_order_of_arrival() -> None:
    """One slot and one token: the simulator is the single-server queue, mean wait `rho s / (2 (1 - rho))`."""
    table = StepTable([0.0, 0.0], 0.0, [[0.0, 1.0, 1.0]] * 2)
    requests = sample(3, 40_000, np.array([32.0]), np.array([1.0])).at_rate(0.6)
    served = simulate(table, requests, slots=1, budget=64)
    wait = (served.first_s - requests.arrival_s).mean() - 1.0
    assert wait == pytest.approx(0.6 / (2.0 * 0.4), rel=0.05)
