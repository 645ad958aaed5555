"""Speed: parts sum to the whole, loads relate to each other, the band holds the middle, and scarcity is named."""

from __future__ import annotations

from typing import Any

import pytest
from estimate_cases import CATALOG, GPT_OSS, H100, H200, LLAMA_8B, LLAMA_70B, R1, deployed, estimated

from planner.estimate.answer import Load, LoadKind, Speed
from planner.estimate.estimate import estimate

ASKED: dict[str, Any] = {"tensor": 4, "weights": "fp8"}
LOADS = [(LoadKind.BATCH, 16.0), (LoadKind.CONCURRENCY, 64.0), (LoadKind.RATE, 2.0), (LoadKind.MAX, 0.0)]


def speed(model: str, gpu: str, kind: LoadKind = LoadKind.BATCH, value: float = 1.0, **asked: Any) -> Speed:
    """Return the speed of a deployment that fits."""
    found = estimated(model, gpu, kind, value, **asked).speed
    assert found is not None
    return found


@pytest.mark.parametrize(("kind", "value"), LOADS)
@pytest.mark.parametrize(
    ("model", "gpu", "asked"), [(LLAMA_70B, H100, ASKED), (R1, H200, {"tensor": 8}), (LLAMA_8B, "L40S", {})]
)
def test_the_parts_of_a_step_sum_to_it(
    model: str, gpu: str, asked: dict[str, Any], kind: LoadKind, value: float
) -> None:
    found = speed(model, gpu, kind, value, **asked)

    assert sum(found.step_parts_s.values()) == found.step_s
    assert sum(found.resource_s.values()) == pytest.approx(found.step_s, rel=1e-9)
    assert all(part >= 0.0 for part in found.step_parts_s.values())


def test_a_step_is_what_a_token_takes_when_nothing_queues() -> None:
    found = speed(LLAMA_70B, H100, value=8.0, **ASKED)

    assert found.times is not None
    assert found.times.tpot_p50_s == pytest.approx(found.step_s, rel=1e-9)
    assert found.times.output_tokens_per_s == pytest.approx(8 / found.step_s, rel=1e-9)


@pytest.mark.parametrize(("kind", "value"), LOADS)
def test_the_band_holds_the_middle(kind: LoadKind, value: float) -> None:
    sure = speed(LLAMA_70B, H100, kind, value, **ASKED).sureness

    assert sure.low is not None
    assert sure.best is not None
    assert sure.high is not None
    if kind is not LoadKind.MAX:
        assert sure.low.tpot_p50_s < sure.best.tpot_p50_s < sure.high.tpot_p50_s
        assert sure.low.ttft_p95_s < sure.best.ttft_p95_s < sure.high.ttft_p95_s
    else:
        assert sure.low.output_tokens_per_s > sure.best.output_tokens_per_s > sure.high.output_tokens_per_s


def test_confidence_moves_between_the_ends() -> None:
    done = [
        estimate(deployed(LLAMA_70B, H100, **ASKED), Load(LoadKind.BATCH, 1.0, c), CATALOG).speed
        for c in (0.5, 0.8, 0.9)
    ]
    steps = [s.step_s for s in done if s is not None]

    assert steps[0] < steps[1] < steps[2]
    assert done[0] is not None
    assert done[0].sureness.best is not None
    assert steps[0] == pytest.approx(done[0].sureness.best.tpot_p50_s)
    assert done[2] is not None
    assert done[2].sureness.high is not None
    assert steps[2] == pytest.approx(done[2].sureness.high.tpot_p50_s)


def test_more_in_flight_is_more_throughput_and_slower_tokens() -> None:
    few, many = (speed(LLAMA_70B, H100, LoadKind.CONCURRENCY, n, **ASKED) for n in (4.0, 64.0))

    assert few.times is not None
    assert many.times is not None
    assert few.times.output_tokens_per_s < many.times.output_tokens_per_s
    assert few.times.tpot_p50_s < many.times.tpot_p50_s
    assert few.batch <= 4.0
    assert many.batch <= 64.0


def test_a_lone_request_in_flight_is_a_batch_of_one() -> None:
    alone, step = speed(LLAMA_70B, H100, LoadKind.CONCURRENCY, 1.0, **ASKED), speed(LLAMA_70B, H100, **ASKED)

    assert alone.times is not None
    assert step.times is not None
    assert alone.times.tpot_p50_s == pytest.approx(step.times.tpot_p50_s, rel=0.1)
    assert alone.times.ttft_p50_s == pytest.approx(step.times.ttft_p50_s, rel=0.35)


def test_a_rate_beyond_the_largest_is_said_and_not_predicted() -> None:
    most = speed(LLAMA_70B, H100, LoadKind.MAX, 0.0, **ASKED)
    over = speed(LLAMA_70B, H100, LoadKind.RATE, 2 * (most.requests_per_s or 0.0), **ASKED)

    assert most.requests_per_s == most.most_requests_per_s
    assert over.times is None
    assert any("queues grow without end" in note for note in over.notes)
    assert most.times is not None


def test_throughput_is_rate_times_output() -> None:
    found = speed(LLAMA_70B, H100, LoadKind.RATE, 2.0, **ASKED)

    assert found.times is not None
    assert found.times.output_tokens_per_s == pytest.approx(2.0 * 256)


