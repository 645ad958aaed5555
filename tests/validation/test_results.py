"""Result files of benchmark tools become rows that the speed model can score; nothing in a file makes a traceback."""

from __future__ import annotations

import json
from typing import Any

import pytest
from result_inputs import (
    LATENCIES,
    USABLE,
    cells,
    parsed,
    read,
    refusal,
    refused,
    text_of,
    usable,
    values,
)
from validation_inputs import catalog

from planner.diagnostics import DiagnosticError
from planner.validation.cells import PLACE, REFUSED
from planner.validation.result_fields import (
    COLUMNS,
    Flight,
    Load,
    closed_load,
    engine_label,
    iso_day,
    named_weights,
    open_load,
)
from planner.validation.result_run import lines_of
from planner.validation.results import formats, rows_of
from planner.validation.speed_rows import SpeedRow, speed_row
from planner.validation.stated import Stated
from planner.validation.table import read_measurement_file


@pytest.mark.parametrize("name", USABLE)
def test_every_row_can_be_scored(name: str) -> None:
    rows = usable(read(parsed(name)))
    assert rows
    assert all(tuple(row) == COLUMNS for row in rows)
    for position, row in enumerate(rows):
        assert isinstance(speed_row(row, catalog(), position), SpeedRow)


def test_the_formats_are_those_of_the_folder() -> None:
    assert [reader.NAME for reader in formats()] == [
        "aiperf or genai-perf",
        "guidellm",
        "InferenceMAX",
        "vllm bench serve",
        "vllm bench throughput",
    ]


def test_a_closed_loop_of_vllm() -> None:
    rows = read(parsed("vllm_serve_closed.json"))
    assert cells(rows, "scenario", "concurrency", "request_rate", "isl", "osl", "date", "engine", "source") == [
        ("closed_loop", "64", "", "1023", "500", "2025-11-14", "vLLM 0.11.0", "mine")
    ]
    assert values(rows) == {
        "output_tok_s_total": "3071.02",
        "ttft_ms_mean": "412.53",
        "ttft_ms_p50": "288.11",
        "ttft_ms_p99": "1634.2",
        "tpot_ms_mean": "19.94",
        "tpot_ms_p50": "20.03",
        "tpot_ms_p99": "21.66",
    }


def test_a_burst_of_vllm_has_no_rate_and_the_format_of_its_build() -> None:
    rows = [Stated().fill_result(row) for row in rows_of(parsed("vllm_serve_burst.json"), "result.json")]
    assert cells(rows, "scenario", "concurrency", "weight_dtype", "engine") == [
        ("burst_all_at_once", "200", "fp8", "vLLM")
    ]
    assert set(values(rows)) == LATENCIES
    assert "199 of 200 completed" in rows[0]["notes"]


def test_a_bound_above_all_prompts_holds_none_back() -> None:
    rows = read(parsed("vllm_serve_closed.json", max_concurrency=640))
    assert cells(rows, "scenario", "concurrency") == [("burst_all_at_once", "640")]


def test_infinity_as_sglang_writes_it_is_a_closed_loop() -> None:
    rows = read(json.loads(text_of("vllm_serve_closed.json").replace('"inf"', "Infinity")))
    assert cells(rows, "scenario") == [("closed_loop",)]


