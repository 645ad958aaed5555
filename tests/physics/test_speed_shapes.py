"""Formats, layouts and engines: what each does to the step coefficients."""

from __future__ import annotations

from dataclasses import replace

import pytest
from speed_cases import (
    A100,
    B200,
    DEEPSEEK_R1,
    GB200,
    GPT_OSS_120B,
    H100,
    L40S,
    LLAMA_8B,
    LLAMA_70B,
    MIXTRAL_8X7B,
    UNKNOWN_GPU,
    Device,
    constants,
)

from planner.physics.loads import lone_prompt_s
from planner.physics.memory import UnknownFormat
from planner.physics.speed import StepCoefficients, coefficients, stack, step_bytes, step_parts, step_s
from planner.physics.types import Architecture, Layout


def folded(
    arch: Architecture = LLAMA_70B,
    device: Device = H100,
    layout: Layout | None = None,
    weights: str = "bf16",
    kv: str = "bf16",
    engine: str = "vllm_new",
) -> StepCoefficients:
    return coefficients(arch, device, layout or Layout(), weights, kv, engine, constants())


def test_weights_of_a_format_without_its_peak_compute_in_bf16_and_stream_small() -> None:
    plain, narrow = folded(device=A100), folded(device=A100, weights="fp8")
    assert narrow.ffn_flops_per_s == plain.ffn_flops_per_s
    assert narrow.ffn_read_s == pytest.approx(plain.ffn_read_s / 2, rel=1e-3)
    assert folded(weights="fp8").ffn_flops_per_s > folded().ffn_flops_per_s


def test_mxfp4_takes_the_fp8_peak_where_fp4_is_native_and_widens_elsewhere() -> None:
    native = folded(GPT_OSS_120B, B200, weights="mxfp4")
    wide = folded(GPT_OSS_120B, H100, weights="mxfp4")
    grouped = constants().expert_compute_factor
    fp8_over_bf16 = B200.flops["fp8"] / B200.flops["bf16"] * constants().fp8_compute_factor
    assert native.expert_flops_per_s / native.attention_flops_per_s == pytest.approx(fp8_over_bf16 * grouped)
    widened = grouped / (1 + constants().dequantise_excess)
    assert wide.expert_flops_per_s / wide.attention_flops_per_s == pytest.approx(widened)


def test_the_head_stays_wide_under_quantisation() -> None:
    assert folded(weights="fp8").head_read_s == folded(weights="bf16").head_read_s
    assert folded(weights="fp8").head_flops_per_s == folded(weights="bf16").head_flops_per_s


def test_kv_heads_below_tensor_ranks_are_read_by_every_rank() -> None:
    eight, sixteen = folded(layout=Layout(tensor=8)), folded(layout=Layout(tensor=16))
    assert sixteen.kv_global_s == pytest.approx(eight.kv_global_s)
    assert folded(layout=Layout(tensor=4)).kv_global_s == pytest.approx(2 * eight.kv_global_s)


def test_a_latent_cache_is_whole_on_every_tensor_rank_and_shared_by_attention_data() -> None:
    one = folded(DEEPSEEK_R1, weights="fp8")
    assert folded(DEEPSEEK_R1, weights="fp8", layout=Layout(tensor=8)).kv_global_s == pytest.approx(one.kv_global_s)
    spread = folded(DEEPSEEK_R1, weights="fp8", layout=Layout(attention_data=8, expert=8))
    assert spread.kv_global_s == pytest.approx(one.kv_global_s / 8)


def test_only_mixed_local_layers_get_a_window() -> None:
    windowed = replace(LLAMA_8B, name="mistral-7b", sliding_window=4096)
    assert folded(windowed).kv_local_s == 0.0
    mixed = folded(GPT_OSS_120B, weights="mxfp4")
    near = step_parts(mixed, 8.0, 8.0, 128.0).kv_s
    far = step_parts(mixed, 8.0, 8.0, 256.0).kv_s
    assert near < far < 2 * near
    assert mixed.window_tokens == 128.0


def test_a_recurrent_state_is_read_and_written_once_per_step() -> None:
    hybrid = replace(LLAMA_8B, name="hybrid", attention="lightning", n_attention_layers=4, n_state_layers=28)
    c = folded(hybrid)
    state = 28 * LLAMA_8B.n_heads * LLAMA_8B.head_dim**2 * 2
    assert c.state_s * c.kv_bytes_per_s == pytest.approx(2 * state)
    assert step_parts(c, 4.0, 4.0, 100.0).kv_s == pytest.approx(4 * (c.state_s + 100 * c.kv_global_s))


def test_experts_stream_only_as_far_as_they_are_hit() -> None:
    c = folded(MIXTRAL_8X7B)
    one, two = (float(step_bytes(c, n, 0.0, 0.0)) for n in (1.0, 2.0))
    experts = 32 * 8 * 3 * 4096 * 14336 * 2
    dense = one - 0.25 * experts
    assert 0 < dense < 0.1 * experts
    assert two == pytest.approx(dense + (1 - 0.75**2) * experts, rel=1e-6)


