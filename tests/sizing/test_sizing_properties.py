"""What must hold for the calculators whatever the inputs: monotone, divided by GPUs, never larger with more stages."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.catalog import Catalog
from planner.physics.offload import share_to_move, split_step_s
from planner.physics.textbook import parameters_read, regime, ridge_flop_per_byte
from planner.physics.training import (
    Checkpoint,
    Offload,
    Tier,
    TrainedShape,
    TrainingSetup,
    ZeroStage,
    activation_bytes,
    hidden_share,
    moved_bytes,
    recompute_share,
    training_memory,
)
from planner.sizing.concurrency import concurrency_row
from planner.sizing.decode import decode_row
from planner.sizing.grid import LARGEST_GRID, check_size, combinations
from planner.sizing.inputs import SizingError, StatedGpu, StatedShape, Unit, Workspace, gpu, subject
from planner.sizing.kv import kv_row

CATALOG = Catalog.open()
MODELS = [
    subject(CATALOG, name, StatedShape())
    for name in ("llama-3-8b", "deepseek-ai/DeepSeek-V3", "google/gemma-3-27b-it", "openai/gpt-oss-120b")
]
H100 = gpu(CATALOG, "h100-sxm", StatedGpu(), Unit.GB)
counts = st.integers(1, 200_000)
models = st.sampled_from(MODELS)
degrees = st.sampled_from([1, 2, 4, 8])
some = settings(max_examples=60, derandomize=True, deadline=None)

shapes = st.builds(
    TrainedShape,
    parameters=st.floats(1e6, 1e12),
    layers=st.integers(1, 200),
    width=st.integers(64, 20_000),
    heads=st.integers(1, 128),
)
setups = st.builds(
    TrainingSetup,
    batch=st.integers(1, 64),
    sequence=st.integers(1, 100_000),
    gpus=st.integers(1, 4096),
    zero=st.sampled_from(ZeroStage),
    checkpoint=st.sampled_from(Checkpoint),
    fused=st.booleans(),
    offload=st.sampled_from(Offload),
    activation_factor=st.floats(1, 40),
)


@some
@given(models, counts, counts, st.integers(1, 500), st.integers(1, 500))
def test_the_cache_grows_with_context_and_batch(model, short, more, few, others) -> None:
    small = kv_row(model, short, few, "bf16", "bf16", 1, None)
    large = kv_row(model, short + more, few + others, "bf16", "bf16", 1, None)

    assert small.kv_gb < large.kv_gb


@some
@given(models, counts, degrees)
def test_more_gpus_never_hold_more_each(model, context, tensor) -> None:
    one, many = (kv_row(model, context, 1, "bf16", "bf16", t, None) for t in (1, tensor))

    assert one.kv_gb / tensor <= many.kv_gb_per_gpu * (1 + 1e-12)
    assert many.kv_gb_per_gpu <= one.kv_gb_per_gpu


@some
@given(counts, degrees)
def test_a_cache_of_eight_heads_divides_by_up_to_eight_gpus(context, tensor) -> None:
    row = kv_row(MODELS[0], context, 1, "bf16", "bf16", tensor, None)

    assert row.kv_gb_per_gpu * tensor == pytest.approx(row.kv_gb)


@some
@given(models, counts, st.integers(1, 2000), st.sampled_from(["bf16", "int8", "int4"]))
def test_a_step_takes_longer_with_every_token_and_sequence(model, context, batch, weights) -> None:
    now = decode_row(model, H100, context, batch, weights, "bf16", 1, None)

    assert now.step_ms <= decode_row(model, H100, context + 1, batch, weights, "bf16", 1, None).step_ms
    assert now.step_ms <= decode_row(model, H100, context, batch + 1, weights, "bf16", 1, None).step_ms
    assert now.expected_low_tok_s <= now.expected_high_tok_s <= now.ceiling_tok_s


@some
@given(counts, st.sampled_from(["bf16", "fp8", "int4"]), st.floats(0, 1))
def test_concurrency_falls_with_context_and_workspace(context, kv, share) -> None:
    def sequences(tokens: int, kept: float) -> int:
        return concurrency_row(
            MODELS[0], H100, tokens, "bf16", kv, 1, Workspace(share=kept), None, Unit.GB, None
        ).sequences

    assert 0 <= sequences(context + 1000, share) <= sequences(context, share) <= sequences(context, share / 2)


@some
@given(shapes, setups)
def test_a_higher_stage_never_holds_more(shape, setup) -> None:
    totals = [training_memory(shape, _with(setup, zero=stage)).total_bytes for stage in ZeroStage]

    assert all(after <= before for before, after in pairwise(totals))


@some
@given(shapes, setups)
def test_more_gpus_and_offload_never_hold_more(shape, setup) -> None:
    total = training_memory(shape, setup).total_bytes

    assert training_memory(shape, _with(setup, gpus=2 * setup.gpus)).total_bytes <= total
    assert training_memory(shape, _with(setup, offload=Offload.ALL)).total_bytes <= total * (1 + 1e-12)


@some
@given(shapes, setups)
def test_what_is_offloaded_is_moved(shape, setup) -> None:
    held = training_memory(shape, setup)

    assert (held.offloaded_bytes > 0) == (setup.offload is not Offload.NONE)
    assert all((moved_bytes(shape, setup, tier) > 0) == (held.offloaded_bytes > 0) for tier in Tier)


@some
@given(shapes, setups)
def test_activations_grow_with_batch_and_sequence(shape, setup) -> None:
    now = sum(activation_bytes(shape, setup))

    assert now < sum(activation_bytes(shape, _with(setup, batch=setup.batch + 1)))
    assert now < sum(activation_bytes(shape, _with(setup, sequence=setup.sequence + 1)))
    assert 0 <= recompute_share(shape, setup) <= 1 / 3 + 1e-12


@some
@given(st.floats(1, 1e13), st.floats(0, 1e13), st.floats(1, 1e13))
def test_after_moving_the_least_share_the_rest_fits(movable, fixed, memory) -> None:
    least = share_to_move(movable, fixed, memory)

    if least is None:
        assert fixed > memory
    else:
        assert 0 <= least <= 1
        assert movable * (1 - least) + fixed <= memory + 1e-9 * movable


@some
@given(st.floats(1, 1e13), st.floats(0, 1), st.floats(1e9, 1e10), st.floats(1e11, 1e13))
def test_a_slower_host_never_makes_a_step_faster(total, share, host, bandwidth) -> None:
    split = split_step_s(total * (1 - share), bandwidth, total * share, host)

    assert split >= total / bandwidth * (1 - 1e-12)


@some
@given(st.floats(1e6, 1e12), st.floats(0, 1), st.floats(0, 1), st.integers(1, 10_000))
def test_experts_are_read_between_once_and_all(total, routed, share, batch) -> None:
    read = parameters_read(total, total * routed, share, batch)

    assert total * (1 - routed) * (1 - 1e-9) <= read <= total * (1 + 1e-12)
    assert read <= parameters_read(total, total * routed, share, batch + 1) * (1 + 1e-12)


def test_regimes_are_in_order() -> None:
    ridge = ridge_flop_per_byte(989e12, 3.35e12)

    assert [regime(ridge * part, ridge).value for part in (0.89, 0.91, 1.09, 1.11)] == [
        "memory-bound",
        "balanced",
        "balanced",
        "compute-bound",
    ]


def test_compute_hides_at_most_all_of_a_transfer() -> None:
    assert [hidden_share(2.0, 1.0), hidden_share(1.0, 2.0), hidden_share(0.0, 1.0)] == [0.5, 1.0, 1.0]


def test_a_grid_is_refused_before_any_row_is_computed() -> None:
    def never(**_: object) -> None:
        raise AssertionError

    with pytest.raises(SizingError, match="1,000,000 rows; 10,000 are allowed"):
        combinations(never, {"a": range(1000), "b": range(1000)})
    check_size([LARGEST_GRID])


def test_the_first_axis_changes_slowest() -> None:
    assert combinations(lambda a, b: (a, b), {"a": (1, 2), "b": "xy"}) == [(1, "x"), (1, "y"), (2, "x"), (2, "y")]


def _with(setup: TrainingSetup, **changes: object) -> TrainingSetup:
    return replace(setup, **changes)
