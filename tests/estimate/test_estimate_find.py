"""Searches: the value that is found fits, and the next one does not."""

from __future__ import annotations

from typing import Any

import pytest
from estimate_cases import GPT_OSS, H100, H200, LLAMA_8B, LLAMA_70B, R1, VLM_8B, deployed, estimated, fitted

from planner.estimate.answer import LoadKind, Search
from planner.estimate.memory import fits

CASES: list[tuple[str, str, dict[str, Any]]] = [
    (LLAMA_8B, "L4", {"weights": "int4"}),
    (LLAMA_70B, H100, {"tensor": 4, "weights": "fp8"}),
    (R1, H200, {"tensor": 8}),
    (R1, H200, {"attention_data": 8, "expert": 8}),
    (GPT_OSS, H100, {"utilization": 0.93}),
    ("google/gemma-3-27b-it", H100, {}),
]


@pytest.mark.parametrize(("model", "gpu", "asked"), CASES)
def test_the_most_sequences_fit_and_one_more_does_not(model: str, gpu: str, asked: dict[str, Any]) -> None:
    lengths = {"input_tokens": 3000, "output_tokens": 500}
    done = estimated(model, gpu, search=Search.MAX_CONCURRENCY, **asked, **lengths)
    held = fitted(model, gpu, **asked, **lengths)

    assert done.found is not None
    count = int(done.found.value or 0)
    per_group = -(-count // held.deployment.layout.attention_data)
    assert count > 0
    assert per_group * held.sequence_bytes(3500) <= held.budget.kv_pool_bytes * (1 + 1e-9)
    assert (per_group + 1) * held.sequence_bytes(3500) > held.budget.kv_pool_bytes
    assert done.speed is not None
    assert (done.speed.load.kind, done.speed.load.value) == (LoadKind.CONCURRENCY, count)


def test_without_lengths_the_longest_sequences_are_counted_as_engines_do() -> None:
    done = estimated("google/gemma-3-27b-it", H100, search=Search.MAX_CONCURRENCY, max_model_len=65536)

    assert done.found is not None
    assert done.found.value == int(done.fit.budget.max_concurrency)
    assert done.deployment.tokens == 65536


@pytest.mark.parametrize(("model", "gpu", "asked"), [*CASES, (LLAMA_8B, "RTX-3090", {"engine_version": "0.6"})])
def test_the_longest_length_fits_and_one_more_token_does_not(model: str, gpu: str, asked: dict[str, Any]) -> None:
    done = estimated(model, gpu, search=Search.MAX_MODEL_LEN, **asked)
    d = done.deployment

    assert done.found is not None
    assert done.found.value == d.max_model_len == done.longest_context
    assert done.fit.fits
    assert d.max_model_len == d.architecture.max_position or not fits(d.changed(max_model_len=d.max_model_len + 1))


@pytest.mark.parametrize("model", [LLAMA_70B, R1, GPT_OSS, VLM_8B])
def test_the_least_tensor_parallelism_fits_and_less_does_not(model: str) -> None:
    done = estimated(model, H100, search=Search.MIN_TP)

    assert done.found is not None
    assert done.fit.fits
    assert done.found.value == done.deployment.layout.tensor
    assert [row["fits"] for row in done.found.tried] == [False] * (len(done.found.tried) - 1) + [True]
    for row in done.found.tried[:-1]:
        assert not fits(deployed(model, H100, tensor=row["tensor_parallel"]))


def test_a_search_without_an_answer_says_what_was_tried() -> None:
    done = estimated(R1, "T4", search=Search.MIN_TP)

    assert done.found is not None
    assert done.found.value is None
    assert "no tensor-parallel degree fits (TP1 " in done.found.sentence
    assert estimated(R1, "T4", search=Search.MAX_MODEL_LEN).found.value is None  # type: ignore[union-attr]
    assert estimated(R1, "T4", search=Search.MAX_RATE).found.value is None  # type: ignore[union-attr]
    assert estimated(R1, "T4", search=Search.MAX_CONCURRENCY).found.value is None  # type: ignore[union-attr]


@pytest.mark.parametrize("limits", [{}, {"tpot_p95": 0.05}, {"ttft_p95": 0.5}, {"ttft_p95": 2.0, "tpot_p95": 0.03}])
def test_the_largest_rate_holds_its_limits_and_a_larger_one_does_not(limits: dict[str, float]) -> None:
    asked = {"tensor": 4, "weights": "fp8"}
    done = estimated(LLAMA_70B, H100, search=Search.MAX_RATE, limits=limits, **asked)

    assert done.found is not None
    assert done.found.value is not None
    assert done.speed is not None
    times = done.speed.times
    assert times is not None
    for key, limit in limits.items():
        assert getattr(times, f"{key}_s") <= limit * 1.001
    more = estimated(LLAMA_70B, H100, LoadKind.RATE, done.found.value * 1.03, **asked).speed
    assert more is not None
    assert more.times is None or any(getattr(more.times, f"{key}_s") > limit for key, limit in limits.items())


def test_a_limit_that_nothing_holds_has_no_rate() -> None:
    done = estimated(LLAMA_70B, H100, search=Search.MAX_RATE, limits={"ttft_p95": 1e-5}, tensor=4)

    assert done.found is not None
    assert done.found.value is None
    assert done.found.sentence.startswith("no rate holds TTFT p95 of 10 us: even alone TTFT is ")
    assert done.speed is None
    assert done.found.alone is not None
    assert done.found.alone.ttft_p95_s > 0.01
    assert done.limited_by == "compute"


def test_a_failed_search_names_what_a_lone_token_is_short_of() -> None:
    done = estimated(LLAMA_70B, H100, search=Search.MAX_RATE, limits={"tpot_p95": 1e-5}, tensor=4)
    step = estimated(LLAMA_70B, H100, tensor=4).speed

    assert step is not None
    assert done.limited_by == step.limited_by
