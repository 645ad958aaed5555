"""The five worked cases: step times by part, capacity, cost of prompts, throughput."""

from __future__ import annotations

import pytest
from speed_cases import WORKED, Worked, constants

from planner.physics.loads import batch_cap, closed_loop, max_throughput
from planner.physics.speed import StepCoefficients, coefficients, step_parts

BUDGET = 8192.0
TOLERANCE = 0.02
ROUNDING_MS = 0.005
"""The reference's own offsets below 0.05 are printed as zero: a part of a few microseconds may differ by that much."""

CASES = pytest.mark.parametrize("case", WORKED.values(), ids=WORKED.keys())


def folded(case: Worked) -> StepCoefficients:
    return coefficients(case.arch, case.device, case.layout, case.weights, case.kv, case.engine_class, constants())


def capacity(case: Worked) -> float:
    return batch_cap(
        case.arch, case.device, case.layout, case.weights, case.kv, constants(),
        case.prompt_tokens, case.output_tokens, reserving=case.reserving, max_sequences=case.max_sequences,
    )  # fmt: skip


@CASES
def test_parts_of_the_step(case: Worked) -> None:
    context = case.prompt_tokens + case.output_tokens / 2
    parts = step_parts(folded(case), case.batch, case.batch, context)
    seconds = (
        parts.attention_weights_s, parts.ffn_s, parts.head_s, parts.experts_s, parts.kv_s,
        parts.collectives_s, parts.layers_s, parts.host_s,
    )  # fmt: skip
    for measured, expected in zip(seconds, case.parts_ms, strict=True):
        assert measured * 1e3 == pytest.approx(expected, rel=TOLERANCE, abs=ROUNDING_MS)
    assert parts.total_s * 1e3 == pytest.approx(case.step_ms, rel=TOLERANCE)


@CASES
def test_sequences_that_memory_holds(case: Worked) -> None:
    assert capacity(case) == pytest.approx(case.cap, rel=TOLERANCE)


@CASES
def test_batch_prompt_cost_and_throughput(case: Worked) -> None:
    c, lengths = folded(case), (case.prompt_tokens, case.output_tokens)
    if case.concurrency is None:
        load = max_throughput(c, capacity(case), *lengths, BUDGET)
    else:
        load = closed_loop(c, case.concurrency, *lengths, capacity(case), BUDGET, constants().burst_weight)
    assert load.batch == pytest.approx(case.batch, rel=TOLERANCE)
    assert load.prompt_s * 1e3 == pytest.approx(case.prompt_ms, rel=TOLERANCE)
    assert load.output_tokens_per_s == pytest.approx(case.tokens_per_s, rel=TOLERANCE)