def test_tensor_ranks_trade_reads_for_collectives() -> None:
    one, four = folded(), folded(layout=Layout(tensor=4))
    assert four.ffn_read_s == pytest.approx(one.ffn_read_s / 4)
    assert one.collective_step_s == one.allreduce_token_s == 0.0
    assert four.collective_step_s > 0
    assert four.allreduce_token_s > 0


def test_crossing_nodes_costs_more_than_staying_inside() -> None:
    wide = replace(H100, scale_up_gpus=16)
    inside = folded(device=wide, layout=Layout(tensor=16))
    across = folded(layout=Layout(tensor=16, node_gpus=8))
    assert step_s(across, 64.0, 64.0, 1000.0) > step_s(inside, 64.0, 64.0, 1000.0)
    apart = folded(layout=Layout(tensor=8, pipeline=2, node_gpus=8))
    together = folded(layout=Layout(tensor=8, pipeline=2))
    assert apart.hop_token_s > together.hop_token_s == 0.0
    expert = Layout(attention_data=16, expert=16)
    near = folded(DEEPSEEK_R1, wide, expert, "fp8")
    far = folded(DEEPSEEK_R1, H100, replace(expert, node_gpus=8), "fp8")
    assert far.alltoall_token_s > near.alltoall_token_s


def test_a_rack_scale_domain_does_not_cross() -> None:
    whole = folded(device=GB200, layout=Layout(tensor=8))
    trays = folded(device=GB200, layout=Layout(tensor=8, node_gpus=4))
    assert trays.allreduce_token_s == whole.allreduce_token_s


def test_a_network_slower_than_the_port_bounds_the_replica() -> None:
    slow = replace(L40S, link_bytes_per_s=8e9, pcie_bytes_per_s=8e9)
    layout = Layout(tensor=2, node_gpus=1)
    assert folded(device=slow, layout=layout).allreduce_token_s == pytest.approx(
        32 / 8 * folded(device=L40S, layout=layout).allreduce_token_s
    )


def test_groups_wider_than_a_bridge_fall_back_to_pcie() -> None:
    bridged = replace(L40S, link_class="nvlink", link_bytes_per_s=300e9, scale_up_gpus=2)
    assert folded(device=bridged, layout=Layout(tensor=2)).allreduce_token_s < 0.2 * (
        folded(device=L40S, layout=Layout(tensor=2)).allreduce_token_s
    )
    four = Layout(tensor=4)
    assert folded(device=bridged, layout=four).allreduce_token_s == folded(device=L40S, layout=four).allreduce_token_s


def test_several_gpus_without_links_are_refused() -> None:
    lonely = replace(UNKNOWN_GPU, link_bytes_per_s=0.0, pcie_bytes_per_s=0.0)
    with pytest.raises(ValueError, match="X1 has no link"):
        folded(device=lonely, layout=Layout(tensor=2))
    assert step_s(folded(device=lonely), 1.0, 1.0, 100.0) > 0


def test_pipeline_stages_run_microbatches_side_by_side_except_where_layers_are_split() -> None:
    staged, split = (folded(layout=Layout(pipeline=4), engine=engine) for engine in ("vllm_new", "llamacpp"))
    assert (staged.streams, split.streams) == (4.0, 1.0)
    assert split.weight_bytes_per_s == folded(engine="llamacpp").weight_bytes_per_s
    slower = 1 + 3 * constants().pipeline_stage_excess
    assert staged.weight_bytes_per_s == pytest.approx(folded().weight_bytes_per_s / slower)


def test_a_lone_prompt_under_attention_data_gets_one_rank() -> None:
    dense = replace(LLAMA_8B, name="dense")
    alone = folded(dense)
    spread = folded(dense, layout=Layout(attention_data=4))
    assert lone_prompt_s(spread, 4000.0) == pytest.approx(lone_prompt_s(alone, 4000.0), rel=1e-9)


def test_an_unknown_gpu_and_engine_take_the_general_line() -> None:
    unknown = folded(device=UNKNOWN_GPU, engine="never-heard-of")
    modern = folded(device=UNKNOWN_GPU, engine="modern")
    assert unknown == modern
    assert 0 < step_s(unknown, 32.0, 32.0, 1000.0) < 1


def test_unknown_formats_are_named() -> None:
    with pytest.raises(UnknownFormat, match="fp3"):
        folded(weights="fp3")
    with pytest.raises(UnknownFormat, match="kv9"):
        folded(kv="kv9")


def test_pairs_of_different_calibrations_do_not_mix() -> None:
    other = replace(constants(), roofline_exponent=2.0)
    foreign = coefficients(LLAMA_8B, H100, Layout(), "bf16", "bf16", "vllm_new", other)
    with pytest.raises(ValueError, match="exponent"):
        stack([folded(), foreign])
    with pytest.raises(ValueError, match="no coefficients"):
        stack([])