def test_an_open_loop_needs_a_bound_that_does_not_bind() -> None:
    rows = read(parsed("vllm_serve_rate.json"))
    assert cells(rows, "scenario", "concurrency", "request_rate") == [("open_loop", "", "4")]
    assert "max_concurrency does not limit" in refusal(parsed("vllm_serve_rate.json", max_concurrency=16))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"ramp_up_strategy": "linear"}, "the rate of requests rises during the run"),
        ({"spec_decode_acceptance_rate": 61.0}, "speculative decoding is not modelled"),
        ({"completed": 0}, "640 of 640 requests failed (at most 5 % may)"),
        ({"completed": 600}, "40 of 640 requests failed"),
        ({"completed": 700}, "impossible: 700 of 640 requests were completed"),
        ({"completed": -1}, "`completed` -1 is no positive number"),
        ({"failed": 32}, "impossible: 640 completed and 32 failed requests of 640"),
        ({"failed": 640}, "impossible: 640 completed and 640 failed requests of 640"),
        ({"failed": 640, "num_prompts": None}, "640 of 1,280 requests failed"),
        ({"failed": "some"}, '`failed` "some" is no positive number'),
        ({"failed": -1}, "`failed` -1 is no positive number"),
        ({"output_throughput": 9000.0}, "output_throughput 9,000, 320,000 output tokens in 104.2 s are 3,071.02"),
        ({"duration": 50.0}, "320,000 output tokens in 50 s are 6,400"),
        ({"completed": "most"}, '`completed` "most" is no positive number'),
        ({"total_output_tokens": None}, "no usable measurement: vllm bench serve needs completed"),
        ({"total_output_tokens": "many"}, '`total_output_tokens` "many" is no positive number'),
        ({"max_concurrency": None, "num_prompts": None}, "no usable measurement"),
        ({"max_concurrency": "thirty"}, '`max_concurrency` "thirty" is no positive number'),
        ({"max_concurrency": 2.5}, "`max_concurrency` 2.5 is no whole number"),
        ({"max_concurrency": -1}, "`max_concurrency` -1 is no positive number"),
        ({"max_concurrency": 10**400}, "`max_concurrency` 1000000000"),
        ({"request_rate": None}, "no usable measurement"),
        ({"request_rate": "trace"}, '`request_rate` "trace" is no positive number'),
        ({"model_id": 5}, "`model_id` 5 is no text"),
    ],
)
def test_runs_of_vllm_without_a_defined_load_or_length_are_left_out(change: dict[str, Any], reason: str) -> None:
    assert reason in refusal(parsed("vllm_serve_closed.json", **change))


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -1.0, "19.9", [1, 2], {}, True, 10**400])
def test_an_unreadable_value_is_counted_alone(value: Any) -> None:
    rows = read(parsed("vllm_serve_closed.json", mean_tpot_ms=value))
    assert len(values(usable(rows))) == 6
    (wrong,) = (row for row in rows if REFUSED in row)
    assert (wrong["metric"], wrong["value"]) == ("tpot_ms_mean", "")
    assert wrong[REFUSED].startswith("`mean_tpot_ms` ")
    assert wrong[REFUSED].endswith(" is no positive number")
    assert wrong[REFUSED].isprintable()


@pytest.mark.parametrize("value", [0, 0.0, None, "", "n/a"])
def test_a_statistic_that_was_not_taken_is_a_blank(value: Any) -> None:
    rows = read(parsed("vllm_serve_closed.json", mean_tpot_ms=value))
    assert len(values(usable(rows))) == len(rows) == 6


def test_few_failed_requests_are_noted_and_scored() -> None:
    rows = read(parsed("vllm_serve_closed.json", completed=608, failed=32))
    assert len(usable(rows)) == 7
    assert "608 of 640 completed" in rows[0]["notes"]


@pytest.mark.parametrize(
    ("change", "kinds", "reason"),
    [
        ({"p99_ttft_ms": 1.0}, "mean p50 p99", "ttft_ms_p50 288.11 is above ttft_ms_p99 1"),
        ({"p99_ttft_ms": 400.0}, "mean p99", "ttft_ms_mean 412.53 is above ttft_ms_p99 400"),
        ({"mean_ttft_ms": 100.0}, "mean p50", "ttft_ms_p50 288.11 is more than twice ttft_ms_mean 100"),
    ],
)
def test_statistics_that_contradict_each_other_are_impossible(change: dict[str, Any], kinds: str, reason: str) -> None:
    data = parsed("vllm_serve_closed.json", **change)
    wrong = [row["metric"] for row in read(data) if REFUSED in row]
    assert wrong == [f"ttft_ms_{kind}" for kind in kinds.split()]
    assert f"impossible: {reason}" in refused(data)


