"""Memory of a deployment: parts that sum, what is divided by parallelism and what is not, adapters and drafts."""

from __future__ import annotations

from dataclasses import replace

import pytest
from estimate_cases import (
    CATALOG,
    GPT_OSS,
    H100,
    H200,
    LLAMA_8B,
    LLAMA_70B,
    R1,
    VLM_8B,
    deployed,
    estimated,
    fitted,
    gib,
)

from planner.estimate.deployment import DeploymentError, Request, deploy, legal_decode_context
from planner.estimate.memory import fit, fits, largest, longest_context
from planner.estimate.notes import why
from planner.physics.memory import Lora, Outcome


@pytest.mark.parametrize(
    ("model", "gpu", "asked"),
    [
        (LLAMA_70B, H100, {"tensor": 4, "weights": "fp8", "kv": "fp8"}),
        (R1, H200, {"tensor": 8}),
        (GPT_OSS, H100, {}),
        (VLM_8B, "L4", {}),
        (LLAMA_8B, H100, {"lora": Lora(8, 32), "draft": "llama-3.2-1b"}),
        (LLAMA_8B, "RTX-4090", {"engine": "llama.cpp", "weights": "q4_k_m"}),
        (LLAMA_8B, H100, {"engine": "sglang"}),
        (LLAMA_8B, H100, {"engine": "tensorrt-llm"}),
    ],
)
def test_the_parts_sum_to_the_memory(model: str, gpu: str, asked: dict[str, object]) -> None:
    held = fitted(model, gpu, **asked)
    b = held.budget
    parts = b.weights_bytes + b.kv_pool_bytes + b.activation_bytes + b.runtime_bytes + b.graph_bytes + b.free_bytes

    assert parts == b.usable_bytes
    assert 0.0 <= b.weights_bytes - sum(held.weight_parts.values()) < 1.0 + 1e-6 * b.weights_bytes / 1e9


def test_the_latent_is_whole_on_every_tensor_rank() -> None:
    """DeepSeek-R1: 61 layers of 512 + 64 elements in 16 bits, whatever the tensor parallelism."""
    eight, sixteen = fitted(R1, H200, tensor=8), fitted(R1, H200, tensor=16)

    assert eight.budget.kv.global_bytes_per_token == 61 * 576 * 2
    assert sixteen.budget.kv.global_bytes_per_token == eight.budget.kv.global_bytes_per_token
    note = next(n for n in estimated(R1, H200, tensor=8).notes if "latent" in n)
    assert "undivided by TP: 68.6 KiB per token on each of the 8 GPUs" in note


def test_decode_context_spreads_the_latent() -> None:
    whole, spread = (fitted(R1, H200, tensor=8, decode_context=n) for n in (1, 8))

    assert spread.budget.kv.global_bytes_per_token == whole.budget.kv.global_bytes_per_token / 8
    assert spread.budget.kv_tokens == pytest.approx(8 * whole.budget.kv_tokens, rel=1e-3)
    assert "spreads its tokens over 8 of the 8 ranks" in " ".join(estimated(R1, H200, tensor=8, decode_context=8).notes)


