"""Laws of the memory model that hold for every model of the catalog and every engine."""

from __future__ import annotations

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from memory_inputs import device, engine_constants, model_names, model_shape

from planner.physics.memory import (
    WEIGHT_FORMATS,
    HbmBudget,
    Outcome,
    UnknownArchitecture,
    hbm_budget,
    kv_bytes,
    kv_footprint,
    split_parameters,
    state_bytes,
    weight_parts,
    weights_bytes,
)
from planner.physics.types import Architecture, Layout

ENGINES = [
    ("vllm", "0.6"),
    ("vllm", "0.9"),
    ("vllm", "0.15"),
    ("vllm", "0.19"),
    ("vllm", "0.33"),
    ("sglang", "0.5"),
    ("tensorrt-llm", "0.20"),
    ("tensorrt-llm", "1.2"),
    ("llama.cpp", "b6918"),
]
WIDTHS = (1, 2, 4, 8)
shapes = st.sampled_from(model_names()).map(model_shape)
engines = st.sampled_from(ENGINES).map(lambda pair: engine_constants(*pair))
layouts = st.builds(Layout, tensor=st.sampled_from(WIDTHS), pipeline=st.sampled_from((1, 2, 4)))
several = settings(max_examples=150, derandomize=True, deadline=None)


def sized(arch: Architecture) -> bool:
    try:
        kv_footprint(arch, Layout(), "bf16")
    except UnknownArchitecture:
        return False
    return True


def budget(arch: Architecture, layout: Layout, engine_index: int, **given: object) -> HbmBudget:
    inputs: dict[str, object] = {
        "weights": "bf16",
        "kv": "bf16",
        "max_num_seqs": 256,
        "max_num_batched_tokens": 8192,
        "max_model_len": 8192,
    } | given
    usable_gib = inputs.pop("usable_gib", 139.8)
    return hbm_budget(arch, device(usable_gib), layout, engine=engine_constants(*ENGINES[engine_index]), **inputs)


@pytest.mark.parametrize("name", model_names())
def test_split_sums_to_the_stated_total(name: str) -> None:
    split = split_parameters(model_shape(name))
    parts = (split.attention, split.dense, split.experts, split.head, split.embedding)
    assert min(parts) >= 0
    assert 0 <= split.small <= split.dense
    assert sum(parts) == pytest.approx(split.total, rel=1e-12)


@several
@given(shapes, layouts)
def test_fp8_weights_never_use_more_memory_than_bf16(arch: Architecture, layout: Layout) -> None:
    assert weights_bytes(arch, layout, "fp8") <= weights_bytes(arch, layout, "bf16")


@several
@given(shapes, st.sampled_from(sorted(WEIGHT_FORMATS)), st.sampled_from((1, 2, 4)), st.booleans())
def test_more_tensor_ranks_never_mean_more_weights_per_gpu(
    arch: Architecture, fmt: str, pipeline: int, expert_parallel: bool
) -> None:
    sizes = [
        weights_bytes(arch, Layout(tensor=tp, pipeline=pipeline, expert=tp if expert_parallel else 1), fmt)
        for tp in WIDTHS
    ]
    assert sizes == sorted(sizes, reverse=True)


@several
@given(shapes, layouts, st.sampled_from(sorted(WEIGHT_FORMATS)))
def test_all_gpus_together_hold_at_least_the_checkpoint(arch: Architecture, layout: Layout, fmt: str) -> None:
    once = weight_parts(arch, Layout(), fmt)
    assert weights_bytes(arch, layout, fmt) * layout.gpus >= (once.total - once.rotary) * 0.999


@several
@given(shapes, layouts, st.integers(1, 50_000), st.integers(2, 5))
def test_cache_is_linear_beyond_the_window(arch: Architecture, layout: Layout, tokens: int, factor: int) -> None:
    assume(sized(arch))
    kv = kv_footprint(arch, layout, "bf16")
    start = kv.window_tokens + tokens
    grown = kv.bytes_at(start + factor * tokens) - kv.bytes_at(start)
    assert grown == pytest.approx(factor * tokens * kv.global_bytes_per_token)


@several
@given(shapes, layouts, st.integers(0, 200_000))
def test_footprint_and_its_inverse_agree(arch: Architecture, layout: Layout, tokens: int) -> None:
    assume(sized(arch))
    kv = kv_footprint(arch, layout, "bf16")
    assert kv.tokens_in(kv.bytes_at(tokens)) == pytest.approx(tokens, rel=1e-9, abs=1e-6)


@several
@given(shapes, layouts, st.integers(1, 100_000))
def test_fp8_cache_halves_all_but_the_state(arch: Architecture, layout: Layout, tokens: int) -> None:
    assume(sized(arch) and "sparse index" not in arch.attention)
    fixed = state_bytes(arch, layout)
    wide = kv_bytes(arch, layout, "bf16", tokens) - fixed
    assert kv_bytes(arch, layout, "fp8", tokens) - fixed == pytest.approx(wide / 2)


@several
@given(shapes, layouts, st.integers(0, len(ENGINES) - 1), st.sampled_from((22.0, 79.19, 139.8, 191.5)))
def test_parts_sum_to_the_usable_memory_exactly(arch: Architecture, layout: Layout, engine: int, gib: float) -> None:
    assume(sized(arch))
    b = budget(arch, layout, engine, usable_gib=gib)
    parts = b.weights_bytes + b.kv_pool_bytes + b.activation_bytes + b.runtime_bytes + b.graph_bytes
    assert parts + b.free_bytes == b.usable_bytes
    assert min(b.weights_bytes, b.kv_pool_bytes, b.activation_bytes, b.runtime_bytes, b.graph_bytes) >= 0
    assert b.fits == (b.shortfall_bytes == 0.0) == (b.outcome is Outcome.OK)


@several
@given(shapes, layouts, st.integers(0, len(ENGINES) - 1), st.integers(256, 16384), st.integers(1, 1024))
def test_larger_batches_never_leave_more_cache(
    arch: Architecture, layout: Layout, engine: int, tokens: int, seqs: int
) -> None:
    assume(sized(arch))
    small = budget(arch, layout, engine, max_num_batched_tokens=tokens, max_num_seqs=seqs)
    large = budget(arch, layout, engine, max_num_batched_tokens=2 * tokens, max_num_seqs=2 * seqs)
    assert large.kv_pool_bytes <= small.kv_pool_bytes


@several
@given(shapes, layouts, st.integers(0, len(ENGINES) - 1), st.floats(0.5, 0.9))
def test_a_larger_fraction_never_leaves_less_cache(
    arch: Architecture, layout: Layout, engine: int, fraction: float
) -> None:
    assume(sized(arch))
    low = budget(arch, layout, engine, memory_fraction=fraction)
    high = budget(arch, layout, engine, memory_fraction=fraction + 0.05)
    assert high.kv_pool_bytes >= low.kv_pool_bytes


@several
@given(shapes, st.integers(0, len(ENGINES) - 1))
def test_fp8_weights_never_leave_less_cache(arch: Architecture, engine: int) -> None:
    assume(sized(arch))
    layout = Layout(tensor=8)
    narrow, wide = (budget(arch, layout, engine, weights=fmt) for fmt in ("fp8", "bf16"))
    assert narrow.kv_pool_bytes >= wide.kv_pool_bytes