def test_a_key_that_is_there_twice_is_refused_with_its_line() -> None:
    text = text_of("vllm_serve_closed.json").replace('"failed": 0,', '"failed": 0,\n  "completed": 10,')
    with pytest.raises(DiagnosticError) as caught:
        read_measurement_file(text.encode(), "r.json", Stated())
    (wrong,) = caught.value.diagnostics
    assert (wrong.code, wrong.message) == ("json/syntax", "the key `completed` is there twice")
    assert wrong.span is not None
    assert text.splitlines()[wrong.span.line - 1] == '  "completed": 10,'
    same = b'[{"a": {"a": 1}}, {"a": {"a": 1}}]'
    with pytest.raises(DiagnosticError, match="no known benchmark result"):
        read_measurement_file(same, "r.json", Stated())


def test_failed_requests_of_guidellm_and_aiperf() -> None:
    sweep = parsed("guidellm_0.6.json")
    totals = sweep["benchmarks"][0]["metrics"]["request_totals"]
    totals |= {"errored": 0.5 * totals["total"]}
    assert any("requests failed (at most 5 % may)" in reason for reason in refused(sweep))
    errors = {"unit": "requests", "avg": 100.0}
    assert "100 of 300 requests failed" in refusal(parsed("aiperf_phases.json", error_request_count=errors))


@pytest.mark.parametrize(
    ("summary", "reason"),
    [
        ([{"error_details": {"code": 500}, "count": 60}, {"count": 40}], "100 of 300 requests failed"),
        ([{"error_details": {"code": 500}}], "`error_summary` has an error without a count"),
        ([{"count": "many"}], '`error_summary[0].count` "many" is no positive number'),
        ("none", "`error_summary` is no list of errors with their counts"),
    ],
)
def test_a_summary_of_errors_counts_where_nothing_else_does(summary: Any, reason: str) -> None:
    assert reason in refusal(parsed("aiperf_phases.json", error_summary=summary, error_request_count=None))
    few = {"unit": "requests", "avg": 1.0}
    assert usable(read(parsed("aiperf_phases.json", error_summary=summary, error_request_count=few)))


def test_a_refused_field_has_its_line() -> None:
    text = text_of("guidellm_0.6.json")
    data = json.loads(text)
    place = ("benchmarks", 1, "metrics", "time_to_first_token_ms", "successful", "mean")
    inside = data
    for key in place[:-1]:
        inside = inside[key]
    inside["mean"] = "slow"
    changed = json.dumps(data, indent=1)
    (wrong,) = (row for row in rows_of(data, "g.json", changed) if "slow" in row.get(REFUSED, ""))
    line = int(wrong[PLACE].removeprefix("g.json:"))
    assert changed.splitlines()[line - 1].strip().startswith('"mean": "slow"')
    assert wrong[REFUSED].startswith("`benchmarks[1].metrics.time_to_first_token_ms.successful.mean`")


def test_parts_of_a_list_that_are_no_result_are_counted() -> None:
    rows = read([parsed("vllm_serve_closed.json"), {"a": 1}, 5])
    assert len(usable(rows)) == 7
    reasons = [row[REFUSED] for row in rows if REFUSED in row]
    assert len(reasons) == 2
    assert all("no known benchmark result" in reason for reason in reasons)


def test_lines_of_places() -> None:
    text = '{\n "a": [\n  {"b": 1},\n  {\n   "b:{": "x\\"}",\n "b": 2}\n ],\n "c": 3}'
    wanted: list[tuple[str | int, ...]] = [
        (),
        ("a",),
        ("a", 0),
        ("a", 1),
        ("a", 1, "b:{"),
        ("a", 1, "b"),
        ("c",),
        ("a", 1, "zzz"),
    ]
    assert [lines_of(text, wanted)[path] for path in wanted] == [1, 2, 3, 4, 5, 6, 8, 4]


