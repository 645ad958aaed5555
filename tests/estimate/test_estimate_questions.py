"""Questions that people asked in public about what fits, with the settled answers (GitHub issues named in each test)."""

from __future__ import annotations

import pytest
from estimate_cases import (
    A100,
    GPT_OSS,
    H100,
    LLAMA_8B,
    LLAMA_70B,
    LLAMA_405B_FP8,
    R1,
    V2,
    VLM_8B,
    deployed,
    estimated,
    fitted,
    gib,
)

from planner.estimate.answer import LoadKind, Search
from planner.estimate.memory import fits
from planner.physics.memory import Outcome


def words(*texts: str) -> str:
    """Join warnings or notes."""
    return " ".join(texts)


@pytest.mark.parametrize(("kv", "per_user", "holds_five"), [("fp8", 20.0, True), ("bf16", 40.0, False)])
def test_five_users_with_the_whole_window_of_a_70b(kv: str, per_user: float, holds_five: bool) -> None:
    """vLLM 12400: 67.7 GiB of weights; 20 GiB a user with fp8 KV fit 4 x 80 GB, 40 with bf16 are at the limit."""
    asked = {"tensor": 4, "weights": "fp8", "kv": kv, "max_model_len": 131072}
    done = estimated(LLAMA_70B, H100, search=Search.MAX_CONCURRENCY, **asked)

    assert gib(4 * done.fit.budget.weights_bytes) == pytest.approx(67.7, rel=0.01)
    assert gib(4 * done.fit.budget.longest_bytes) == pytest.approx(per_user, rel=0.001)
    assert done.found is not None
    assert (done.found.value or 0) >= 5 if holds_five else done.found.value == 4
    if not holds_five:
        assert done.fit.budget.max_concurrency == pytest.approx(5.0, rel=0.05)


def test_405b_fp8_needs_a_shorter_context_on_eight_h100() -> None:
    """vLLM 6746: 57.75 GiB per GPU, not 47.25, because part of the network is bf16; only a shorter length fits."""
    done = estimated(LLAMA_405B_FP8, H100, tensor=8, max_model_len=131072)

    assert gib(done.fit.budget.weights_bytes) == pytest.approx(57.75, rel=0.02)
    assert not done.fit.fits
    shorter = next(r for r in done.remedies if r.flags.startswith("--max-model-len"))
    assert shorter.fit.fits
    assert shorter.deployment.max_model_len == done.longest_context < 131072


@pytest.mark.parametrize(("tokens", "outcome"), [(20_000, "ok"), (29_000, "kv_too_small"), (35_000, "ok")])
def test_longer_fits_where_chunking_turns_on(tokens: int, outcome: str) -> None:
    """vLLM 10517: 20k works, 29k fails, 35k works, since prompts are chunked by default above 32k."""
    done = estimated(LLAMA_8B, "RTX-3090", engine_version="0.6", max_model_len=tokens)

    assert done.fit.outcome.value == outcome
    peaks = {20_000: 2.07, 29_000: 2.99, 35_000: 0.06}
    assert gib(done.fit.budget.activation_bytes) == pytest.approx(peaks[tokens], rel=0.05)
    if outcome != "ok":
        flags = [remedy.flags for remedy in done.remedies]
        assert flags[0] == "--chunked-prefill"
        assert "--max-model-len 32769" in flags


def test_the_pool_is_reserved_and_not_needed() -> None:
    """vLLM 17891: a small model takes 70 GB because the engine fills its budget with cache; need is another figure."""
    done = estimated("Qwen/Qwen2.5-VL-7B-Instruct", H100)
    b = done.fit.budget

    assert gib(b.usable_bytes - b.free_bytes) > 70
    assert gib(done.fit.sequence_bytes(1280)) < 0.1
    assert "is reserved at start-up, used or not: a request of 1,280 tokens needs 0.07 GiB" in words(*done.notes)


def test_grouped_heads_make_3000_tokens_small() -> None:
    """vLLM 8089: 3,000 tokens of Llama-3-70B take 0.92 GiB and not 7.9, the heads are grouped by 8."""
    held = fitted("meta-llama/Meta-Llama-3-70B", H100, tensor=4, weights="fp8", max_model_len=8192)

    assert gib(4 * held.budget.kv.bytes_at(3000)) == pytest.approx(0.92, rel=0.005)


