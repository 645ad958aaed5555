"""`planner estimate`: the answer first, JSON with the keys of the contract, exit codes, and every mistake as one line."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from cli_run import ROOT, run

LLAMA = ("estimate", "--model", "llama-3.3-70b", "--gpu", "h100-sxm", "--tp", "4", "--weights", "fp8")
SMALL = ("estimate", "--model", "llama-3.1-8b", "--gpu", "h100-sxm")
GPT_OSS = ("estimate", "--model", "openai/gpt-oss-120b", "--gpu", "H100-SXM-80GB", "--tp", "1")
R1 = ("estimate", "--model", "deepseek-ai/DeepSeek-R1", "--gpu", "H200-SXM-141GB", "--tp", "8", "--weights", "fp8")
CONFIG = ROOT / "tests" / "data" / "configs"


def data(*arguments: str) -> dict[str, Any]:
    """Return the JSON of a run."""
    parsed: dict[str, Any] = json.loads(run(*arguments, "--format", "json").out)
    return parsed


def test_the_answer_comes_first() -> None:
    done = run(*LLAMA)
    lines = done.out.splitlines()

    assert (done.code, done.err) == (0, "")
    assert lines[0] == "meta-llama/Llama-3.3-70B-Instruct on 4 x H100-SXM-80GB (TP4), fp8 weights, bf16 KV, vllm 0.33"
    assert lines[1].startswith("fits, with ")
    assert len(lines) <= 28


def test_the_latent_of_r1_is_undivided_by_tensor_parallelism() -> None:
    done = run(*R1)

    assert done.code == 0
    assert "undivided by TP: 68.6 KiB per token on each of the 8 GPUs" in " ".join(done.out.split())


def test_gpt_oss_on_one_h100_barely_fits_and_says_why() -> None:
    done = run(*GPT_OSS)
    text = " ".join(done.out.split())

    assert done.code in (0, 3)
    assert "barely fits" in text
    assert "weights take 65." in text
    assert "experts 61.4" in text


def test_what_does_not_fit_is_an_answer_and_exit_code_3() -> None:
    done = run("estimate", "--model", "llama-3.3-70b", "--gpu", "h100-sxm", "--tp", "2")
    answer = data("estimate", "--model", "llama-3.3-70b", "--gpu", "h100-sxm", "--tp", "2")

    assert (done.code, done.err) == (3, "")
    assert "does not fit: " in done.out
    assert "GiB short per GPU" in done.out
    assert answer["fits"] is False
    assert answer["outcome"] == "kv_too_small"
    assert answer["short_bytes"] > 0
    assert answer["limited_by"] == "capacity"
    assert answer["remedies"]
    assert all(answer[key] is None for key in ("step_s", "ttft_s", "tpot_s", "output_tokens_per_s", "band"))


def test_json_has_the_keys_of_the_contract() -> None:
    answer = data(*LLAMA, "--concurrency", "64")

    assert answer["schema_version"] == 1
    assert list(answer["hbm_bytes_per_gpu"]) == [
        "usable", "weights", "kv_pool", "activations", "runtime", "graphs", "free",
    ]  # fmt: skip
    assert {
        "kv_bytes_per_token_per_gpu", "kv_tokens", "max_concurrency", "longest_context_tokens", "weight_bytes_per_gpu",
        "limited_by", "lever", "notes", "assumptions", "found", "remedies", "engine", "model", "gpu",
    } <= set(answer)  # fmt: skip
    assert sum(answer["step_s"]["parts"].values()) == pytest.approx(answer["step_s"]["total"], rel=1e-9)
    assert set(answer["ttft_s"]) == set(answer["tpot_s"]) == {"p50", "p95"}
    assert answer["band"]["class"] == "A"
    assert answer["band"]["low"]["ttft_s"]["p50"] < answer["band"]["high"]["ttft_s"]["p50"]
    parts = answer["hbm_bytes_per_gpu"]
    assert sum(parts.values()) - parts["usable"] == pytest.approx(parts["usable"], rel=1e-9)
    assert {"key", "value", "source"} == set(answer["assumptions"][0])


def test_explain_adds_the_parts_of_a_step_and_sources() -> None:
    plain, more = run(*LLAMA, "--rate", "2").out, run(*LLAMA, "--rate", "2", "--explain").out

    for words in ("attention weights", "collectives", "Constants", "Assumed", "catalog/calibration/default.yaml"):
        assert words not in plain
        assert words in more


@pytest.mark.parametrize(
    ("search", "start", "value"),
    [
        (("--find", "max-model-len"), "max_model_len 131,072 (all that the model has)", 131072),
        (("--find", "min-tp"), "--tp 1 is the least that fits", 1),
        (("--find", "max-concurrency", "--max-model-len", "131072"), "4 sequences of 131,072 tokens", 4),
    ],
)
def test_a_search_answers_first(search: tuple[str, ...], start: str, value: int) -> None:
    asked = SMALL if "min-tp" in search else LLAMA
    done, answer = run(*asked, *search), data(*asked, *search)

    assert done.code == 0
    assert done.out.startswith(start)
    assert (answer["found"]["find"], answer["found"]["value"]) == (search[1], value)


def test_the_largest_rate_keeps_its_limits() -> None:
    answer = data(*LLAMA, "--find", "max-rate", "--ttft-p95", "2s", "--tpot-p95", "50ms")

    assert answer["found"]["value"] == answer["requests_per_s"] > 0
    assert answer["tpot_s"]["p95"] <= 0.0501
    assert answer["ttft_s"]["p95"] <= 2.001


def test_a_search_without_an_answer_is_exit_code_3() -> None:
    done = run(*SMALL, "--find", "max-rate", "--ttft-p95", "1us")

    assert done.code == 3
    assert done.out.startswith("no rate holds TTFT p95 of 1 us: even alone TTFT is ")


def test_a_failed_search_for_a_rate_describes_no_speed() -> None:
    search = ("--find", "max-rate", "--ttft-p95", "1ms", "--tpot-p95", "1 s")
    done, answer = run(*LLAMA, *search), data(*LLAMA, *search)

    assert done.code == 3
    assert done.out.startswith("no rate holds TPOT p95 of 1 s and TTFT p95 of 1 ms: even alone TTFT is ")
    assert "Speed" not in done.out
    assert "bears" not in done.out
    assert answer["limited_by"] == "compute"
    assert answer["ttft_s"] is None
    assert answer["found"]["alone"]["ttft_s"]["p95"] > 0.01


def test_a_file_is_a_model_however_it_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = next(path for path in sorted(CONFIG.rglob("*.json")) if '"architectures"' in path.read_text("utf-8"))
    for name in ("config.json", "shape"):
        shutil.copy(source, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    texts = [
        run("estimate", "--model", name, "--gpu", "h200-sxm").out for name in ("config.json", "./config.json", "shape")
    ]

    assert texts[0].count(" on H200-SXM-141GB") == 1
    assert texts == [texts[0]] * 3


@pytest.mark.parametrize("flag", ["--model", "--draft"])
@pytest.mark.parametrize("name", ["config.json", "nowhere/config.json", "a.JSON"])
def test_a_missing_file_is_said(flag: str, name: str) -> None:
    done = run(*SMALL, flag, name)

    assert (done.code, done.out) == (64, "")
    assert done.err.startswith(f"planner: {flag}: there is no file {name}; ")


def test_a_closed_loop_tells_whose_limit_is_shown() -> None:
    loop, rate = run(*LLAMA, "--concurrency", "64").out, run(*LLAMA, "--rate", "2").out

    assert "  with independent arrivals at most " in loop
    assert "one replica bears" not in loop
    assert "  one replica bears at most " in rate


def test_a_batch_is_shown_at_what_the_cache_holds() -> None:
    asked = (*LLAMA, "--input", "30000", "--output", "256", "--batch", "64")
    text, answer = run(*asked).out, data(*asked)

    assert "Speed of one decode step at batch 20, not 64, " in text
    assert answer["load"]["value"] == 64
    assert answer["load"]["mean_batch"] == answer["load"]["sequences_held"] == 20
    assert answer["limited_by"] == "capacity"


@pytest.mark.parametrize("version", ["0.0", "99"])
def test_a_version_that_was_not_measured_is_said_near_the_top(version: str) -> None:
    done = run(*SMALL, "--engine-version", version)

    assert done.out.splitlines()[2].startswith(f"warning: vllm {version} is outside of what was measured")
    assert ("newer than the newest known" in done.out) == (version == "99")
    assert any("outside of what was measured" in w for w in data(*SMALL, "--engine-version", version)["warnings"])


@pytest.mark.parametrize("version", ["0.12", "0.19"])
def test_a_version_that_was_measured_needs_no_warning(version: str) -> None:
    assert "outside of what was measured" not in run(*SMALL, "--engine-version", version).out


def test_sequences_are_capped_to_the_tokens_of_a_step_and_that_is_said() -> None:
    answer = data(*LLAMA, "--max-num-batched-tokens", "512")
    said = next(a for a in answer["assumptions"] if a["key"] == "max_num_seqs")

    assert answer["max_num_seqs"] == 512
    assert "write --max-num-seqs 512" in said["source"]


def test_no_remedy_for_gpt_oss_is_refused_by_the_engine() -> None:
    for remedy in data(*GPT_OSS)["remedies"]:
        assert run(*GPT_OSS, *remedy["flags"].split()).code == 0


@pytest.mark.parametrize(
    "arguments",
    [
        ("--input", "1", "--output", "1", "--max-model-len", "2", "--max-num-seqs", "1"),
        ("--max-num-batched-tokens", "1", "--max-model-len", "1"),
        ("--concurrency", "1", "--input", "1", "--output", "1"),
        ("--find", "max-concurrency", "--max-model-len", "1", "--explain"),
    ],
    ids=" ".join,
)
def test_one_of_a_thing_is_not_plural(arguments: tuple[str, ...]) -> None:
    assert re.findall(r"(?<![\d,.])1 (?:sequences|tokens|requests|images|videos)\b", run(*SMALL, *arguments).out) == []


def test_weights_that_are_too_large_are_not_taken_of_less() -> None:
    text = " ".join(run("estimate", "--model", "llama-3.3-70b", "--gpu", "l4").out.split())

    assert "weights need 131.4 GiB (dense 105.0), 19.8 GiB are there" in text
    assert "leave nothing for the cache" in text


def test_a_config_file_is_a_model(tmp_path: Path) -> None:
    source = next(path for path in sorted(CONFIG.rglob("*.json")) if '"architectures"' in path.read_text("utf-8"))
    folder = tmp_path / "my model"
    folder.mkdir()
    shutil.copy(source, folder / "config.json")
    done = run("estimate", "--model", folder / "config.json", "--gpu", "h200-sxm", "--tp", "1")

    assert done.code in (0, 3), done.err
    assert done.out.startswith("local/model on H200-SXM-141GB")


@pytest.mark.parametrize("text", ["", "{", "[]", '{"architectures": ["NoSuchModel"]}', "\x00"])
def test_a_bad_config_is_wrong_input(text: str, tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(text, encoding="utf-8")
    done = run("estimate", "--model", path, "--gpu", "h200-sxm")

    assert (done.code, done.out) == (1, "")
    assert "Traceback" not in done.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--tp", "3"), "--tp: 3 does not divide the 32 query heads of meta-llama/Llama-3.1-8B-Instruct; legal: 1, 2, 4"),
        (("--tp", "0"), "--tp: `0` is not a whole number from 1"),
        (("--tp", "-1"), "--tp: `-1` is negative"),
        (("--tp", "nan"), "--tp: `nan` is not a count"),
        (("--tp", "inf"), "--tp: `inf` is not a count"),
        (("--tp", "1e400"), "--tp: `1e400` is not a finite number"),
        (("--tp", "1e9"), "--tp: 1000000000 does not divide"),
        (("--tp", ""), "--tp: "),
        (("--pp", "33"), "--pp: 33 stages are more than the 32 layers; legal: 1 to 32"),
        (("--dp", "2"), "--dp: attention data parallelism is for mixture-of-experts models"),
        (("--ep", "2"), "--ep: meta-llama/Llama-3.1-8B-Instruct has no experts; legal: 1"),
        (("--dcp", "2"), "--dcp: 2 does not go with --tp 1"),
        (("--max-model-len", "131073"), "--max-model-len: 131,073 is longer than the 131,072 tokens"),
        (("--max-model-len", "0"), "--max-model-len: `0` is not a whole number from 1"),
        (("--max-num-seqs", "1e9"), "--max-num-seqs: `1e9` is too many; legal: 1 to 65,536"),
        (("--max-num-seqs", "9000"), "write --max-num-seqs 8192 or less, or --max-num-batched-tokens 9000 or more"),
        (("--max-num-seqs", "1024", "--max-num-batched-tokens", "512"), "--max-num-seqs: vllm refuses 1,024 sequences with steps of 512 tokens"),
        (("--no-chunked-prefill", "--max-num-batched-tokens", "2048"), "--max-num-batched-tokens: vllm refuses steps of 2,048 tokens for unsplit prompts"),
        (("--images", "5"), "--images: meta-llama/Llama-3.1-8B-Instruct reads text only; leave it out"),
        (("--videos", "1"), "--videos: meta-llama/Llama-3.1-8B-Instruct reads text only; leave it out"),
        (("--find", "min-tp", "--tp", "4"), "--tp: --find min-tp searches for it: leave it out"),
        (("--find", "max-model-len", "--max-model-len", "4096"), "--max-model-len: --find max-model-len searches for it: leave it out"),
        (("--confidence", "0.1%"), "--confidence: `0.1%` is no confidence; legal: at least 50 % and below 100 %"),
        (("--confidence", "49.9%"), "legal: at least 50 % and below 100 %"),
        (("--max-num-batched-tokens", "1.5"), "--max-num-batched-tokens: `1.5` is not a whole number from 1"),
        (("--gpu-memory-utilization", "1.1"), "--gpu-memory-utilization: `1.1` is not a memory fraction; legal: 0.01 to 1"),
        (("--gpu-memory-utilization", "110%"), "legal: 0.01 to 1"),
        (("--gpu-memory-utilization", "0"), "legal: 0.01 to 1"),
        (("--gpu-memory-utilization", "nan"), "--gpu-memory-utilization: `nan` is not a ratio"),
        (("--gpu-memory-utilization", "-0.5"), "--gpu-memory-utilization: `-0.5` is negative"),
        (("--block-size", "3"), "--block-size: 3 is no block size; legal: 1, 2, 4"),
        (("--images", "-1"), "--images: `-1` is negative"),
        (("--videos", "1e9"), "--videos: `1e9` is too many; legal: 0 to 10,000"),
        (("--max-loras", "4"), "--lora-rank is missing"),
        (("--lora-rank", "4"), "--max-loras is missing"),
        (("--lora-targets", "q"), "--max-loras is missing"),
        (("--max-loras", "4", "--lora-rank", "8", "--lora-targets", "q,x"), "--lora-targets: `x` is none of its values"),
        (("--max-loras", "4", "--lora-rank", "8", "--lora-targets", ""), "--lora-targets: an item of the list is empty"),
        (("--confidence", "1"), "--confidence: `1` is no confidence; legal: at least 50 % and below 100 %"),
        (("--confidence", "0%"), "--confidence: `0%` is no confidence"),
        (("--rate", "0"), "--rate: `0` is no rate; legal: 1e-06 to 1e+09 req/s"),
        (("--rate", "-3"), "--rate: `-3` is negative"),
        (("--rate", "fast"), "--rate: `fast` is not a request rate"),
        (("--rate", ""), "--rate: "),
        (("--rate", "1e300"), "--rate: `1e300` is no rate"),
        (("--concurrency", "0"), "--concurrency: `0` is not a whole number from 1"),
        (("--batch", "1", "--max"), "--max: give one load, not --batch and --max"),
        (("--rate", "1", "--concurrency", "2"), "give one load"),
        (("--find", "max-rate", "--max"), "--max: --find max-rate searches for the load itself"),
        (("--find", "max-concurrency", "--batch", "2"), "--batch: --find max-concurrency searches for the load itself"),
        (("--ttft-p95", "1s"), "--ttft-p95: is a limit for --find max-rate"),
        (("--find", "max-rate", "--tpot-p95", "50"), "--tpot-p95: "),
        (("--find", "max-rate", "--tpot-p95", "0ms"), "--tpot-p95: `0ms` is no latency"),
        (("--find", "everything"), "'everything' is not one of"),
        (("--input", "131072"), "--input: 131,072 input and 256 output tokens are more than the 131,072"),
        (("--max-model-len", "100", "--output", "200"), "--input: 1,024 input and 200 output tokens are more than the 100"),
        (("--weights", "q4_k_m"), "--weights: q4_k_m is a llama.cpp format; the engine is vllm; legal: fp32"),
        (("--kv", "nvfp4"), "--kv: nvfp4 KV cache needs native 4-bit floating point"),
        (("--engine", "llama.cpp", "--weights", "fp8"), "--weights: llama.cpp reads GGUF formats"),
        (("--engine", "llama.cpp", "--gpu-memory-utilization", "0.9"), "llama.cpp has no memory fraction"),
        (("--engine", "tensorrt-llm", "--gpu", "mi300x"), "--engine: tensorrt-llm does not run on AMD GPUs"),
        (("--format", "csv"), "'csv' is not one of 'table', 'json'"),
    ],
    ids=lambda value: " ".join(value)[:50] if isinstance(value, tuple) else "",
)  # fmt: skip
def test_wrong_usage_is_one_line(arguments: tuple[str, ...], words: str) -> None:
    done = run(*SMALL, *arguments)

    assert (done.code, done.out) == (64, "")
    assert done.err.startswith("planner: ")
    assert done.err.count("\n") == 1
    assert words in done.err


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("--weights", "fp9"), "planner: --weights: no format `fp9`; did you mean `fp8`? Known: fp32"),
        (("--kv", "\x1b[31m"), "planner: --kv: no format"),
    ],
)
def test_unknown_formats_are_wrong_usage(flags: tuple[str, str], words: str) -> None:
    done = run(*SMALL, *flags)

    assert (done.code, done.out) == (64, "")
    assert words in done.err


@pytest.mark.parametrize(
    ("label", "weights"),
    [
        ("w4a16", "int4"),
        ("AWQ", "int4"),
        ("w8a8-fp8", "fp8"),
        ("half", "fp16"),
        ("fp8", "fp8"),
        ("fp8-block", "fp8-block"),
    ],
)
def test_weights_are_named_as_measurements_name_them(label: str, weights: str) -> None:
    said = run(*SMALL, "--weights", label, "--format", "json").out

    assert said == run(*SMALL, "--weights", weights, "--format", "json").out
    assert json.loads(said)["weights"] == weights


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--model", "llama-3.1-9b"), "error[catalog/unknown-model]: no model `llama-3.1-9b` in the catalog"),
        (("--gpu", "h100"), "gpu `h100` could mean"),
        (("--gpu", "h100-smx"), "did you mean H100-SXM-80GB"),
        (("--gpu", "TPU-v5e"), "is not modelled"),
        (("--engine", "vlm"), "no engine `vlm` in the catalog; did you mean vllm?"),
        (("--engine-version", "x"), "no engine version `vllm x`"),
        (("--draft", "llama-3.2-1c"), "no model `llama-3.2-1c` in the catalog; did you mean"),
        (("--model", "deepseek-ai/DeepSeek-R1", "--max-loras", "1", "--lora-rank", "8"), "error[model/unsupported]: deepseek-ai/DeepSeek-R1: adapters on latent attention"),
        (("--catalog", "nowhere"), "nowhere is no catalog"),
    ],
    ids=lambda value: " ".join(value)[:50] if isinstance(value, tuple) else "",
)  # fmt: skip
def test_unknown_names_are_wrong_input(arguments: tuple[str, ...], words: str) -> None:
    done = run(*SMALL, *arguments)

    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("error[")
    assert done.err.count("\n") == 1
    assert words in done.err


@pytest.mark.parametrize(
    "arguments",
    [
        ("--max-num-seqs", "1e9"),
        ("--max-num-batched-tokens", "1"),
        ("--max-num-batched-tokens", "1e9"),
        ("--max-loras", "1e9", "--lora-rank", "1e9"),
        ("--batch", "1e9"),
        ("--concurrency", "1e9"),
        ("--rate", "1e9"),
        ("--rate", "1e-6"),
        ("--rate", "0.001 req/day"),
        ("--input", "1", "--output", "1", "--max"),
        ("--input", "131071", "--output", "1", "--max"),
        ("--input", "1", "--output", "131071", "--rate", "1"),
        ("--input", "1", "--output", "131071", "--concurrency", "7"),
        ("--confidence", "50%", "--max"),
        ("--confidence", "99.9%", "--max"),
        ("--gpu-memory-utilization", "0.01"),
        ("--gpu-memory-utilization", "1"),
        ("--engine-version", "9999999999"),
        ("--engine", "llama.cpp", "--max"),
        ("--engine", "sglang", "--no-chunked-prefill", "--max"),
        ("--pp", "32", "--tp", "32", "--max"),
        ("--images", "0", "--videos", "0"),
        ("--max-num-seqs", "1", "--max"),
        ("--block-size", "256", "--max-model-len", "1"),
    ],
    ids=" ".join,
)
def test_extremes_are_answered(arguments: tuple[str, ...]) -> None:
    done = run(*SMALL, *arguments, "--format", "json")

    if done.code == 64:
        assert done.err.count("\n") == 1
        return
    assert done.code in (0, 3), done.err
    assert json.loads(done.out)["schema_version"] == 1
    assert run(*SMALL, *arguments, "--explain").code == done.code


def test_the_environment_has_twins_of_flags() -> None:
    assert data(*SMALL)["tensor_parallel"] == 1
    done = run(*SMALL, "--format", "json", env={"PLANNER_TP": "2", "PLANNER_MAX_MODEL_LEN": "4096"})

    assert json.loads(done.out)["tensor_parallel"] == 2
    assert json.loads(done.out)["max_model_len"] == 4096


@pytest.mark.parametrize(
    ("arguments", "absent"),
    [
        (GPT_OSS, {"numpy", "scipy", "pyomo", "highspy", "rich"}),
        (R1, {"scipy", "pyomo", "highspy", "rich"}),
        ((*R1, "--rate", "1"), {"pyomo", "highspy", "rich"}),
    ],
    ids=["memory alone decides", "one step", "load"],
)
def test_nothing_heavy_is_loaded_without_need(arguments: tuple[str, ...], absent: set[str]) -> None:
    code = (
        f"import sys; from planner.cli import main; main({list(arguments)!r});"
        f"sys.exit(sorted({absent!r} & set(sys.modules)) != [])"
    )

    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=False).returncode == 0