def test_offline_throughput_of_vllm_needs_the_output_tokens() -> None:
    assert "total_output_tokens" in refusal(parsed("vllm_throughput.json"))
    rows = read(parsed("vllm_throughput.json", total_output_tokens=198343))
    assert cells(rows, "scenario", "concurrency", "isl", "osl", "metric") == [
        ("offline_max", "1000", "215.169", "198.343", "output_tok_s_total")
    ]
    assert float(rows[0]["value"]) == pytest.approx(198343 / 48.31)
    assert isinstance(speed_row(rows[0] | {"model": "openai/gpt-oss-20b"}, catalog(), 1), SpeedRow)


def test_a_sweep_of_guidellm_leaves_out_throughput_without_a_bound() -> None:
    rows = usable(read(parsed("guidellm_sweep_0.3.json")))
    assert len(refused(parsed("guidellm_sweep_0.3.json"))) == 1
    assert cells(rows, "scenario", "concurrency", "request_rate", "isl", "date", "model") == [
        ("closed_loop", "1", "", "512.3", "2025-09-02", "meta-llama/Llama-3.1-8B-Instruct"),
        ("open_loop", "", "4", "512.3", "2025-09-02", "meta-llama/Llama-3.1-8B-Instruct"),
        ("open_loop", "", "8", "512.3", "2025-09-02", "meta-llama/Llama-3.1-8B-Instruct"),
    ]
    assert "strategy constant" in {row["notes"] for row in rows if row["request_rate"] == "4"}.pop()


def test_later_guidellm_leaves_out_a_rate_that_its_bound_limits() -> None:
    rows = usable(read(parsed("guidellm_0.6.json")))
    assert len(refused(parsed("guidellm_0.6.json"))) == 1
    assert cells(rows, "scenario", "concurrency", "request_rate") == [
        ("closed_loop", "32", ""),
        ("closed_loop", "512", ""),
        ("open_loop", "", "3"),
    ]
    assert cells(rows, "notes")[0] == ("guidellm 0.6.0; strategy concurrent; uniform lengths",)
    assert values(rows[:7])["tpot_ms_mean"] == "11"


def test_phases_of_aiperf() -> None:
    rows = read(parsed("aiperf_phases.json"))
    assert cells(rows, "scenario", "concurrency", "isl", "osl", "date") == [
        ("closed_loop", "8", "467.5", "228.2", "2026-07-03")
    ]
    assert values(rows)["tpot_ms_p99"] == "12.46"


def test_load_generator_of_aiperf_and_stimulus_of_genai_perf() -> None:
    assert cells(read(parsed("aiperf_loadgen.json")), "scenario", "request_rate") == [("open_loop", "3.5")]
    rows = read(parsed("genai_perf.json"))
    assert cells(rows, "scenario", "concurrency", "notes") == [
        ("closed_loop", "16", "aiperf or genai-perf; uniform lengths")
    ]
    flat = parsed("genai_perf.json", input_config={"model": ["m"], "concurrency": [16], "request_rate": None})
    assert cells(read(flat), "scenario", "concurrency", "model") == [("closed_loop", "16", "m")]