def test_too_much_tensor_parallelism_adds_communication() -> None:
    """vLLM 8089: TP8 is hardly faster than TP4, so two replicas at TP4 beat one at TP8."""
    asked = {"weights": "fp8", "max_model_len": 8192}
    four, eight = (estimated(LLAMA_70B, H100, LoadKind.MAX, 0.0, tensor=tp, **asked).speed for tp in (4, 8))

    assert four is not None
    assert eight is not None
    assert four.times is not None
    assert eight.times is not None
    assert 2 * four.times.output_tokens_per_s > 1.2 * eight.times.output_tokens_per_s


def test_gpt_oss_120b_fits_barely_and_an_upgrade_can_break_it() -> None:
    """vLLM 23278, 27508, 33155: 1.7 GiB of cache at 0.95 and 1,024 tokens; the set-up broke from one version to another."""
    asked = {"utilization": 0.95, "max_num_batched_tokens": 1024}
    old = estimated(GPT_OSS, H100, engine_version="0.11.2", **asked)

    assert old.fit.fits
    assert gib(old.fit.budget.kv_pool_bytes) == pytest.approx(1.71, abs=0.8)
    assert any("barely fits" in warning and "upgrade" in warning for warning in old.warnings)
    assert old.longest_context < 131072
    assert not estimated(GPT_OSS, H100, engine_version="0.14.1", **asked, max_model_len=131072).fit.fits


def test_an_upgrade_that_would_not_start_is_named() -> None:
    done = estimated(GPT_OSS, H100, engine_version="0.19")

    assert done.fit.fits
    assert "an upgrade to vllm 0.21 or later does not start" in words(*done.warnings)


def test_33b_in_16_bits_on_two_48_gb_cards() -> None:
    """vLLM 4429, 2248: 31 GiB of weights per GPU of 44 usable; a shorter length is the first thing to cut."""
    held = fitted("deepseek-ai/deepseek-coder-33b-instruct", "L40", tensor=2, max_model_len=16384)
    tight = estimated("deepseek-ai/deepseek-coder-33b-instruct", "L40", tensor=2, max_model_len=16384, utilization=0.81)

    assert gib(held.budget.weights_bytes) == pytest.approx(31.0, rel=0.01)
    assert gib(held.budget.usable_bytes) == pytest.approx(44.0, rel=0.02)
    assert gib(held.budget.kv_pool_bytes) < 6
    assert not tight.fit.fits
    assert any(r.flags.startswith("--max-model-len") for r in tight.remedies)


def test_an_8b_vision_model_has_no_room_until_images_are_limited() -> None:
    """vLLM 26884: the worst case of images and videos takes the cache; limit them per prompt."""
    done = estimated(VLM_8B, "L4", max_model_len=8192)

    assert done.fit.outcome is Outcome.KV_TOO_SMALL
    assert done.remedies[0].flags.startswith("--images 0 --videos 0")
    assert done.remedies[0].cost.value == "setting"


def test_a_utilisation_of_one_is_warned_of() -> None:
    """vLLM 10797: never 1.0, some memory is gone at idle; lower length and sequences instead."""
    asked = {"weights": "fp16", "engine_version": "0.6"}
    done = estimated("meta-llama/Llama-3.2-3B-Instruct", "T4", utilization=1.0, **asked)

    assert "some memory is gone before the engine starts" in words(*done.warnings)
    assert "lower --max-model-len and --max-num-seqs" in words(*done.warnings)
    assert not done.fit.fits
    below = estimated("meta-llama/Llama-3.2-3B-Instruct", "T4", utilization=0.89, max_model_len=2048, weights="fp16")
    assert below.fit.fits
    assert "idle" not in words(*below.warnings)


def test_r1_holds_128k_over_two_nodes_and_excess_queues() -> None:
    """SGLang 3344: no OOM to be expected on 16 H100; the pool is fixed at start-up, so excess requests queue."""
    done = estimated(R1, H100, LoadKind.CONCURRENCY, 500.0, tensor=16, engine="sglang", max_model_len=131072,
                     input_tokens=16_000, output_tokens=1000)  # fmt: skip

    assert done.fit.fits
    assert done.deployment.layout.crosses_nodes
    assert "what finds no room queues silently" in words(*done.notes)
    assert done.speed is not None
    assert done.speed.waiting_s > 0.0
    assert done.speed.limited_by == "capacity"


def test_versions_before_latent_caches_store_all_heads() -> None:
    """DeepSeek-V2 83, vLLM PR 4650: tens of times fewer tokens before latent support; 13,360 tokens on 8 GPUs."""
    old, new = (estimated(V2, A100, tensor=8, max_model_len=16384, engine_version=v) for v in ("0.6", "0.33"))

    assert old.fit.budget.kv_tokens == pytest.approx(13_360, rel=0.1)
    assert new.fit.budget.kv_tokens > 10 * old.fit.budget.kv_tokens
    assert "stores keys and values of every head and not the latent" in words(*old.notes)


