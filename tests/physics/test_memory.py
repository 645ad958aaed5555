"""Facts of the memory model, one per cause by which engines differ from parameters x bytes."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import pytest
from memory_inputs import GIB, device, engine_constants, engine_file, model_shape

from planner.physics.memory import (
    KV_FORMATS,
    WEIGHT_FORMATS,
    Extras,
    KvRules,
    Lora,
    Outcome,
    UnknownArchitecture,
    UnknownFormat,
    component_bytes,
    component_formats,
    draft_extras,
    engine_memory,
    hbm_budget,
    kv_bytes,
    kv_footprint,
    kv_format,
    lora_bytes,
    split_parameters,
    weight_format,
    weight_parts,
    weights_bytes,
)
from planner.physics.types import Layout

LLAMA_8B = "meta-llama/Llama-3.1-8B-Instruct"
LLAMA_2_7B = "meta-llama/Llama-2-7b-hf"
LLAMA_70B = "meta-llama/Llama-3.3-70B-Instruct"
R1 = "deepseek-ai/DeepSeek-R1"
QWEN_27B = "Qwen/Qwen3.5-27B"
GPT_OSS = "openai/gpt-oss-120b"
GEMMA = "google/gemma-3-27b-it"
SCOUT = "meta-llama/Llama-4-Scout-17B-16E-Instruct"


def test_split_of_llama_8b_follows_the_head_shapes() -> None:
    split = split_parameters(model_shape(LLAMA_8B))
    assert split.attention == 32 * 4096 * 128 * (2 * 32 + 2 * 8)
    assert split.head == split.embedding == 128256 * 4096
    assert split.dense == pytest.approx(32 * 3 * 4096 * 14336, rel=1e-3)
    assert split.experts == 0


def test_split_of_deepseek_counts_routed_experts_apart() -> None:
    split = split_parameters(model_shape(R1))
    assert split.experts == 58 * 256 * 3 * 7168 * 2048
    assert split.attention / 61 == pytest.approx(187.1e6, rel=1e-3)


def test_tied_embedding_is_counted_once() -> None:
    arch = model_shape("google/gemma-7b")
    assert split_parameters(arch).embedding == 0
    assert weight_parts(arch, Layout(), "bf16").vocabulary == arch.vocab * arch.d_model * 2


@pytest.mark.parametrize(
    ("context", "batch", "gigabytes"),
    [(2048, 1, 0.27), (8192, 1, 1.07), (8192, 32, 34.36), (8192, 64, 68.72), (32768, 1, 4.29), (128000, 1, 16.78)],
)
def test_textbook_cache_of_llama_8b(context: int, batch: int, gigabytes: float) -> None:
    assert round(batch * kv_bytes(model_shape(LLAMA_8B), Layout(), "bf16", context) / 1e9, 2) == gigabytes


def test_textbook_cache_of_llama_2_7b() -> None:
    assert kv_footprint(model_shape(LLAMA_2_7B), Layout(), "fp16").global_bytes_per_token == 524288


def test_kv_heads_are_copied_once_ranks_outnumber_them() -> None:
    arch = model_shape(LLAMA_8B)
    slopes = [kv_footprint(arch, Layout(tensor=tp), "bf16").global_bytes_per_token for tp in (1, 2, 8, 16)]
    assert slopes == [131072, 65536, 16384, 16384]


def test_mla_latent_is_whole_on_every_tensor_rank() -> None:
    arch = model_shape(R1)
    assert kv_footprint(arch, Layout(tensor=8), "bf16").global_bytes_per_token == 61 * 576 * 2
    aligned = kv_footprint(arch, Layout(tensor=8), "bf16", KvRules(latent_alignment_bytes=256))
    assert aligned.global_bytes_per_token == 61 * 640 * 2


def test_attention_data_parallel_multiplies_the_cache_of_mla() -> None:
    engine = engine_constants("vllm", "0.19")
    tensor, data = (
        hbm_budget(model_shape(R1), device(178.0), layout, "fp8", "bf16", engine, 256, 8192, 32768)
        for layout in (Layout(tensor=8), Layout(attention_data=8, expert=8))
    )
    assert data.weights_bytes > tensor.weights_bytes
    assert 6 < data.kv_tokens / tensor.kv_tokens < 8


def test_sparse_mla_also_keeps_an_index_key() -> None:
    arch = model_shape("deepseek-ai/DeepSeek-V3.2")
    assert kv_footprint(arch, Layout(), "bf16").global_bytes_per_token == 61 * (576 * 2 + 132)
    assert kv_footprint(arch, Layout(), "fp8").global_bytes_per_token == 61 * (656 + 132)


def test_local_layers_stop_at_the_window_and_are_padded_to_groups() -> None:
    arch = model_shape(GEMMA)
    kv = kv_footprint(arch, Layout(), "bf16")
    per_layer = arch.kv_elements_per_token * 2 / 62
    assert kv.global_bytes_per_token == pytest.approx(10 * per_layer)
    assert kv.local_bytes_per_token == pytest.approx(60 * per_layer)
    assert kv.window_tokens == 1024 + 16
    assert kv.bytes_at(131072) < 0.2 * 131072 * 62 * per_layer


def test_nearly_equal_numbers_of_layers_are_padded_to_the_larger() -> None:
    arch = replace(model_shape(GEMMA), n_local_layers=33)
    kv = kv_footprint(arch, Layout(), "bf16")
    assert kv.global_bytes_per_token == pytest.approx(kv.local_bytes_per_token)
    assert kv.global_bytes_per_token == pytest.approx(33 / 62 * arch.kv_elements_per_token * 2)


def test_without_a_hybrid_manager_every_layer_keeps_every_token() -> None:
    kv = kv_footprint(model_shape(GEMMA), Layout(), "bf16", KvRules(hybrid_windows=False))
    assert (kv.local_bytes_per_token, kv.global_bytes_per_token) == (0, model_shape(GEMMA).kv_elements_per_token * 2)


def test_a_window_in_every_layer_saves_nothing() -> None:
    arch = model_shape("mistralai/Mistral-7B-v0.1")
    assert arch.n_local_layers == arch.n_attention_layers
    assert kv_footprint(arch, Layout(), "bf16").local_bytes_per_token == 0


def test_chunked_attention_needs_an_engine_that_frees_chunks() -> None:
    arch = model_shape(SCOUT)
    vllm, sglang = (engine_constants(*e).kv_rules() for e in (("vllm", "0.19"), ("sglang", "0.5")))
    assert kv_footprint(arch, Layout(), "bf16", vllm).local_bytes_per_token == 0
    assert kv_footprint(arch, Layout(), "bf16", sglang).bytes_at(1e6) < 0.3e6 * arch.kv_elements_per_token * 2


def test_lightning_attention_keeps_a_fixed_state() -> None:
    arch = model_shape("MiniMaxAI/MiniMax-Text-01")
    kv = kv_footprint(arch, Layout(tensor=8), "bf16")
    assert kv.fixed_bytes == 70 * 64 * 128 * 128 * 2 / 8
    assert kv.global_bytes_per_token == 10 * 2 * 128 * 2


@pytest.mark.parametrize(
    ("attention", "missing"),
    [
        ("hybrid gated-delta + GQA", "convolution width"),
        ("hybrid Mamba + GQA", "state dimension"),
        ("hybrid Mamba2 + GQA", "SSM heads"),
        ("hybrid something + GQA", "dimensions of the state"),
    ],
)
def test_a_state_of_unknown_size_is_refused_by_name(attention: str, missing: str) -> None:
    arch = replace(model_shape(QWEN_27B), attention=attention, state_elements=0)
    with pytest.raises(UnknownArchitecture, match=missing) as caught:
        kv_footprint(arch, Layout(), "bf16")
    assert caught.value.name == arch.name


def test_a_recurrent_state_is_a_matrix_and_a_short_window() -> None:
    state = 48 * (48 * 128 * 128 * 4 + 3 * (2 * 2048 + 6144) * 2)
    assert kv_footprint(model_shape(QWEN_27B), Layout(), "bf16").fixed_bytes == state
    assert kv_footprint(model_shape(QWEN_27B), Layout(tensor=2), "bf16").fixed_bytes == state / 2


@pytest.mark.parametrize(("kv", "block"), [("bf16", 784), ("fp8", 1568)])
def test_a_page_of_attention_holds_a_whole_state(kv: str, block: int) -> None:
    """1568 tokens are printed by vLLM for this shape with an 8-bit cache (public start-up log)."""
    held = kv_footprint(model_shape(QWEN_27B), Layout(), kv, engine_constants("vllm", "0.20").kv_rules())
    assert held.block_tokens == block


def test_concurrency_of_a_hybrid_counts_two_pages_per_recurrent_layer() -> None:
    """31.24 GiB of cache hold 38.35 sequences of 8192 tokens (public start-up log of a 27B model on vLLM)."""
    held = kv_footprint(model_shape(QWEN_27B), Layout(), "bf16", engine_constants("vllm", "0.20").kv_rules())
    blocks = -(-8192 // held.block_tokens)
    assert 31.24 * GIB / held.bytes_at(blocks * held.block_tokens) == pytest.approx(38.35, rel=0.002)


def test_engines_without_latent_caches_store_every_head() -> None:
    """13,360 tokens on 8 x 80 GB with DeepSeek-V2 (github deepseek-ai/DeepSeek-V2 issue 83)."""
    old, new = (engine_constants("vllm", v).kv_rules() for v in ("0.4", "0.8"))
    arch = model_shape("deepseek-ai/DeepSeek-V2-Chat")
    token = kv_footprint(arch, Layout(tensor=8), "bf16", old).global_bytes_per_token
    assert token == 60 * 2 * 16 * 256 * 2
    assert token / kv_footprint(arch, Layout(tensor=8), "bf16", new).global_bytes_per_token > 14


def test_decode_context_parallelism_spreads_what_ranks_would_copy() -> None:
    """Eight-fold tokens at degree 8 (715,072 to 5,721,088 in a public log)."""
    for name in (R1, LLAMA_8B):
        alone, spread = (
            kv_footprint(model_shape(name), Layout(tensor=16, decode_context=d), "bf16").global_bytes_per_token
            for d in (1, 2)
        )
        assert alone == 2 * spread


def test_layers_that_attend_to_images_get_blocks_too() -> None:
    arch = model_shape("meta-llama/Llama-3.2-11B-Vision-Instruct")
    assert kv_footprint(arch, Layout(), "bf16").global_bytes_per_token == 40 * 2 * 8 * 128 * 2
    streamed = kv_footprint(arch, Layout(), "bf16", KvRules(cross_layers=False))
    assert streamed.global_bytes_per_token == 32 * 2 * 8 * 128 * 2


def test_layers_of_two_sizes_share_pages_of_the_larger_without_a_mixed_manager() -> None:
    """976 kB per token on vLLM 0.20 and 102 kB on 0.21 at 262,144 tokens (github vllm-project/vllm issue 43308)."""
    arch = model_shape("google/gemma-4-31B-it")
    old = kv_footprint(arch, Layout(), "bf16", engine_constants("vllm", "0.20").kv_rules())
    assert old.global_bytes_per_token == pytest.approx(976e3, rel=0.01)
    new = kv_footprint(arch, Layout(), "bf16", engine_constants("vllm", "0.21").kv_rules(5120 - 1))
    assert new.bytes_at(262144) / 262144 == pytest.approx(102e3, rel=0.02)


def test_images_count_in_the_weights_and_in_the_peak() -> None:
    """4-bit 7B model with images on a 32 GB board: 2.47 GiB with one image, 4.93 with videos unbound (public logs)."""
    arch = model_shape("Qwen/Qwen2.5-VL-7B-Instruct")
    engine = engine_constants("vllm", "0.15")
    one, two = (engine.activation_bytes(arch, Layout(), 256, 5120, items) / GIB for items in (1, 2))
    assert one == pytest.approx(2.47, rel=0.01)
    assert two == pytest.approx(4.93, rel=0.01)
    assert weight_parts(arch, Layout(), "int4").vision == arch.vision_parameters * 2


def test_rotary_tables_of_scaled_positions_are_long() -> None:
    """Gemma-3 holds a table for local layers and one of 8 x 131,072 rows for global ones (logs: 8.58 and 51.45 GiB)."""
    assert weights_bytes(model_shape("google/gemma-3-4b-it"), Layout(), "bf16") / GIB == pytest.approx(8.58, rel=0.003)
    assert weights_bytes(model_shape(GEMMA), Layout(), "bf16") / GIB == pytest.approx(51.45, rel=0.003)


def test_absorbed_projections_are_held_beside_the_latent() -> None:
    """83.88 GiB per GPU on 8 x H200 with vLLM of early 2025 (public log), 79.6 without the products."""
    arch, layout = model_shape(R1), Layout(tensor=8)
    assert weights_bytes(arch, layout, "fp8", absorbs=True) / GIB == pytest.approx(83.88, rel=0.005)
    assert engine_constants("vllm", "0.7").mla_absorbed
    assert not engine_constants("vllm", "0.8").mla_absorbed


def test_a_checkpoint_that_is_not_uniform_counts_what_it_stores() -> None:
    """57.75 GiB per GPU on 8 x H100 where parameters x 1 byte gives 47.25 (github vllm-project/vllm issue 6746)."""
    arch = model_shape("meta-llama/Llama-3.1-405B-Instruct-FP8")
    assert weights_bytes(arch, Layout(tensor=8), "fp8") / GIB == pytest.approx(57.75, rel=0.02)
    mixed = model_shape("nvidia/Qwen3.6-27B-NVFP4")
    assert component_formats(mixed, "nvfp4")["attention"] == "fp8"
    assert component_bytes(mixed, "nvfp4")["dense"] == pytest.approx(0.2453 + 0.7547 * 0.5625, rel=1e-3)


def test_adapters_take_slots_of_both_factors() -> None:
    arch = model_shape(LLAMA_8B)
    one = lora_bytes(arch, Layout(), Lora(1, 16, ("q", "v")))
    assert one == 32 * 16 * ((4096 + 4096) + (4096 + 1024)) * 2
    assert lora_bytes(arch, Layout(), Lora(4, 16, ("q", "v"))) == 4 * one
    assert one / 2 < lora_bytes(arch, Layout(tensor=8), Lora(1, 16, ("q", "v"))) < one
    with pytest.raises(UnknownArchitecture, match="adapters"):
        lora_bytes(model_shape(R1), Layout(), Lora(1, 16))


def test_a_draft_model_takes_weights_and_cache() -> None:
    draft = model_shape("meta-llama/Llama-3.2-1B-Instruct")
    extras = draft_extras(draft, Layout(), "bf16", "bf16")
    assert extras.weights_bytes == weights_bytes(draft, Layout(), "bf16")
    assert extras.kv_bytes_per_token == 16 * 2 * 8 * 64 * 2
    alone, both = (
        hbm_budget(
            model_shape(LLAMA_8B), device(), Layout(), "bf16", "bf16", engine_constants("vllm", "0.19"), 256, 8192, 8192,
            extras=e,
        )
        for e in (Extras(), extras)
    )  # fmt: skip
    assert both.weights_bytes == pytest.approx(alone.weights_bytes + extras.weights_bytes, abs=1)
    assert both.kv_tokens < alone.kv_tokens * 0.97


def test_block_rounding_is_small_and_upwards() -> None:
    arch = model_shape(LLAMA_8B)
    assert kv_bytes(arch, Layout(), "bf16", 1000, block_tokens=16) == 1008 * 131072


def test_embedding_and_head_stay_16_bit_in_quantised_checkpoints() -> None:
    arch = model_shape(LLAMA_8B)
    parts = component_formats(arch, "int4")
    assert (parts["head"], parts["embedding"], parts["small"], parts["dense"]) == ("bf16", "bf16", "bf16", "int4")
    assert weights_bytes(arch, Layout(), "int4") > 1.3 * arch.n_params_total * 0.5


def test_gguf_checkpoints_quantise_the_embedding_too() -> None:
    parts = component_formats(model_shape(LLAMA_8B), "q4_k_m")
    assert (parts["head"], parts["embedding"]) == ("q6_k", "q4_k")
    assert weights_bytes(model_shape(LLAMA_2_7B), Layout(), "q4_k_m") * 8 / 6.738e9 == pytest.approx(4.84, abs=0.02)


def test_natively_quantised_checkpoints_keep_their_16_bit_parts() -> None:
    assert component_formats(model_shape(GPT_OSS), "mxfp4") == {
        "attention": "bf16",
        "dense": "bf16",
        "experts": "mxfp4",
        "small": "bf16",
        "head": "bf16",
        "embedding": "bf16",
    }
    kimi = component_formats(model_shape("moonshotai/Kimi-K2.5"), "int4")
    assert (kimi["experts"], kimi["attention"], kimi["dense"]) == ("int4-g32", "bf16", "bf16")
    r1 = component_formats(model_shape(R1), "fp8")
    assert (r1["experts"], r1["attention"], r1["head"]) == ("fp8-block", "fp8-block", "bf16")
    r1_4bit = component_formats(model_shape(R1), "nvfp4")
    assert (r1_4bit["experts"], r1_4bit["attention"], r1_4bit["dense"]) == ("nvfp4", "bf16", "fp8")


def test_gpt_oss_120b_is_between_its_two_measured_layouts() -> None:
    gib = weights_bytes(model_shape(GPT_OSS), Layout(), "mxfp4") / GIB
    assert 64.4 <= gib <= 66.0


def test_end_stages_of_a_pipeline_carry_the_vocabulary() -> None:
    gib = weights_bytes(model_shape(LLAMA_8B), Layout(pipeline=4), "bf16") / GIB
    assert gib == pytest.approx(4.26, abs=0.01)


def test_parts_copied_on_every_rank_do_not_shrink() -> None:
    arch = model_shape(R1)
    one, eight = (weight_parts(arch, Layout(tensor=tp), "fp8") for tp in (1, 8))
    assert (one.small, one.rotary) == (eight.small, eight.rotary)
    copied = 61 * 7168 * (1536 + 576)
    assert eight.attention * 8 - one.attention == pytest.approx(7 * copied, rel=1e-3)


def test_an_uneven_split_of_experts_is_rated_by_the_fullest_rank() -> None:
    arch = replace(model_shape("mistralai/Mixtral-8x7B-Instruct-v0.1"), n_experts=9, n_params_total=60 * 10**9)
    sliced, whole = (weight_parts(arch, Layout(tensor=2, expert=e), "bf16").experts for e in (1, 2))
    assert whole / sliced == pytest.approx(10 / 9)


def test_kv_formats_hold_what_engines_measured() -> None:
    assert KV_FORMATS["bf16"].bytes_per_element == 2 * KV_FORMATS["fp8"].bytes_per_element
    assert KV_FORMATS["fp8"].bytes_per_element / KV_FORMATS["nvfp4"].bytes_per_element == pytest.approx(1.6)
    assert 1.0 < KV_FORMATS["int8"].bytes_per_element <= 1.02


def test_scales_are_counted() -> None:
    bits = {name: f.bytes_per_parameter * 8 for name, f in WEIGHT_FORMATS.items()}
    assert (bits["mxfp4"], bits["nvfp4"], bits["q8_0"], bits["int4"]) == (4.25, 4.5, 8.5, 4.15625)
    assert all(f.source for f in (*WEIGHT_FORMATS.values(), *KV_FORMATS.values()))


def test_unknown_formats_name_the_legal_ones() -> None:
    with pytest.raises(UnknownFormat, match="nvfp4"):
        weight_format("int3")
    with pytest.raises(UnknownFormat, match="fp8"):
        kv_format("int2")


def test_a_70b_in_16_bits_does_not_fit_one_80_gb_gpu_and_says_by_how_much() -> None:
    engine = engine_constants("vllm", "0.33")
    b = hbm_budget(model_shape(LLAMA_70B), device(), Layout(), "bf16", "bf16", engine, 256, 8192, 8192)
    assert b.outcome is Outcome.OOM
    assert not b.fits
    assert b.max_sequences(1000) == 0
    assert b.shortfall_bytes == pytest.approx(b.longest_bytes + b.weights_bytes - 0.9 * b.usable_bytes, rel=0.1)


def test_a_70b_in_8_bits_on_one_80_gb_gpu_has_no_room_for_cache() -> None:
    engine = engine_constants("vllm", "0.15")
    b = hbm_budget(model_shape(LLAMA_70B), device(), Layout(), "fp8", "bf16", engine, 1024, 8192, 16000)
    assert b.outcome is Outcome.KV_TOO_SMALL


def test_the_fraction_means_something_else_in_every_engine() -> None:
    arch, layout = model_shape(LLAMA_8B), Layout()
    vllm, trt, sglang, local = (
        hbm_budget(arch, device(), layout, "bf16", "bf16", engine_constants(*e), 256, 8192, 8192, 0.8)
        for e in (("vllm", "0.19"), ("tensorrt-llm", "0.20"), ("sglang", "0.5"), ("llama.cpp", "b6918"))
    )
    rest = vllm.weights_bytes + vllm.activation_bytes + vllm.runtime_bytes
    assert vllm.kv_pool_bytes == pytest.approx(0.8 * vllm.usable_bytes - rest, abs=1)
    after_load = trt.usable_bytes - trt.weights_bytes - trt.activation_bytes - trt.runtime_bytes - trt.graph_bytes
    assert trt.kv_pool_bytes == pytest.approx(0.8 * after_load, abs=1)
    assert sglang.kv_pool_bytes + sglang.weights_bytes + sglang.runtime_bytes == pytest.approx(
        0.8 * sglang.usable_bytes, abs=1
    )
    assert local.free_bytes == pytest.approx(GIB, abs=1)


def test_graphs_are_inside_the_budget_since_vllm_0_21() -> None:
    old, new = (
        hbm_budget(
            model_shape(LLAMA_8B), device(), Layout(), "bf16", "bf16", engine_constants("vllm", v), 256, 8192, 8192
        )
        for v in ("0.20", "0.21")
    )
    assert old.kv_pool_bytes - new.kv_pool_bytes == pytest.approx(new.graph_bytes, abs=1)


def test_without_chunked_prefill_the_activation_grows_with_the_prompt() -> None:
    engine, arch = engine_constants("vllm", "0.6"), model_shape(LLAMA_8B)
    gib = [
        hbm_budget(arch, device(23.58), Layout(), "bf16", "bf16", engine, 256, 512, n, 0.9, chunked).activation_bytes
        / GIB
        for n, chunked in ((20000, False), (29000, False), (35000, True))
    ]
    assert gib == pytest.approx([2.07, 2.99, 0.06], abs=0.03)


def test_default_batch_cap_depends_on_the_card() -> None:
    engine = engine_constants("vllm", "0.33")
    caps = [engine.max_num_seqs_on(d) for d in (device(), device(79.25, "A100-SXM-80GB"), device(44.4, "L40S"))]
    assert caps == [1024, 256, 256]


@pytest.mark.parametrize("name", ["vllm", "sglang", "tensorrt-llm", "llama.cpp"])
def test_every_range_of_the_catalog_has_valid_sourced_constants(name: str) -> None:
    ranges = engine_file(name)["memory"]
    assert [r.get("below") for r in ranges[:-1]] == [r["since"] for r in ranges[1:]]
    assert "below" not in ranges[-1]
    for r in ranges:
        assert engine_memory(name, str(r["since"]), r["constants"], str(r["source"])).source


def test_wrong_constants_are_all_named() -> None:
    constants = dict(engine_file("vllm")["memory"][-1]["constants"])
    del constants["bytes_per_logit"]
    constants |= {"nonsense": 1, "hybrid_kv": "yes", "fraction_of": "moon", "block_size_tokens": 1.5}
    with pytest.raises(ValueError, match="memory constants of vllm") as caught:
        engine_memory("vllm", "0.21", constants)
    message = str(caught.value)
    assert all(name in message for name in ("bytes_per_logit", "nonsense", "hybrid_kv", "fraction_of", "block_size"))


def test_memory_needs_no_numpy() -> None:
    code = "import sys, planner.physics.memory; sys.exit('numpy' in sys.modules or 'pydantic' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