def test_units_of_aiperf_are_converted_or_the_value_is_left_out() -> None:
    seconds = parsed("aiperf_phases.json", time_to_first_token={"unit": "s", "avg": 0.25})
    assert values(read(seconds))["ttft_ms_mean"] == "250"
    unknown = parsed("aiperf_phases.json", time_to_first_token={"unit": "ticks", "avg": 0.25})
    assert "ttft_ms_mean" not in values(usable(read(unknown)))
    assert refused(unknown) == ['`time_to_first_token.unit` "ticks" is not one of ms, s, sec, seconds, us, ns']


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"was_cancelled": True}, "the run was cancelled"),
        ({"input_config": {}}, "no usable measurement"),
        ({"input_config": {"loadgen": {"concurrency": [4, 8]}}}, "`input_config.loadgen.concurrency` [4, 8] is no"),
        ({"input_config": {"loadgen": {"concurrency": 4, "user_centric_rate": 1.0}}}, "a rate for each user"),
        ({"input_config": {"loadgen": {"concurrency": 8, "request_rate": 3.0}}}, "no usable measurement"),
        ({"input_config": {"phases": [{"type": "fixed_schedule"}]}}, "no usable measurement"),
        (
            {"input_config": {"phases": [{"type": "concurrency", "concurrency": 4}, {"type": "poisson", "rate": 1.0}]}},
            "2 phases are measured together",
        ),
    ],
)
def test_runs_of_aiperf_without_a_defined_load_are_left_out(change: dict[str, Any], reason: str) -> None:
    assert reason in refusal(parsed("aiperf_phases.json", **change))


def test_inferencemax_states_its_own_layout_in_seconds() -> None:
    rows = usable(rows_of(parsed("inferencemax.json"), "result.json"))
    assert refused(parsed("inferencemax.json")) == ["speculative decoding is not modelled"]
    assert cells(rows, "engine", "gpu", "n_gpus", "tp", "weight_dtype", "concurrency") == [
        ("vLLM (vllm-openai:v0.13.0)", "H100 SXM 80GB", "2", "2", "mxfp4", "64"),
        ("Dynamo TensorRT-LLM (tensorrtllm-runtime:0.7.0.post2)", "GB200 192GB", "4", "", "mxfp4", "384"),
    ]
    assert values(rows[:7])["output_tok_s_total"] == "3200.5"
    assert values(rows[:7])["ttft_ms_mean"] == "126.5"
    assert "range ratio 0.8" in rows[0]["notes"]
    scored = [speed_row(row, catalog(), 1) for row in (rows[0], rows[7])]
    assert [row.prompt_tokens for row in scored] == pytest.approx([921.6, 7372.8])
    assert [row.prefill_ranks for row in scored] == [0.0, 2.0]
    assert rows[7]["value"] == "23600"


def test_outputs_of_inferencemax_are_no_more_than_all_tokens() -> None:
    one, split = parsed("inferencemax.json")[:2]
    assert "impossible: 8,000 output tokens/s of 6,401 tokens/s in all" in refusal(one | {"output_tput_per_gpu": 4000})
    # Outputs are over half of these GPUs, all tokens over all of them.
    assert usable(read(split | {"tput_per_gpu": 6000.0}))
    assert "impossible: 23,600 output tokens/s" in refusal(split | {"tput_per_gpu": 5000.0})


def test_inferencemax_over_pipeline_stages_is_left_out() -> None:
    assert refusal(parsed("inferencemax.json")[0] | {"pp": 2}) == "a layout over pp 2 is not read"


def test_what_the_user_states_fills_blank_cells_only() -> None:
    rows = read(parsed("vllm_serve_closed.json"), model="openai/gpt-oss-20b", weight_dtype="mxfp4", kv_dtype="fp8")
    assert cells(rows, "model", "weight_dtype", "kv_dtype", "gpu", "tp") == [
        ("meta-llama/Llama-3.1-8B-Instruct", "mxfp4", "fp8", "H100 SXM 80GB", "1")
    ]


def test_nothing_that_a_file_states_is_overridden() -> None:
    others = {
        "gpu": "A10", "n_gpus": "16", "tp": "16", "pp": "2", "model": "Qwen/Qwen3-8B", "weight_dtype": "fp8",
        "engine": "SGLang 0.5", "source": "mine",
    }  # fmt: skip
    for name in USABLE:
        for row in usable(rows_of(parsed(name), "result.json")):
            filled = Stated(others, lambda name: "gpt-oss" in name).fill_result(row)
            assert {column: filled[column] for column in COLUMNS if row[column]} == {
                column: cell for column, cell in row.items() if cell
            }
            assert all(filled[column] == value for column, value in others.items() if not row[column])


