"""What a plan decides is what its engines are started with."""

from __future__ import annotations

import re
from typing import Any

import pytest
from export_plans import chat, exported, of_pools, over_nodes, prod

from planner.diagnostics import DiagnosticError
from planner.plan.schema import Pool


def flags(pool: Pool, target: str = "vllm", **choices: Any) -> dict[str, str]:
    """Return the flags of a pool with their values, empty for switches, and the weights as `model`."""
    words = [line.strip().removesuffix(" \\") for line in exported(of_pools(pool), target, **choices).text.splitlines()]
    start = next(i for i, word in enumerate(words) if word.startswith("exec "))
    found = {}
    for word in words[start + 1 : words.index('"$@"')]:
        name, _, value = word.partition("=" if re.match(r"--[a-z-]+=", word) else " ")
        found[name if word.startswith("--") else "model"] = value if word.startswith("--") else word
    return found


def refusal(pool: Pool, target: str = "vllm", **choices: Any) -> tuple[str, str, str]:
    """Return code, message and help of the one thing that is wrong with an export."""
    with pytest.raises(DiagnosticError) as caught:
        exported(of_pools(pool), target, **choices)
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.span is not None
    assert diagnostic.span.path == "plan.json"
    return diagnostic.code, diagnostic.message, " ".join(diagnostic.help)


def test_a_pool_of_vllm() -> None:
    assert flags(chat()) == {
        "model": "meta-llama/Llama-3.3-70B-Instruct",
        "--served-model-name": "chat",
        "--host": '"${HOST:-0.0.0.0}"',
        "--port": '"${PORT:-8000}"',
        "--tensor-parallel-size": "2",
        "--quantization": "fp8_per_tensor",
        "--kv-cache-dtype": "fp8",
        "--max-model-len": "32768",
        "--max-num-seqs": "111",
        "--max-num-batched-tokens": "8192",
        "--gpu-memory-utilization": "0.9",
        "--enable-prefix-caching": "",
        "--enable-chunked-prefill": "",
    }


def test_a_pool_of_sglang() -> None:
    pool = chat({"chunked_prefill": False, "prefix_caching": False, "block_size": 64}, engine="sglang")

    assert flags(pool, "sglang") == {
        "--model-path": "meta-llama/Llama-3.3-70B-Instruct",
        "--served-model-name": "chat",
        "--host": '"${HOST:-0.0.0.0}"',
        "--port": '"${PORT:-8000}"',
        "--tensor-parallel-size": "2",
        "--quantization": "fp8",
        "--kv-cache-dtype": "fp8_e4m3",
        "--context-length": "32768",
        "--max-running-requests": "111",
        "--chunked-prefill-size": "-1",
        "--max-prefill-tokens": "8192",
        "--mem-fraction-static": "0.9",
        "--page-size": "64",
        "--disable-radix-cache": "",
        "--enable-metrics": "",
    }


def test_data_parallel_attention_is_counted_as_each_engine_counts_it() -> None:
    layout = {"tensor_parallel": 2, "attention_data_parallel": 4, "expert_parallel": 8}
    ours = flags(chat({"gpus_in_node": 8}, **layout))
    theirs = flags(chat({"gpus_in_node": 8}, engine="sglang", **layout), "sglang")

    assert (ours["--tensor-parallel-size"], ours["--data-parallel-size"]) == ("2", "4")
    assert ours["--enable-expert-parallel"] == ""
    assert ours["--max-num-seqs"] == "28"  # of each of four ranks, for 111 of the replica
    assert (theirs["--tensor-parallel-size"], theirs["--data-parallel-size"]) == ("8", "4")
    assert theirs["--enable-dp-attention"] == ""
    assert (theirs["--expert-parallel-size"], theirs["--max-running-requests"]) == ("8", "111")
    # SGLang divides this by its ranks; each of them is planned to cut prompts at 8192 tokens, as those of vLLM do.
    assert (ours["--max-num-batched-tokens"], theirs["--chunked-prefill-size"]) == ("8192", "32768")
    assert theirs["--max-prefill-tokens"] == "8192"