@pytest.mark.parametrize(
    ("model", "gpu", "kind", "value", "asked", "scarce"),
    [
        (LLAMA_70B, H100, LoadKind.BATCH, 1.0, {"tensor": 4}, "bandwidth"),
        (R1, H200, LoadKind.BATCH, 1.0, {"tensor": 8}, "overhead"),
        (LLAMA_8B, H100, LoadKind.MAX, 0.0, {"input_tokens": 8000, "output_tokens": 10}, "compute"),
        (LLAMA_70B, "L40S", LoadKind.CONCURRENCY, 64.0, {"tensor": 8}, "interconnect"),
        (LLAMA_70B, H100, LoadKind.CONCURRENCY, 2000.0, {"tensor": 4, "input_tokens": 8000}, "capacity"),
        (LLAMA_8B, H100, LoadKind.CONCURRENCY, 64.0, {"max_num_seqs": 8}, "queueing"),
    ],
)
def test_what_is_scarce(model: str, gpu: str, kind: LoadKind, value: float, asked: dict[str, Any], scarce: str) -> None:
    found = speed(model, gpu, kind, value, **asked)

    assert found.limited_by == scarce
    assert found.lever


@pytest.mark.parametrize(
    ("asked", "scarce", "words"),
    [
        ({"tensor": 8, "input_tokens": 30_000, "output_tokens": 256}, "capacity", "the KV cache holds"),
        ({"tensor": 8, "max_num_seqs": 8}, "queueing", "--max-num-seqs admits 8 of them"),
    ],
)
def test_a_step_has_no_more_sequences_than_run(asked: dict[str, Any], scarce: str, words: str) -> None:
    found, huge = (speed(LLAMA_70B, H100, value=value, weights="fp8", **asked) for value in (4096.0, 1e9))

    assert found.batch == min(found.held, asked.get("max_num_seqs", 1e9))
    assert (found.step_s, found.times, found.limited_by) == (huge.step_s, huge.times, huge.limited_by)
    assert found.limited_by == scarce
    assert words in found.because
    assert any("the engine queues the rest silently" in note for note in found.notes)


@pytest.mark.parametrize(("kind", "value"), LOADS)
def test_why_a_resource_is_scarce_is_said(kind: LoadKind, value: float) -> None:
    because = speed(LLAMA_70B, H100, kind, value, **ASKED).because

    assert because.startswith("most of a decode step" if kind is LoadKind.BATCH else "most of the mean step; no limits")


def test_pipelines_decode_one_sequence_at_the_speed_of_one() -> None:
    one, two = (speed(LLAMA_70B, H100, pipeline=n, weights="fp8", tensor=2) for n in (1, 2))

    assert two.step_s > 0.9 * one.step_s


@pytest.mark.parametrize(
    ("model", "gpu", "asked", "words"),
    [
        (LLAMA_8B, "A100-SXM-80GB", {"weights": "fp8"}, "has no fp8 units"),
        (
            LLAMA_8B,
            "B300-SXM-288GB",
            {"weights": "int8"},
            "int8 on B300-SXM-288GB reaches 154 TFLOPS, 7 % of bf16 (2,250)",
        ),
        (LLAMA_8B, "GB300", {"weights": "int8"}, "reaches 165 TFLOPS"),
        (GPT_OSS, H200, {}, "has no fp4 units"),
        (LLAMA_8B, "V100-SXM2-32GB", {}, "has no bf16 units"),
        (LLAMA_8B, H100, {"draft": "llama-3.2-1b"}, "speculative decoding is not modelled"),
    ],
)
def test_what_formats_cost_is_said(model: str, gpu: str, asked: dict[str, Any], words: str) -> None:
    assert any(words in note for note in estimated(model, gpu, **asked).notes)


def test_formats_with_units_of_their_own_need_no_note() -> None:
    notes = estimated(LLAMA_8B, H100, weights="fp8").notes

    assert not any("units" in note or "TFLOPS" in note for note in notes)


@pytest.mark.parametrize("kind", [LoadKind.RATE, LoadKind.MAX, LoadKind.CONCURRENCY])
@pytest.mark.parametrize(("tokens_in", "tokens_out"), [(1, 1), (32767, 1), (1, 32767), (16000, 16768)])
def test_odd_lengths_give_finite_answers(kind: LoadKind, tokens_in: int, tokens_out: int) -> None:
    found = speed(LLAMA_8B, "L4", kind, 3.0, weights="int4", input_tokens=tokens_in, output_tokens=tokens_out)
    numbers = [found.step_s, found.batch, found.held, found.waiting_s, *found.resource_s.values()]
    if found.times is not None:
        numbers += [found.times.ttft_p95_s, found.times.tpot_p95_s, found.times.output_tokens_per_s]

    assert all(0.0 <= number < 1e9 for number in numbers)


def test_two_requests_in_flight_wait_for_no_more_than_one_other() -> None:
    found = speed(LLAMA_70B, H100, LoadKind.CONCURRENCY, 2.0, tensor=8, weights="fp8", input_tokens=100_000)
    alone = speed(LLAMA_70B, H100, tensor=8, weights="fp8", input_tokens=100_000)

    assert found.times is not None
    assert alone.times is not None
    assert found.times.ttft_p95_s < 3.0 * alone.times.ttft_p95_s
