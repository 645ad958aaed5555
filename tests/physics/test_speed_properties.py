"""What must hold of the speed model for every shape, device and engine, known or not."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from speed_cases import DEVICES, MODELS, Device, constants

from planner.physics.loads import decode_step_s, lone_prompt_s, marginal_prefill_s
from planner.physics.speed import (
    StepCoefficients,
    StepParts,
    bandwidth_floor_s,
    coefficients,
    compute_floor_s,
    resource_seconds,
    stack,
    step_bytes,
    step_flops,
    step_parts,
    step_s,
)
from planner.physics.types import Architecture, Layout

ENGINES = (*sorted(constants().engines), *sorted(constants().generations), "never-heard-of")
WEIGHTS = ("bf16", "fp8", "int8", "int4", "nvfp4", "mxfp4", "q4_k_m")
LAYOUTS = (
    Layout(),
    Layout(tensor=2),
    Layout(tensor=8, pipeline=2, node_gpus=8),
    Layout(tensor=16, node_gpus=8),
    Layout(attention_data=8, expert=8),
    Layout(tensor=2, attention_data=8, expert=16, node_gpus=8),
)
ROUNDING = 1e-9

SHAPE = st.builds(
    lambda arch, device, layout, weights, kv, engine: coefficients(
        arch, device, layout, weights, kv, engine, constants()
    ),
    st.sampled_from(MODELS),
    st.sampled_from(DEVICES),
    st.sampled_from(LAYOUTS),
    st.sampled_from(WEIGHTS),
    st.sampled_from(("bf16", "fp8", "int8")),
    st.sampled_from(ENGINES),
)
BATCH = st.floats(1.0, 4096.0)
CONTEXT = st.floats(16.0, 131072.0)
GROWTH = st.floats(1.0, 8.0)
PREFILL = st.floats(0.0, 16384.0)

examples = settings(max_examples=150, derandomize=True, deadline=None)


@examples
@given(SHAPE, BATCH, CONTEXT, PREFILL, GROWTH)
def test_step_grows_with_batch_context_and_prompts(
    c: StepCoefficients, batch: float, context: float, prefill: float, growth: float
) -> None:
    base = step_s(c, batch + prefill, batch, context, prefill, 2000.0)
    more = batch * growth
    assert step_s(c, more + prefill, more, context, prefill, 2000.0) >= base * (1 - ROUNDING)
    assert step_s(c, batch + prefill, batch, context * growth, prefill, 2000.0) >= base * (1 - ROUNDING)
    longer = prefill * growth
    assert step_s(c, batch + longer, batch, context, longer, 2000.0) >= base * (1 - ROUNDING)


@examples
@given(SHAPE, BATCH, CONTEXT, GROWTH)
def test_decode_throughput_never_falls_with_batch(
    c: StepCoefficients, batch: float, context: float, growth: float
) -> None:
    few = batch / decode_step_s(c, batch, context)
    many = batch * growth / decode_step_s(c, batch * growth, context)
    assert many >= few * (1 - ROUNDING)


@examples
@given(SHAPE, BATCH, CONTEXT, PREFILL)
def test_parts_and_resources_sum_to_the_step(c: StepCoefficients, batch: float, context: float, prefill: float) -> None:
    load = (batch + prefill, batch, context, prefill, 1500.0)
    parts = step_parts(c, *load)
    whole = sum(getattr(parts, part.name) for part in fields(StepParts))
    assert whole == pytest.approx(parts.total_s, rel=1e-12)
    split = resource_seconds(c, *load)
    shares = (split.bandwidth_s, split.compute_s, split.interconnect_s, split.overhead_s)
    assert sum(shares) == pytest.approx(parts.total_s, rel=1e-12)
    assert min(shares) >= -1e-12 * parts.total_s


@examples
@given(SHAPE, BATCH, CONTEXT, PREFILL)
def test_bytes_and_flops_over_achievable_rates_are_floors_of_the_step(
    c: StepCoefficients, batch: float, context: float, prefill: float
) -> None:
    load = (batch + prefill, batch, context)
    prompts = (prefill, 1500.0)
    whole = step_s(c, *load, *prompts) * (1 + ROUNDING)
    assert 0 < step_bytes(c, *load) / c.achievable_bytes_per_s <= bandwidth_floor_s(c, *load) * (1 + ROUNDING) <= whole
    flops = step_flops(c, *load, *prompts)
    assert 0 < flops / c.achievable_flops_per_s <= compute_floor_s(c, *load, *prompts) * (1 + ROUNDING) <= whole


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("device", DEVICES, ids=lambda device: device.name)
def test_nothing_streams_faster_than_the_ceiling(device: Device, engine: str) -> None:
    ceiling = constants().streaming_ceiling_share * device.bandwidth_bytes_per_s * (1 + ROUNDING)
    for arch in MODELS:
        for kv in ("bf16", "fp8"):
            c = coefficients(arch, device, Layout(), "fp8", kv, engine, constants())
            assert c.achievable_bytes_per_s <= ceiling


@pytest.mark.parametrize("architecture", [*sorted(constants().architectures), "unheard-of"])
def test_no_architecture_class_streams_faster_than_the_ceiling(architecture: str) -> None:
    device = Device("any", "any", architecture, 1e11, 1e12, {"bf16": 1e14}, "pcie", 3e10, 1, 3e10)
    for engine in ENGINES:
        for arch in MODELS:
            c = coefficients(arch, device, Layout(), "bf16", "fp8", engine, constants())
            assert c.achievable_bytes_per_s <= constants().streaming_ceiling_share * 1e12 * (1 + ROUNDING)


@examples
@given(st.lists(SHAPE, min_size=1, max_size=5), st.lists(BATCH, min_size=1, max_size=3), CONTEXT, PREFILL)
def test_arrays_give_what_scalars_give(
    shapes: list[StepCoefficients], batches: list[float], context: float, prefill: float
) -> None:
    loads = np.array(batches)
    table = step_s(stack(shapes).expand(), loads[None, :] + prefill, loads[None, :], context, prefill, 1500.0)
    for row, shape in enumerate(shapes):
        for column, batch in enumerate(batches):
            single = step_s(shape, batch + prefill, batch, context, prefill, 1500.0)
            assert table[row, column] == pytest.approx(single, rel=1e-12)


@examples
@given(st.lists(SHAPE, min_size=2, max_size=5), BATCH)
def test_one_load_per_pair_needs_no_extra_axis(shapes: list[StepCoefficients], batch: float) -> None:
    pairs = stack(shapes)
    loads = np.full(len(shapes), batch)
    kept = np.array([len(shapes) - 1, 0])
    whole = step_s(pairs, loads, loads, loads * 10)
    assert step_s(pairs.take(kept), loads[kept], loads[kept], loads[kept] * 10) == pytest.approx(whole[kept])


@examples
@given(SHAPE, BATCH, CONTEXT, st.floats(64.0, 8192.0))
def test_a_chunk_beside_decode_costs_time_and_less_than_a_step_of_its_own(
    c: StepCoefficients, batch: float, context: float, chunk: float
) -> None:
    assume(float(c.data_ranks) == 1.0 and float(c.streams) == 1.0)
    added = marginal_prefill_s(c, batch, context, chunk, chunk)
    assert added > 0
    # The head counts decoding tokens only, and a lone prompt counts one: the sum of parts bounds the mixed step.
    assert added <= lone_prompt_s(c, chunk) * (1 + ROUNDING)


def test_smaller_weights_on_the_same_hardware_never_read_more() -> None:
    def reads(arch: Architecture, weights: str) -> float:
        c = coefficients(arch, DEVICES[0], Layout(), weights, "bf16", "vllm_new", constants())
        return float(bandwidth_floor_s(c, 1e9, 0.0, 1.0))

    for arch in MODELS:
        assert reads(arch, "int4") < reads(arch, "fp8") < reads(arch, "bf16")