@pytest.mark.parametrize(
    ("weights", "native", "version", "expected"),
    [
        ("bf16", "bf16", "0.33", {"--dtype": "bfloat16"}),
        ("fp16", "bf16", "0.33", {"--dtype": "float16"}),
        ("bf16", "fp32", "0.33", {"--dtype": "bfloat16"}),
        ("mxfp4", "mxfp4", "0.33", {}),
        ("fp8", "fp8", "0.33", {}),
        ("fp8", "bf16", "0.33.1", {"--quantization": "fp8_per_tensor"}),
        ("fp8", "bf16", "0.19", {"--quantization": "fp8"}),
    ],
)
def test_weights(weights: str, native: str, version: str, expected: dict[str, str]) -> None:
    found = flags(chat({"native_weights": native}, weights=weights, engine="vllm", version=version))

    assert {k: v for k, v in found.items() if k in ("--dtype", "--quantization")} == expected


def test_a_checkpoint_is_loaded_as_it_is() -> None:
    of_the_spec = flags(chat(checkpoint="org/chat-fp8"))
    of_the_command = flags(chat(checkpoint="org/chat-fp8"), checkpoints={"chat-2": "/models/own"})

    assert of_the_spec["model"] == "org/chat-fp8"
    assert of_the_command["model"] == "/models/own"
    assert "--quantization" not in of_the_spec | of_the_command


@pytest.mark.parametrize(
    ("weights", "native"), [("int4", "bf16"), ("nvfp4", "bf16"), ("fp8", "int4"), ("q4_k_m", "bf16")]
)
def test_weights_that_nobody_has_are_refused(weights: str, native: str) -> None:
    code, message, help = refusal(chat({"native_weights": native}, weights=weights))

    assert code == "export/no-checkpoint"
    assert f"pool `chat-2`: it serves {weights} weights" in message
    assert "--checkpoint chat-2=ORG/REPOSITORY" in help
    assert "models.chat.checkpoints" in help


def test_a_model_without_a_repository_needs_a_checkpoint() -> None:
    code, _, _ = refusal(chat({"repository": None, "native_weights": "fp8"}))

    assert code == "export/no-checkpoint"
    assert flags(chat({"repository": None}, checkpoint="/models/own"))["model"] == "/models/own"


def test_plans_of_older_releases_are_refused() -> None:
    code, message, help = refusal(chat().model_copy(update={"serving": None}))

    assert code == "plan/older"
    assert "older release" in message
    assert "solve" in help


@pytest.mark.parametrize("engine", ["llama.cpp", "tensorrt-llm"])
@pytest.mark.parametrize("target", ["kubernetes", "kserve", "llm-d", "dynamo", "skypilot"])
def test_engines_without_a_mapping_are_refused(engine: str, target: str) -> None:
    code, message, help = refusal(chat(engine=engine), target)

    assert code == "export/unsupported"
    assert engine in message
    assert "--to csv" in help


@pytest.mark.parametrize("target", ["kserve", "llm-d", "vllm"])
def test_targets_of_vllm_refuse_a_fleet_without_it(target: str) -> None:
    assert refusal(chat(engine="sglang"), target)[0] == "export/unsupported"


def test_pools_on_another_engine_are_left_out_of_a_script_with_a_note() -> None:
    plan = of_pools(chat(), chat(name="other", engine="sglang"))

    assert "left out: pool `other` runs on sglang" in exported(plan, "vllm").notes
    assert "other" not in exported(plan, "vllm").text


@pytest.mark.parametrize(
    "pool",
    [
        chat({"chunked_prefill": False}),
        chat(max_num_batched_tokens=64),
        chat(kv_cache="int8", engine="sglang"),
        chat(checkpoint="--trust-remote-code"),
        over_nodes(attention_data_parallel=2),
    ],
    ids=["no chunks", "few tokens", "kv", "flag for a name", "attention over nodes"],
)
def test_what_an_engine_would_not_start_with_is_refused(pool: Pool) -> None:
    assert refusal(pool, pool.engine.name)[0] == "export/unsupported"


def test_everything_that_is_wrong_is_said_at_once() -> None:
    with pytest.raises(DiagnosticError) as caught:
        exported(of_pools(chat(weights="int4"), chat(name="other", weights="int4"), chat(name="good")), "vllm")

    assert len(caught.value.diagnostics) == 2


def test_notes_say_what_is_quantised_on_load_and_which_release_the_flags_are_of() -> None:
    notes = exported(
        of_pools(chat(engine="vllm", version="0.19.1"), chat(name="own", checkpoint="org/own")), "vllm"
    ).notes

    assert any("quantised as they load in chat-2;" in note for note in notes)
    assert any("flags are those of vllm 0.33; the plan is for 0.19.1" in note for note in notes)


def test_only_the_pools_that_are_asked_for() -> None:
    text = exported(prod(), "vllm", pools=frozenset({"reason"})).text

    assert "gpt-oss-120b" in text
    assert "Llama" not in text