def test_a_flag_cannot_change_the_layout_that_a_file_states() -> None:
    row = Stated({"pp": "2", "tp": "8"}).fill_result(rows_of(parsed("inferencemax.json"), "result.json")[0])
    assert speed_row(row, catalog(), 1).layout.gpus == 2


@pytest.mark.parametrize(
    ("cell", "filled"),
    [
        ("", True),
        ("/models/llama", True),
        ("./llama", True),
        ("../weights/llama", True),
        ("~/llama", True),
        ("C:\\models\\llama", True),
        ("meta-llama/Llama-3.1-8B-Instruct", False),
        ("my-alias", False),
        ("/models/gpt-oss-20b", False),
    ],
)
def test_a_path_names_no_model_unless_one_is_known_by_it(cell: str, filled: bool) -> None:
    stated = Stated({"model": "Qwen/Qwen3-8B"}, lambda name: "gpt-oss" in name)
    assert (stated.fill({"model": cell})["model"] == "Qwen/Qwen3-8B") is filled


@pytest.mark.parametrize(
    ("cell", "stated", "found"),
    [
        ("vLLM", "vLLM 0.19.1", "vLLM 0.19.1"),
        ("vLLM", "vllm 0.19.1", "vllm 0.19.1"),
        ("vLLM", "vLLM", "vLLM"),
        ("vLLM", "SGLang 0.5", "vLLM"),
        ("vLLM 0.1", "vLLM 0.19", "vLLM 0.1"),
        ("vLLM (vllm-openai:v0.13.0)", "vLLM 0.19", "vLLM (vllm-openai:v0.13.0)"),
    ],
)
def test_a_version_completes_the_engine_of_the_file(cell: str, stated: str, found: str) -> None:
    assert Stated({"engine": stated}).fill({"engine": cell})["engine"] == found


def test_the_weights_of_a_build_are_those_of_its_name_unless_stated() -> None:
    row = rows_of(parsed("vllm_serve_burst.json"), "result.json")[0]
    assert row["weight_dtype"] == ""
    assert Stated().fill_result(row)["weight_dtype"] == "fp8"
    assert Stated({"weight_dtype": "int8"}).fill_result(row)["weight_dtype"] == "int8"
    path = row | {"model": "/models/llama-awq"}
    assert Stated({"model": "Qwen/Qwen3-8B"}).fill_result(path)["weight_dtype"] == "int4"


@pytest.mark.parametrize("data", [None, 1, "x", [], {}, [1, [2]], {"benchmarks": []}, {"hw": "h100"}])
def test_an_unknown_file_is_told_what_is_looked_for(data: Any) -> None:
    with pytest.raises(DiagnosticError) as caught:
        read(data)
    assert [d.code for d in caught.value.diagnostics] == ["json/unusable"]
    assert all(reader.NAME in str(caught.value) for reader in formats())


def test_fields() -> None:
    assert named_weights("nvidia/Llama-3.1-8B-Instruct-NVFP4") == "nvfp4"
    assert named_weights("meta-llama/Llama-3.1-8B-Instruct") == ""
    assert engine_label("openai-chat", None) == ""
    assert [iso_day(stamp) for stamp in ("20251114-091523", "2025-11-14T09:15", "soon", 5)] == [
        "2025-11-14",
        "2025-11-14",
        "",
        "",
    ]
    assert closed_load(None, None) is None
    assert closed_load(8.0, None) == Load("closed_loop", concurrency=8.0)
    assert open_load(2.0, 10.0, Flight(mean=4.0)) is None
    assert open_load(2.0, 13.0, Flight(mean=4.0)) == Load("open_loop", request_rate=2.0)
    assert open_load(2.0, 10.0, Flight()) is None
