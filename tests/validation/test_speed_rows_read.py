"""Reading rows of published speeds: engine classes, targets, lengths, loads and layouts, and what is refused and why."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from speed_inputs import PLAIN_SPEED, read, shipped, speed, speed_cells, table
from validation_inputs import catalog

from planner.physics.formats import KV_FORMATS, WEIGHT_FORMATS
from planner.physics.types import Layout
from planner.validation.cells import NotScored
from planner.validation.speed import readable
from planner.validation.speed_engines import ENGINES, UNLIMITED, engine_class
from planner.validation.speed_formats import KV_WORDS, WEIGHT_WORDS, is_kv_word, kv_format, weight_format
from planner.validation.speed_predict import Batch, predict
from planner.validation.speed_rows import MLPERF_LENGTHS
from planner.validation.speed_targets import Target, target_of

SPLIT = "disagg prefill {pn}x(tp{pt} ep1 dpattn={pd}) on 8 GPUs; decode {dn}x(tp{dt} ep1 dpattn={dd}) on {dg} GPUs"


def refused(**changes: str) -> NotScored:
    with pytest.raises(NotScored) as caught:
        speed(**changes)
    return caught.value


@pytest.mark.parametrize(
    ("label", "date", "vendor", "is_moe", "expected"),
    [
        ("vLLM 0.11.0", "", "NVIDIA", False, "vllm_new"),
        ("vLLM 0.9.0, PyTorch 2.7.0", "2025-09", "NVIDIA", False, "vllm_new"),
        ("vLLM (vllm-openai:v0.13.0)", "", "NVIDIA", True, "vllm_new"),
        ("vLLM", "2025-06", "AMD", False, "vllm_new"),
        ("vLLM", "2025-05", "NVIDIA", False, "vllm_old"),
        ("vLLM", "", "NVIDIA", False, "vllm_old"),
        ("vLLM 0.4.3", "2026-01", "NVIDIA", False, "vllm_old"),
        ("vLLM 0.7.4.dev181", "2025-03", "NVIDIA", True, "vllm_07"),
        ("vLLM 0.7.3.dev138 ROCm 6.3", "2025-03", "AMD", True, "vllm_old_nonnv"),
        ("vLLM", "2024-11", "AMD", False, "vllm_old_nonnv"),
        ("vLLM", "2024-11", "Intel", False, "vllm_xpu"),
        ("vLLM 0.6.5.dev964+mlperf50, Pytorch 2.7.0a0", "2025-09", "AMD", False, "vllm_mlperf"),
        ("vLLM 0.9.0.2.dev108+g71faa1880.d20250730.rocm641", "2025-09", "AMD", False, "vllm_mlperf"),
        ("Mango LLMBoost AI Enterprise Platform, ROCm 6.12.12", "2025-09", "AMD", False, "vllm_mlperf"),
        ("TensorRT-LLM 0.14.0", "2024-11", "NVIDIA", False, "trt_cpp"),
        ("TensorRT-LLM 1.0 (PyTorch backend)", "", "NVIDIA", False, "trt_pt"),
        ("TensorRT-LLM (release:1.2.0rc2)", "", "NVIDIA", True, "trt_pt"),
        ("Dynamo TensorRT-LLM (tensorrtllm-runtime:0.7.0.post2)", "", "NVIDIA", True, "trt_pt"),
        ("TensorRT 10.11, CUDA 12.9", "2025-09", "NVIDIA", False, "trt_cpp"),
        ("NIM 1.8.0 (TensorRT-LLM)", "", "NVIDIA", False, "trt_cpp"),
        ("TensorRT-LLM", "2025-03", "NVIDIA", True, "trt_early_moe"),
        ("TensorRT-LLM", "2025-03", "NVIDIA", False, "trt_old"),
        ("TensorRT-LLM", "2024-11", "NVIDIA", True, "trt_old"),
        ("TensorRT-LLM", "2025-12", "NVIDIA", True, "trt_pt"),
        ("SGLang (sglang:v0.5.6-cu129-amd64)", "", "NVIDIA", True, "sglang_new"),
        ("SGLang 0.4.9", "2026-01", "NVIDIA", True, "sglang_old"),
        ("SGLang", "2025-03", "AMD", True, "sglang_old"),
        ("SGLang", "2025-07", "AMD", True, "sglang_new"),
        ("ATOM (atom:rocm7.1.1-ubuntu24.04)", "", "AMD", True, "atom"),
        ("text-generation-webui llama-cpp", "", "NVIDIA", False, "llamacpp"),
        ("llama.cpp b6918", "2025-11", "NVIDIA", True, "llamacpp"),
        ("ExLlamaV2", "2023-09", "NVIDIA", False, "exllama"),
        ("Deepspeed-MII", "2024-11", "NVIDIA", False, "ds_mii"),
        ("Deepspeed", "2024-11", "Intel", False, "ds_hpu"),
        ("TGI 2.0.4", "", "NVIDIA", False, "tgi"),
    ],
)
def test_labels_lead_to_engine_classes(label: str, date: str, vendor: str, is_moe: bool, expected: str) -> None:
    found = engine_class(label, date, vendor, is_moe)
    assert found is not None
    assert found.name == expected


@pytest.mark.parametrize("label", ["", "aphrodite", "LMDeploy 0.6"])
def test_unknown_engines_have_no_class(label: str) -> None:
    assert engine_class(label, "2025-11", "NVIDIA", False) is None


def test_every_class_of_the_suite_has_a_line_in_the_calibration() -> None:
    names = {row.engine.name for row in read().rows}
    assert len(names) > 10
    assert names <= set(shipped().engines)


@pytest.mark.parametrize(
    ("scenario", "metric", "expected"),
    [
        ("offline_max", "output_tok_s_total", ("output_tok_s_offline", "rate")),
        ("offline_max", "output_tok_s_per_gpu", ("output_tok_s_offline", "rate")),
        ("closed_loop", "output_tok_s_total", ("output_tok_s_closed_loop", "rate")),
        ("closed_loop", "ttft_ms_mean", ("ttft_ms", "ttft_mean")),
        ("closed_loop", "ttft_ms_p99", ("tail_ms", "ttft_p99")),
        ("closed_loop", "tpot_ms_p50", ("tpot_ms", "tpot_p50")),
        ("closed_loop", "itl_ms_mean", ("tpot_ms", "tpot_mean")),
        ("open_loop", "tpot_ms_p99", ("tail_ms", "tpot_p99")),
        ("burst_all_at_once", "ttft_ms_p50", ("ttft_ms", "ttft_p50")),
        ("static_batch", "batch_latency_s", ("static_latency", "static")),
        ("static_batch", "output_tok_s_total", ("static_latency", "static_rate")),
        ("static_batch", "decode_tok_s_batch1", ("decode_tok_s_batch1", "decode")),
        ("batch1", "prefill_tok_s", ("prefill", "prompt_rate")),
        ("batch1", "ttft_ms_batch1", ("prefill", "prompt")),
        ("mlperf_offline", "output_tok_s_total", ("mlperf_offline", "rate")),
        ("mlperf_server", "ttft_ms_p99", ("mlperf_latency", "ttft_p99")),
        ("mlperf_interactive", "tpot_ms_mean", ("mlperf_latency", "tpot_mean")),
    ],
)
def test_metrics_have_one_target(scenario: str, metric: str, expected: tuple[str, str]) -> None:
    assert target_of(scenario, metric) == Target(*expected)


@pytest.mark.parametrize(
    ("changes", "value"),
    [
        ({"metric": "tpot_ms_mean", "value": "20"}, 0.020),
        ({"metric": "output_tok_s_total", "value": "20"}, 20.0),
        ({"metric": "output_tok_s_per_gpu", "value": "20", "n_gpus": "8", "tp": "8"}, 160.0),
        ({"scenario": "static_batch", "batch": "8", "metric": "batch_latency_s", "value": "3.5"}, 3.5),
    ],
)
def test_values_are_in_base_units_of_the_whole_deployment(changes: dict[str, str], value: float) -> None:
    assert speed(**changes).value == pytest.approx(value)


@pytest.mark.parametrize(
    ("changes", "lengths"),
    [
        ({}, (1000.0, 200.0)),
        ({"notes": "range ratio 0.8"}, (900.0, 180.0)),
        ({"notes": "range ratio 1"}, (1000.0, 200.0)),
        ({"scenario": "batch1", "metric": "decode_tok_s_batch1", "value": "50", "isl": "", "osl": ""}, (512.0, 128.0)),
        ({"scenario": "batch1", "metric": "prefill_tok_s", "osl": ""}, (1000.0, 128.0)),
        ({"scenario": "mlperf_offline", "isl": "", "osl": ""}, MLPERF_LENGTHS["8b"]),
        ({"scenario": "mlperf_offline", "isl": "", "osl": "99"}, (MLPERF_LENGTHS["8b"][0], 99.0)),
        (
            {
                "scenario": "mlperf_offline",
                "isl": "",
                "osl": "",
                "model": "meta-llama/Llama-2-70b-chat-hf",
                "tp": "2",
                "n_gpus": "2",
            },
            MLPERF_LENGTHS["llama2"],
        ),
    ],
)
def test_lengths_are_stated_or_named_defaults(changes: dict[str, str], lengths: tuple[float, float]) -> None:
    row = speed(**changes)
    assert (row.prompt_tokens, row.output_tokens) == pytest.approx(lengths)


@pytest.mark.parametrize(("notes", "equal"), [("", False), ("Uniform lengths", True), ("range ratio 1", True)])
def test_equal_lengths_are_those_that_the_notes_say(notes: str, equal: bool) -> None:
    assert speed(notes=notes).equal_lengths is equal


@pytest.mark.parametrize(
    ("changes", "load"),
    [
        ({}, 16.0),
        ({"scenario": "offline_max", "concurrency": ""}, 3000.0),
        ({"scenario": "offline_max", "concurrency": "", "isl": "128", "osl": "128"}, 30_000.0),
        ({"scenario": "offline_max", "concurrency": "500"}, 500.0),
        ({"scenario": "static_batch", "batch": "64"}, 64.0),
        ({"scenario": "open_loop", "request_rate": "2.5", "metric": "ttft_ms_mean"}, 2.5),
        ({"scenario": "burst_all_at_once", "concurrency": "", "metric": "ttft_ms_mean"}, 1000.0),
        ({"scenario": "burst_all_at_once", "concurrency": "", "metric": "ttft_ms_mean", "notes": "250 prompts"}, 250.0),
        ({"scenario": "mlperf_offline", "n_gpus": "4"}, 120_000.0),
    ],
)
def test_loads_are_what_the_source_controls(changes: dict[str, str], load: float) -> None:
    assert speed(**changes).load == load


@pytest.mark.parametrize(
    ("engine", "limit"), [("vLLM 0.6.4", 256.0), ("vLLM 0.11.0", 1024.0), ("TensorRT-LLM 1.0", UNLIMITED)]
)
def test_a_closed_loop_raises_the_batch_limit_of_some_engines(engine: str, limit: float) -> None:
    assert speed(engine=engine).max_sequences == limit


@pytest.mark.parametrize(
    ("changes", "layout", "replicas"),
    [
        ({}, Layout(1), 1.0),
        ({"n_gpus": "8", "tp": "2"}, Layout(2), 4.0),
        ({"n_gpus": "8", "tp": "2", "pp": "2"}, Layout(2, 2), 2.0),
        ({"n_gpus": "", "tp": "4"}, Layout(4), 1.0),
        ({"n_gpus": "8", "tp": ""}, Layout(1), 8.0),
        (
            {"n_gpus": "8", "tp": "", "model": "meta-llama/Llama-3.1-405B", "weight_dtype": "fp8", "value": "500"},
            Layout(8),
            1.0,
        ),
        ({"n_gpus": "4", "tp": "", "engine": "llama.cpp", "weight_dtype": "Q4_K_M"}, Layout(pipeline=4), 1.0),
        ({"n_gpus": "2", "parallel_extra": "layer split across GPUs"}, Layout(pipeline=2), 1.0),
        ({"n_gpus": "8", "tp": "", "parallel_extra": "DEP4"}, Layout(attention_data=4, expert=4), 2.0),
        ({"n_gpus": "8", "tp": "8", "parallel_extra": "ep=1;dp_attention=false"}, Layout(8), 1.0),
        (
            {"n_gpus": "8", "tp": "8", "parallel_extra": "ep=8;dp_attention=true"},
            Layout(attention_data=8, expert=8),
            1.0,
        ),
        ({"n_gpus": "8", "tp": "8", "parallel_extra": "enable-dp-attention"}, Layout(attention_data=8, expert=8), 1.0),
        ({"n_gpus": "4", "tp": "4", "notes": "attention_dp on"}, Layout(4), 1.0),
        (
            {"n_gpus": "4", "tp": "4", "notes": "attention_dp on", "model": "openai/gpt-oss-120b", "weight_dtype": ""},
            Layout(attention_data=4, expert=4),
            1.0,
        ),
    ],
)
def test_layouts_are_stated_or_the_smallest_with_room(changes: dict[str, str], layout: Layout, replicas: float) -> None:
    row = speed(**changes)
    assert (row.layout, row.replicas) == (layout, replicas)


def test_a_label_of_two_devices_counts_both() -> None:
    row = speed(gpu="Intel Arc Pro B60 Dual 48GB", n_gpus="2", tp="1", engine="vLLM 0.11.0", value="300")
    assert row.replicas == 4.0


@pytest.mark.parametrize(
    ("parts", "decode", "prefill"),
    [
        ({"dn": "2", "dt": "4", "dd": "false", "dg": "8"}, Layout(4), Layout(8)),
        ({"dn": "2", "dt": "1", "dd": "true", "dg": "8"}, Layout(attention_data=4, expert=4), Layout(8)),
        (
            {"dn": "2", "dt": "4", "dd": "false", "dg": "8", "pd": "true"},
            Layout(4),
            Layout(attention_data=8, expert=8),
        ),
    ],
)
def test_a_split_deployment_has_two_layouts(parts: dict[str, str], decode: Layout, prefill: Layout) -> None:
    row = speed(parallel_extra=SPLIT.format(**{"pn": "3", "pt": "8", "pd": "false"} | parts))
    assert (row.layout, row.prefill_layout) == (decode, prefill)
    assert (row.replicas, row.prefill_ranks) == (2.0, 3.0)


@pytest.mark.parametrize(
    ("stated", "weights"),
    [
        ("", "bf16"),
        ("fp16", "bf16"),
        ("FP8", "fp8"),
        ("fp4", "nvfp4"),
        ("Q4_K_M", "q4_k_m"),
        ("4-bit AWQ", "int4"),
        ("int8 (eetq)", "int8"),
        ("EXL2 2.5 bpw", "q3_k_m"),
        ("EXL2 4.0 bpw", "q4_k"),
        ("EXL2 5.0 bpw", "q5_k"),
    ],
)
def test_weight_formats_are_those_of_the_labels(stated: str, weights: str) -> None:
    assert speed(weight_dtype=stated).weights == weights


@pytest.mark.parametrize(
    ("changes", "cache"),
    [
        ({}, "bf16"),
        ({"weight_dtype": "fp8"}, "bf16"),
        ({"kv_dtype": "fp8 except sliding-window layers"}, "fp8"),
        ({"kv_dtype": "int8"}, "int8"),
        ({"engine": "TensorRT-LLM 1.0", "weight_dtype": "fp8"}, "fp8"),
        ({"engine": "TensorRT-LLM 1.0", "weight_dtype": "fp16"}, "bf16"),
        ({"scenario": "mlperf_offline", "gpu": "MI300X 192GB", "weight_dtype": "fp8"}, "fp8"),
        ({"model": "openai/gpt-oss-120b", "weight_dtype": "mxfp4", "gpu": "B200 180GB"}, "fp8"),
        ({"model": "openai/gpt-oss-120b", "weight_dtype": "mxfp4"}, "bf16"),
        (
            {"model": "deepseek-ai/DeepSeek-R1", "weight_dtype": "fp4", "gpu": "B200 180GB", "tp": "8", "n_gpus": "8"},
            "fp8",
        ),
    ],
)
def test_an_unstated_cache_is_narrow_where_builds_of_that_time_were(changes: dict[str, str], cache: str) -> None:
    assert speed(**changes).kv == cache


def test_the_suite_has_rows_of_every_load() -> None:
    assert {row.scenario for row in read().rows} == {
        "offline_max", "closed_loop", "open_loop", "burst_all_at_once", "static_batch", "batch1",
        "mlperf_offline", "mlperf_server", "mlperf_interactive",
    }  # fmt: skip
    assert len({row.source for row in read().rows}) == 16


def test_combinations_name_engine_gpu_family_and_weights() -> None:
    assert speed().combination == ("vllm_new", "H100-SXM-80GB", "dense", "bf16")


@pytest.mark.parametrize(
    "extra",
    [
        "DEP0",
        SPLIT.format(pn="1", pt="8", pd="false", dn="0", dt="4", dd="false", dg="4"),
        SPLIT.format(pn="1", pt="0", pd="false", dn="1", dt="4", dd="false", dg="4"),
    ],
    ids=["no ranks", "no decode", "no prefill"],
)
def test_a_layout_over_no_gpus_is_refused(extra: str) -> None:
    found = readable([speed_cells(parallel_extra=extra)], catalog())
    predict(Batch.of(found.rows), shipped()) if found.rows else None
    assert found.rows == ()


@pytest.mark.parametrize(
    "changes",
    [
        {"n_gpus": "1e308"},
        {"isl": "1e308", "osl": "1e308"},
        {"metric": "tpot_ms_mean", "value": "1e-323"},
        {"metric": "output_tok_s_per_gpu", "value": "1e308", "n_gpus": "64"},
    ],
    ids=["GPUs", "lengths", "tiny value", "huge value"],
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_numbers_beyond_any_machine_are_refused_or_scored(changes: dict[str, str]) -> None:
    rows = readable([speed_cells(**changes)], catalog()).rows
    if rows:
        late = np.log(predict(Batch.of(rows), shipped()) / np.array([row.value for row in rows]))
        assert np.all(np.isfinite(late))


ODD = st.sampled_from(
    ["", "0", "-1", "1e3", "nan", "inf", "0.5", "two", "1e-9", "٣", "²", "1_000", "0x10", " 8 ", "true"]
)
TEXT = st.text(max_size=20) | st.sampled_from([*PLAIN_SPEED.values(), "DEP8", "disagg", "layer split", "EXL2 9.9 bpw"])
LABELS = st.sampled_from(
    [row[column] for row in table().rows[::9] for column in ("gpu", "model", "engine", "scenario", "metric")]
)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(st.sampled_from(sorted(PLAIN_SPEED)), ODD | TEXT | LABELS, max_size=6))
def test_no_cell_makes_a_traceback(changes: dict[str, str]) -> None:
    try:
        row = speed(**changes)
    except NotScored:
        return
    assert 0.0 < row.value < math.inf
    assert predict(Batch.of([row]), shipped())[0] > 0.0


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(table().rows), st.sampled_from(sorted(PLAIN_SPEED)), ODD | TEXT | LABELS)
def test_one_odd_cell_of_a_published_row_is_scored_or_counted(row: dict[str, str], column: str, cell: str) -> None:
    found = readable([{**row, column: cell}], catalog())
    assert len(found.rows) + len(found.skips) == 1


def test_every_engine_that_is_named_to_users_has_a_class() -> None:
    assert all(engine_class(name, "", "NVIDIA", is_moe=False) for name in ENGINES)


def test_every_word_for_formats_that_is_named_to_users_is_read() -> None:
    assert all(weight_format(word) in WEIGHT_FORMATS for word in WEIGHT_WORDS)
    assert all(is_kv_word(word) and kv_format(word) in KV_FORMATS for word in KV_WORDS)
