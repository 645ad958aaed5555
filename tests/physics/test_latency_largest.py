"""The search for the largest batch: as fine as promised, wherever it starts, and for pools that several kinds share."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from latency_cases import Case, experts, pairs

from planner.physics.latency import AtBatch, Lengths, ceiling, holds_at, idle_miss, largest_batch, largest_within

CASES = (
    Case(replicas=4),
    Case(prompt=200, output=100, slots=64, replicas=4),
    Case(prompt=4000, output=300, replicas=2),
    Case(chunked=False, replicas=8, arrival_cv2=3.0),
    Case(prompt=2500, output=900),
)
ALLOWED = 0.025
STEP = 200.0 ** (1.0 / 4096.0)  # the widest pair of scanned shares, in the steps of the search


def limits(size: int, ttft: float = 0.8, tpot: float = 0.012) -> dict[str, np.ndarray]:
    return {"ttft_p95": np.full(size, ttft), "tpot_p95": np.full(size, tpot)}


@pytest.mark.parametrize("tpot", [0.009, 0.012, 0.02])
def test_one_step_more_misses_a_limit(tpot: float) -> None:
    some = pairs(*CASES)
    asked = limits(some.size, tpot=tpot)
    found = largest_within(ceiling(some), asked)
    inside, outside = (
        np.max(
            [AtBatch.of(some, share * found.limit_batch).tail(key[:4], limit) for key, limit in asked.items()], axis=0
        )
        for share in (1.0, STEP)
    )
    assert found.feasible.all()
    assert (inside <= ALLOWED).all()
    limited = np.array([key in asked for key in found.binding])
    assert limited.any()
    assert (outside[limited] > ALLOWED).all()


def test_the_start_of_the_search_changes_nothing() -> None:
    some = pairs(*CASES)
    top = ceiling(some)
    usual = largest_within(top, limits(some.size))
    for share in (1e-9, 0.01, 0.5, 1.0, 3.0):
        other = largest_within(top, limits(some.size), guess=share * top.batch)
        assert list(other.batch) == list(usual.batch)
        assert list(other.binding) == list(usual.binding)


def test_with_experts_the_search_starts_at_the_top() -> None:
    some = pairs(*CASES, step=experts())
    top = ceiling(some)
    usual = largest_within(top, limits(some.size))
    assert list(largest_within(top, limits(some.size), guess=0.0 * top.batch).batch) == list(usual.batch)


def test_few_pairs_are_searched_as_many_are() -> None:
    """Alone a pair has several batches tried at once, among many others one after the other."""
    many = pairs(*CASES * 40)
    asked = limits(many.size)
    together = largest_within(ceiling(many), asked)
    for n, case in enumerate(CASES):
        alone = largest_within(ceiling(pairs(case)), limits(1))
        assert together.batch[n :: len(CASES)] == pytest.approx(alone.batch[0], rel=1e-12)
        assert set(together.binding[n :: len(CASES)]) == set(alone.binding)


def test_a_ceiling_holds_for_any_number_of_replicas() -> None:
    some = pairs(*CASES)
    index = np.array([3, 0, 4])
    pooled = ceiling(some).pools(index, np.array([2.0, 1.0, 8.0]))
    direct = largest_batch(replace(some.take(index), replicas=np.array([2.0, 1.0, 8.0])), limits(3))
    found = largest_within(pooled, limits(3))
    assert list(found.batch) == list(direct.batch)
    assert (found.requests_per_s <= pooled.requests_per_s * (1.0 + 1e-9)).all()


def test_a_shared_pool_is_as_good_as_its_strictest_member() -> None:
    some = pairs(Case(replicas=4), Case(prompt=200, output=100, replicas=4))
    strict = {"ttft_p95": np.array([0.5, 9.0, 2.0, 0.3, 0.8]), "tpot_p95": np.array([0.02, 0.012, np.inf, 0.03, 0.009])}
    of = np.array([0, 0, 0, 1, 1])
    short = some.take(np.array([1, 0, 1, 0, 1]))
    observed = Lengths(short.prefill_tokens, short.prefill_weights, short.output_tokens)
    members = largest_within(ceiling(some).take(of), strict, observed=observed)
    found = largest_within(ceiling(some), strict, observed=observed, of=of)
    assert list(found.batch) == [members.batch[:3].min(), members.batch[3:].min()]
    assert list(found.binding) == [
        members.binding[members.batch[:3].argmin()],
        members.binding[3 + members.batch[3:].argmin()],
    ]


def test_holding_at_a_batch_is_what_the_search_finds() -> None:
    some = pairs(*CASES)
    top, asked = ceiling(some), limits(some.size)
    found = largest_within(top, asked)
    limited = np.array([key in asked for key in found.binding])
    assert holds_at(top, asked, 0.99 * found.limit_batch).all()
    assert not holds_at(top, asked, 1.01 * found.limit_batch)[limited].any()


def test_idle_replicas_miss_by_what_the_search_says() -> None:
    some = pairs(Case(replicas=4), Case(prompt=4000, replicas=4), Case(kv_slots=0.4))
    asked = {"tpot_p95": np.array([0.001, 0.05, 0.05]), "ttft_p95": np.array([9.0, 0.02, 9.0])}
    binding, best_s = idle_miss(ceiling(some), asked)
    found = largest_batch(some, asked)
    assert list(binding) == list(found.binding) == ["tpot_p95", "ttft_p95", "kv"]
    assert list(best_s) == list(found.best_s)
    assert (best_s[:2] > 0.0).all()
    assert best_s[2] == 0.0