@pytest.mark.parametrize("model", ["google/gemma-3-27b-it", GPT_OSS, "Qwen/Qwen3-Next-80B-A3B-Instruct"])
def test_grouped_caches_are_given_part_by_part(model: str) -> None:
    """vLLM 51041: the token line is concurrency x length; what counts are fixed and per-token parts."""
    done = estimated(model, H100, tensor=4, max_model_len=16384)
    kv = done.fit.budget.kv

    assert kv.local_bytes_per_token > 0 or kv.fixed_bytes > 0
    assert "KV tokens are concurrency x max_model_len, compare concurrency" in words(*done.notes)
    b = done.fit.budget
    assert b.kv_tokens == pytest.approx(b.max_concurrency * 16384)


def test_a_version_that_changes_the_cache_is_to_be_pinned() -> None:
    """vLLM 43308: Gemma-4-31B in 4 bits on an A100, 55k and 525k tokens in 50 GiB before and from 0.21."""
    old, new = (
        estimated("google/gemma-4-31B-it", A100, weights="int4", engine_version=v, max_model_len=262144)
        for v in ("0.20", "0.21")
    )

    assert old.fit.budget.kv_tokens == pytest.approx(55_000, rel=0.05)
    assert new.fit.budget.kv_tokens == pytest.approx(525_000, rel=0.1)
    assert "pin the version" in words(*old.notes)
    assert "pin the version" in words(*new.notes)


def test_a_batch_beyond_the_cache_is_capped_by_it() -> None:
    """aiconfigurator PR 652: the engine queues silently, so the batch is capped by the blocks of the cache."""
    asked = {"weights": "fp8", "engine": "tensorrt-llm", "input_tokens": 8000, "output_tokens": 1000}
    done = estimated("Qwen/Qwen3-32B", H100, LoadKind.CONCURRENCY, 256.0, **asked)

    assert done.speed is not None
    assert done.speed.batch <= done.speed.held
    assert done.speed.held == pytest.approx(done.fit.sequences(8500), rel=0.1)
    assert done.speed.times is not None
    assert done.speed.times.ttft_p50_s > done.speed.waiting_s > 1.0
    assert "the engine queues the rest silently" in words(*done.notes)


def test_settings_of_blocks_and_memory_are_followed() -> None:
    """inference-sim PR 1035: a table ignored block size and utilisation; here both count."""
    low, high = (fitted(LLAMA_8B, H100, utilization=u) for u in (0.8, 0.9))

    assert high.budget.kv_pool_bytes - low.budget.kv_pool_bytes == pytest.approx(
        0.1 * high.budget.usable_bytes, abs=2.0
    )
    assert fitted(LLAMA_8B, H100, block_size=64).blocks == pytest.approx(fitted(LLAMA_8B, H100).blocks / 4, abs=1.0)
    assert fitted(LLAMA_8B, H100).budget.kv_pool_bytes < 0.9 * 80 * 2**30 - fitted(LLAMA_8B, H100).budget.weights_bytes


def test_slots_multiply_the_context() -> None:
    """ollama PR 14120: 32k of context for 4 slots is a cache of 131,072 tokens."""
    asked = {"engine": "llama.cpp", "weights": "q8_0", "max_model_len": 32768}
    four = estimated(LLAMA_8B, "RTX-4090", max_num_seqs=4, **asked)
    roomy = estimated(LLAMA_8B, "L40S", max_num_seqs=4, **asked)

    assert "4 x 32,768 = 131,072 tokens" in words(*roomy.notes)
    assert not four.fit.fits
    assert fits(deployed(LLAMA_8B, "RTX-4090", max_num_seqs=1, **asked))
    assert any(r.flags.startswith(("--max-num-seqs", "--max-model-len")) for r in four.remedies)


def test_blocks_of_64_tokens() -> None:
    """TensorRT-LLM 2268: 0.9 of what is free after load, in blocks of 64 x 524,288 bytes: 631 of them."""
    held = fitted("Qwen/Qwen1.5-7B-Chat", "A100-SXM-40GB", engine="tensorrt-llm", engine_version="0.13", weights="fp16")

    assert held.block_tokens == 64
    assert held.budget.kv.global_bytes_per_token == 524_288
    assert held.blocks == pytest.approx(631, rel=0.02)
    assert held.budget.kv_tokens == pytest.approx(40_384, rel=0.02)