def test_attention_data_groups_hold_sequences_of_their_own() -> None:
    shared, own = fitted(R1, H200, tensor=8), fitted(R1, H200, attention_data=8, expert=8)

    assert own.sequences(32768) == own.deployment.layout.attention_data * (own.sequences(32768) // 8)
    assert own.budget.max_concurrency > 4 * shared.budget.max_concurrency


def test_kv_heads_are_copied_beyond_their_number() -> None:
    four, eight, sixteen = (fitted(LLAMA_70B, H100, tensor=tp, weights="fp8") for tp in (4, 8, 16))
    tokens = [held.budget.kv.global_bytes_per_token for held in (four, eight, sixteen)]

    assert tokens[0] == 2 * tokens[1]
    assert tokens[1] == tokens[2]
    assert "each is held 2 times" in " ".join(estimated(LLAMA_70B, H100, tensor=16, weights="fp8").notes)


def test_gpt_oss_barely_fits_one_h100_and_why() -> None:
    """65 of 79 GiB are weights: a good gigabyte of room decides, and any of several settings tips it."""
    now = estimated(GPT_OSS, H100)
    more = estimated(GPT_OSS, H100, utilization=0.93)

    assert now.fit.short_bytes < 3 * 2**30
    assert gib(now.fit.weight_parts["experts"]) > 60
    assert "(experts 61.4)" in why(now.fit)
    assert more.fit.fits
    assert any("barely fits" in warning for warning in more.warnings)


def test_a_vision_tower_is_a_part_of_the_weights() -> None:
    assert gib(fitted(VLM_8B, H100).weight_parts["vision"]) > 1.0


def test_images_and_videos_set_the_peak_of_a_vision_model() -> None:
    peaks = [fitted(VLM_8B, H100, images=i, videos=v).budget.activation_bytes for i, v in ((1, 1), (1, 0), (8, 0))]

    assert peaks[2] > peaks[0] > peaks[1]
    assert peaks[2] == pytest.approx(4 * peaks[0], rel=1e-6)


def test_adapters_and_a_draft_are_parts_of_the_weights() -> None:
    bare = fitted(LLAMA_8B, H100)
    full = fitted(LLAMA_8B, H100, lora=Lora(4, 16, ("q", "v")), draft="llama-3.2-1b")
    parts = full.weight_parts

    assert parts["adapters"] == 4 * 16 * 32 * (4096 + 4096 + 4096 + 1024) * 2
    assert gib(parts["draft"]) == pytest.approx(2.3, rel=0.05)
    assert full.budget.weights_bytes == pytest.approx(
        bare.budget.weights_bytes + parts["adapters"] + parts["draft"], abs=2.0
    )
    assert full.budget.kv.global_bytes_per_token > bare.budget.kv.global_bytes_per_token


@pytest.mark.parametrize(
    ("model", "gpu", "asked"),
    [
        (LLAMA_8B, "L4", {}),
        (LLAMA_8B, "L4", {"chunked_prefill": False}),
        (LLAMA_8B, "RTX-3090", {"engine_version": "0.6"}),
        (GPT_OSS, H100, {"utilization": 0.92}),
        ("google/gemma-3-27b-it", "L40S", {"weights": "fp8"}),
        ("Qwen/Qwen3-Next-80B-A3B-Instruct", H100, {"tensor": 4}),
    ],
)
def test_the_longest_context_fits_and_one_more_token_does_not(model: str, gpu: str, asked: dict[str, object]) -> None:
    d = deployed(model, gpu, **asked)
    tokens = longest_context(d)

    assert fits(d.changed(max_model_len=tokens))
    assert tokens == d.architecture.max_position or not fits(d.changed(max_model_len=tokens + 1))


def test_no_context_fits_where_the_weights_do_not() -> None:
    held = fitted(LLAMA_70B, "L4")

    assert (held.outcome, longest_context(held.deployment)) == (Outcome.OOM, 0)
    assert held.spare_bytes < 0 < held.short_bytes


def test_largest_finds_the_last_that_holds() -> None:
    assert [largest(1, 100, lambda n, last=last: n <= last) for last in (0, 1, 57, 100, 200)] == [0, 1, 57, 100, 100]
    assert largest(5, 4, lambda _: True) == 0


def test_stated_lengths_lengthen_the_default() -> None:
    assert deployed(LLAMA_8B, H100).max_model_len == 32768
    assert deployed(LLAMA_8B, H100, input_tokens=60_000).max_model_len == 60_256
    assert deployed("mosaicml/mpt-7b", H100).max_model_len == 2048


def test_block_sizes_count() -> None:
    """Blocks are not tokens: the same pool in blocks of 16 and 64 (inference-sim PR 1035 ignored the flag)."""
    small, large = (fitted(LLAMA_8B, H100, block_size=n) for n in (16, 64))

    assert small.budget.kv_pool_bytes == large.budget.kv_pool_bytes
    assert small.blocks // 4 - large.blocks in (0, 1)
    assert large.sequence_bytes(65) == 128 * 131072


@pytest.mark.parametrize(
    ("asked", "flag", "legal"),
    [
        ({"tensor": 3}, "--tp", "legal: 1, 2, 4, 8, 16, 32"),
        ({"pipeline": 33}, "--pp", "legal: 1 to 32"),
        ({"attention_data": 2}, "--dp", "run replicas instead"),
        ({"expert": 2}, "--ep", "has no experts; legal: 1"),
        ({"tensor": 16, "decode_context": 4}, "--dcp", "legal: 1, 2"),
        ({"max_model_len": 131073}, "--max-model-len", "legal: 1 to 131072"),
        ({"max_model_len": 100, "input_tokens": 90, "output_tokens": 11}, "--input", "more than the 100"),
        ({"weights": "q4_k_m"}, "--weights", "legal: fp32, bf16"),
        ({"kv": "nvfp4"}, "--kv", "legal: fp32, bf16, fp16, fp8"),
        ({"engine": "llama.cpp", "weights": "fp8"}, "--weights", "legal: bf16, fp16"),
        ({"engine": "llama.cpp", "utilization": 0.9}, "--gpu-memory-utilization", "no memory fraction"),
        ({"engine": "sglang", "tensor": 16, "decode_context": 2}, "--dcp", "vllm only"),
    ],
)
def test_what_cannot_be_followed_is_refused_at_its_flag(asked: dict[str, object], flag: str, legal: str) -> None:
    with pytest.raises(DeploymentError, match=legal) as caught:
        deployed(LLAMA_8B, H100, **asked)

    assert caught.value.flag == flag


def test_experts_limit_expert_parallelism() -> None:
    with pytest.raises(DeploymentError, match="legal: 1, 8"):
        deployed(R1, H200, tensor=8, expert=4)
    with pytest.raises(DeploymentError, match="more than the 8 experts"):
        deployed("mistralai/Mixtral-8x7B-Instruct-v0.1", H100, tensor=16, expert=16)


def test_an_engine_that_does_not_run_there_is_refused() -> None:
    with pytest.raises(DeploymentError, match="does not run on AMD GPUs; it runs on NVIDIA"):
        deployed(LLAMA_8B, "MI300X", engine="tensorrt-llm")


def test_decode_context_needs_copies_to_share() -> None:
    arch = CATALOG.architecture(LLAMA_70B)

    assert [legal_decode_context(arch, tp) for tp in (4, 8, 16, 64)] == [[1], [1], [1, 2], [1, 2, 4, 8]]


def test_a_replica_is_spread_over_few_nodes() -> None:
    assert deployed(R1, H100, tensor=16).layout.node_gpus == 8
    assert not deployed(R1, "GB200", tensor=16).layout.crosses_nodes


def test_a_shape_needs_no_catalog_entry() -> None:
    arch = replace(CATALOG.architecture(LLAMA_8B), name="local/mine")

    assert deploy(Request(), CATALOG, arch, H100).model == "local/mine"


def test_the_memory_of_slots_is_set_aside_by_llama_cpp() -> None:
    asked = {"engine": "llama.cpp", "weights": "q4_k_m", "max_model_len": 32768}
    four, eight = (fit(deployed(LLAMA_8B, "RTX-4090", max_num_seqs=n, **asked)) for n in (4, 8))

    assert (four.outcome, eight.outcome) == (Outcome.OK, Outcome.KV_TOO_SMALL)
    assert eight.short_bytes == pytest.approx(8 * eight.budget.longest_bytes - eight.budget.kv_pool_bytes)
