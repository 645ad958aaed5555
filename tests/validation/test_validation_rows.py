"""Reading tables and rows of start-up logs: what is stated, what is filled in, what is refused and why."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from validation_inputs import PLAIN, catalog, logs, row, validated

from planner.diagnostics import DiagnosticError
from planner.physics.memory import Outcome
from planner.report.validation import memory_data, memory_text
from planner.validation.cells import EXCESS, PLACE, NotScored, parsed
from planner.validation.fit import usable_logs
from planner.validation.measured import measured
from planner.validation.memory import percentile, read_log
from planner.validation.start_up import StartUp, start_up
from planner.validation.table import read_table


def started(**changes: str) -> StartUp:
    return start_up(row(**changes), catalog(), 2)


def refused(**changes: str) -> NotScored:
    with pytest.raises(NotScored) as caught:
        read_log(row(**changes), catalog(), 2)
    return caught.value


def test_a_complete_row_needs_only_the_default_batch() -> None:
    assert started().defaults == ("max_num_seqs 1024",)


def test_errors_are_relative_to_the_log() -> None:
    scored = validated(row(weights_gib_per_gpu="7.495", kv_tokens="238000")).scored[0]
    assert scored.errors["weights_gib"] == pytest.approx(1.0, abs=0.002)
    assert scored.errors["kv_tokens"] == pytest.approx(1.0, abs=0.002)
    assert scored.worst == pytest.approx(1.0, abs=0.002)


def test_errors_are_grouped_by_engine_and_class() -> None:
    metric = validated(row(), row(arch_class="b", weights_gib_per_gpu="7.5"), row(arch_class="b")).metrics[
        "weights_gib"
    ]
    assert [(g.engine, g.arch_class, g.n) for g in metric.groups] == [("vllm", "b", 2), ("vllm", "dense_gqa", 1)]
    assert metric.groups[0].median_ape == pytest.approx(0.5, abs=0.01)
    assert metric.mean_of_group_medians == pytest.approx(0.25, abs=0.01)


def test_the_part_that_is_off_is_named() -> None:
    scored = validated(row(activation_gib="1.89", non_torch_gib="2.25")).scored[0]
    assert scored.off == "runtime -2.00 GiB"


@pytest.mark.parametrize(
    ("source", "version"),
    [
        ("github vllm-project/vllm #10517", "0.6"),
        ("github vllm-project/vllm PR#2031", "0.2"),
        ("github vllm-project/vllm #43500", "0.21"),
        ("github somebody/else #10517", "0.15"),
        ("public log", "0.15"),
    ],
)
def test_an_undated_log_takes_the_release_of_its_issue(source: str, version: str) -> None:
    assert started(engine_version="", source=source).version == version


def test_a_log_of_the_old_scheduler_is_of_its_last_release() -> None:
    assert started(engine_version="V0 engine").version == "0.6"


@pytest.mark.parametrize(
    ("stated", "version"),
    [
        ("v0.19.0", "0.19.0"),
        ("0.13 dev", "0.13"),
        ("0.6.3.post2.dev308", "0.6.3.post2.dev308"),
        ("0.19.1rc1+cu128", "0.19.1rc1+cu128"),
        ("0.5.5.post3-rocm700-mi30x", "0.5.5.post3-rocm700-mi30x"),
    ],
)
def test_versions_are_read_as_packages_and_images_write_them(stated: str, version: str) -> None:
    assert started(engine_version=stated).version == version


@pytest.mark.parametrize(
    "stated", ["banana", "999", "19", "-1", "0.19.0; ls", "nightly", "main 2026-09", "b6000", "0.19x"]
)
def test_a_version_that_is_none_is_not_taken_as_blank(stated: str) -> None:
    caught = refused(engine_version=stated)
    assert f"engine_version `{stated}` is no version of vllm (as in 0." in caught.reason
    assert caught.scorable


def test_engines_of_numbered_builds_have_builds_as_versions() -> None:
    assert started(engine="llama.cpp", engine_version="b6000").version == "b6000"
    assert "is no version of llama.cpp (as in b" in refused(engine="llama.cpp", engine_version="0.3.1").reason


def test_a_version_that_nobody_knows_yet_is_named() -> None:
    newest = catalog().engine_file("vllm").newest
    assert f"constants of vllm {newest}, the newest known" in started(engine_version="99.1").defaults
    assert started(engine_version=f"{newest}.1").defaults == ("max_num_seqs 1024",)


@pytest.mark.parametrize(
    ("changes", "layout"),
    [
        ({"tp": "", "n_gpus": "4"}, (4, 1)),
        ({"tp": "", "n_gpus": "4", "pp": "2"}, (2, 2)),
        ({"tp": "", "n_gpus": "", "model": "meta-llama/Llama-3.3-70B-Instruct"}, (2, 1)),
    ],
)
def test_a_blank_layout_is_what_the_gpus_allow(changes: dict[str, str], layout: tuple[int, int]) -> None:
    found = started(**changes).layout
    assert (found.tensor, found.pipeline) == layout


@pytest.mark.parametrize(
    ("model", "weights"),
    [
        ("RedHatAI/Meta-Llama-3.1-8B-Instruct-quantized.w4a16", "int4"),
        ("nvidia/Llama-3.1-8B-Instruct-FP8", "fp8"),
        ("somebody/Llama-3.1-8B-Instruct-AWQ", "int4"),
        ("meta-llama/Llama-3.1-8B-Instruct", "bf16"),
        ("openai/gpt-oss-20b", "mxfp4"),
    ],
)
def test_blank_weights_are_those_of_the_name(model: str, weights: str) -> None:
    assert started(weight_dtype="", model=model).weights == weights


@pytest.mark.parametrize(("weights", "kv"), [("fp16", "bf16"), ("fp32", "fp32"), ("fp8", "bf16")])
def test_a_blank_cache_follows_the_compute_format(weights: str, kv: str) -> None:
    assert started(kv_dtype="", weight_dtype=weights).kv == kv


def test_stated_memory_wins_over_the_catalog() -> None:
    assert started(total_gpu_gib="39.4", gpu="A100-40GB").device.usable_bytes == 39.4 * 2**30
    assert started(total_gpu_gib="24", gpu="Voodoo 2").device.usable_bytes == 24 * 2**30


@pytest.mark.parametrize(
    ("changes", "reason", "scorable"),
    [
        ({"model_inferred": "yes"}, "inferred", False),
        ({"model": ""}, "no model", False),
        ({"model": "(64-expert MoE)"}, "names no model", False),
        ({"model": "acme/roadrunner-7b"}, "not in the catalog", True),
        ({"gpu": "", "total_gpu_gib": ""}, "no GPU", False),
        ({"gpu": "Voodoo 2", "total_gpu_gib": ""}, "not in the catalog", False),
        ({"engine": "aphrodite"}, "engine aphrodite", True),
        ({"engine": ""}, "engine not named", True),
        ({"weight_dtype": "fp3"}, "weight format", True),
        ({"kv_dtype": "fp3"}, "KV format", True),
        ({"tp": "two"}, "tp `two` is no number", True),
        ({"tp": "1.5"}, "tp 1.5 is no count", True),
        ({"tp": "128", "n_gpus": ""}, "more than 64 GPUs", True),
        ({"max_model_len": "-1"}, "max_model_len -1 is no count", True),
        ({"max_model_len": "inf"}, "max_model_len `inf` is no number", True),
        ({"gpu_memory_utilization": "1.2"}, "1.2 is no share of memory above 0 (at most 1)", True),
        ({"gpu_memory_utilization": "high"}, "gpu_memory_utilization `high` is no number", True),
        ({"total_gpu_gib": "0.1"}, "total_gpu_gib 0.1 is no memory of a card", True),
        ({"total_gpu_gib": "1e300"}, "total_gpu_gib 1e300 is no memory of a card", True),
        ({"total_gpu_gib": "160"}, "total_gpu_gib 160 is more than the card holds (80 GiB)", True),
        ({"gpu": "H100", "total_gpu_gib": ""}, "it could mean H100-NVL-94GB, H100-PCIe-80GB, H100-SXM-80GB", False),
        ({"tp": "3", "n_gpus": "3"}, "tp 3 does not divide the 32 heads", True),
        ({"pp": "40", "n_gpus": "40"}, "pp 40 is more than the 32 layers", True),
        ({"tp": "4", "n_gpus": "2"}, "tp 4 x pp 1 needs more than n_gpus 2", True),
        ({"weights_gib_per_gpu": "-15"}, "weights_gib_per_gpu -15 is no size", True),
        ({"weights_gib_per_gpu": "15 GiB"}, "weights_gib_per_gpu `15 GiB` is no number", True),
        ({"weights_gib_per_gpu": "0.01"}, "0.01 x 1 is less than a bit for each of the 8.03 billion", True),
        ({"activation_gib": "-1"}, "activation_gib -1 is no size", True),
        ({"non_torch_gib": "-1"}, "non_torch_gib -1 is no size", True),
        ({"cudagraph_gib": "-5"}, "cudagraph_gib -5 is no size", True),
        ({"kv_gib_per_gpu": "-15"}, "kv_gib_per_gpu -15 is no size", True),
        ({"kv_gib_per_gpu": "-500", "outcome": "oom"}, "kv_gib_per_gpu -500 is more than the card holds", True),
        ({"kv_gib_per_gpu": "5000", "total_gpu_gib": ""}, "5000 is more than the card holds (80 GiB)", True),
        ({"weights_gib_per_gpu": "40", "kv_gib_per_gpu": "45"}, "are 85 GiB together, more than the card", True),
        ({"kv_tokens": "4e9"}, "kv_tokens 4e+09 is more than the card holds (79.19 GiB, at most ", True),
        ({"max_concurrency": "58110"}, "max_concurrency 58,110 is more than the card holds", True),
        ({"kv_tokens": "0"}, "kv_tokens 0 is no count", True),
        ({"max_concurrency": "0", "outcome": ""}, "max_concurrency 0 is no count", True),
        ({"kv_gib_per_gpu": "0"}, "kv_gib_per_gpu 0 is no size", True),
        ({"kv_tokens": "1"}, "kv_tokens 1 contradicts kv_gib_per_gpu 58.11, which holds about 4.76e+05", True),
        ({"max_concurrency": "0.5"}, "max_concurrency 0.5 contradicts kv_gib_per_gpu 58.11", True),
        ({"kv_gib_per_gpu": "1"}, "kv_tokens 476,000 contradicts kv_gib_per_gpu 1, which holds about 8,192", True),
        ({"kv_tokens": "many"}, "kv_tokens `many` is no number", True),
        ({"kv_gib_per_gpu": "inf"}, "kv_gib_per_gpu `inf` is no number", True),
        ({"outcome": "perhaps"}, "outcome `perhaps` is not known; it begins with ok, oom or kv too small", True),
        ({"outcome": "okra"}, "outcome `okra` is not known", True),
    ],
)
def test_what_cannot_be_scored_says_why(changes: dict[str, str], reason: str, scorable: bool) -> None:
    caught = refused(**changes)
    assert reason in caught.reason
    assert caught.scorable is scorable


def test_skipped_rows_are_counted_by_reason() -> None:
    found = validated(row(), row(model=""), row(model=""), row(engine="aphrodite"))
    assert found.skipped == {"no model is named": 2, "engine aphrodite: not modelled": 1}
    assert (found.rows, found.scorable, found.skipped_scorable, len(found.scored)) == (4, 2, 1, 1)


def test_an_architecture_that_cannot_be_computed_is_skipped_by_name() -> None:
    found = validated(row(model="nvidia/Llama-3_3-Nemotron-Super-49B-v1", weight_dtype="gguf-9"))
    assert sum(found.skipped.values()) == 1


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ("ok", Outcome.OK),
        ("OK after retry", Outcome.OK),
        ("oom at load", Outcome.OOM),
        ("oom at graph capture", Outcome.OOM),
        ("kv too small", Outcome.KV_TOO_SMALL),
        ("kv_too_small", Outcome.KV_TOO_SMALL),
        ("out of memory", Outcome.OOM),
        ("", None),
        ("n/a", None),
    ],
)
def test_outcomes_have_three_labels(text: str, outcome: Outcome | None) -> None:
    assert measured(row(outcome=text), 80.0).outcome is outcome


@pytest.mark.parametrize("blank", ["", " ", "n/a", "N/A", "-", "--", "?", "unknown", "None", "null", "nan"])
def test_words_for_a_blank_are_blank(blank: str) -> None:
    seen = measured(row(kv_tokens=blank, kv_gib_per_gpu=blank, weights_gib_per_gpu=blank, outcome=blank), 80.0)
    assert (seen.kv_tokens, seen.kv_gib, seen.weights_gib, seen.outcome) == (None, None, None, None)
    table = read_table(f"model,engine,kv_tokens,gpu\na,vllm,{blank},{blank}\n".encode(), "x.csv")
    assert (table.rows[0]["kv_tokens"], table.rows[0]["gpu"]) == ("", "")


@pytest.mark.parametrize(
    ("text", "value"),
    [("1", 1.0), ("-1.5", -1.5), (".5", 0.5), ("5.", 5.0), ("+2e3", 2000.0), ("1E-2", 0.01), ("1e9999", math.inf)],
)
def test_numbers_are_plain(text: str, value: float) -> None:
    assert parsed(text) == value


@pytest.mark.parametrize(
    "text", ["", ".", "+", "-.", "e5", ".e5", "1e", "1_000", "1,000", "1k", "0x10", "inf", "nan", "١", "1 "]
)
def test_other_spellings_are_no_numbers(text: str) -> None:
    assert parsed(text) is None


def test_what_is_short_of_a_cache_is_below_zero_where_the_start_failed() -> None:
    seen = measured(row(kv_gib_per_gpu="-1.44", outcome="kv too small"), 80.0)
    assert seen.kv_gib == -1.44
    nothing = row(kv_tokens="0", max_concurrency="0", kv_gib_per_gpu="-1.44", outcome="kv too small")
    assert set(validated(nothing).scored[0].errors) == {"weights_gib"}


def test_a_log_that_is_there_twice_counts_once() -> None:
    rows = [row(), {**row(), PLACE: "b.csv:9"}, row(case_id="H2")]
    found = validated(*rows)
    assert (len(found.scored), [s.place for s in found.skips]) == (2, ["b.csv:9"])
    assert len(usable_logs(rows, catalog())) == 2


def test_a_metric_that_no_row_has_shows_no_error() -> None:
    found = validated(row(kv_tokens="", max_concurrency="", kv_gib_per_gpu=""))
    assert [line.split()[0] for line in memory_text(found)[2:4]] == ["metric", "weights_gib"]
    assert not any("kv_tokens" in line for line in memory_text(found))
    data = memory_data(found)
    assert data["scored"] == 1
    assert data["metrics"]["kv_tokens"]["median_ape"] is None
    assert data["metrics"]["weights_gib"]["median_ape"] is not None
    assert measured(row(cudagraph_gib="-0.42"), 80.0).graphs_gib == -0.42


def test_rows_stand_in_their_lines_whatever_is_between_them() -> None:
    table = read_table(b'model,engine,kv_tokens\n\n"a\nb",vllm,1\n\nc,vllm,2,,\nd,vllm,3,4\n', "x.csv")
    assert [r[PLACE] for r in table.rows] == ["x.csv:3", "x.csv:6", "x.csv:7"]
    assert [EXCESS in r for r in table.rows] == [False, False, True]


def test_every_skip_names_its_place() -> None:
    found = validated({**row(model=""), PLACE: "a.csv:7"}, row(kv_gib_per_gpu="x"))
    assert [(skip.place, skip.scorable) for skip in found.skips] == [("a.csv:7", False), ("", True)]


def test_percentiles_lie_between_ranks() -> None:
    assert percentile([1.0, 2.0, 3.0, 4.0, 5.0], 0.9) == pytest.approx(4.6)
    assert percentile([7.0], 0.9) == 7.0


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "empty"),
        (b"\n , \n", "empty"),
        (b"a,b\n1,2\n", "start-up logs need model, engine"),
        (b"\xff\xfe\x00", "UTF-8"),
        (b'model,engine,kv_tokens\n"' + b"x" * 30_000 + b'"\n', "not CSV"),
    ],
)
def test_a_file_without_known_columns_says_what_it_looked_for(data: bytes, message: str) -> None:
    with pytest.raises(DiagnosticError, match=message):
        read_table(data, "x.csv")


def test_tables_tolerate_marks_blank_lines_and_short_rows() -> None:
    table = read_table(b"\xef\xbb\xbfmodel,engine,kv_tokens\r\n\r\n a , vllm \r\n", "x.csv")
    assert table.rows == ({"model": "a", "engine": "vllm", "kv_tokens": "", PLACE: "x.csv:3"},)
    assert table.is_memory


def test_speed_measurements_are_told_apart() -> None:
    table = read_table(b"row_id,model,gpu,engine,scenario,metric,value\n1,m,g,e,s,t,1\n", "x.csv")
    assert table.is_speed
    assert not table.is_memory


def test_a_row_that_measures_nothing_is_not_scored() -> None:
    blank = dict.fromkeys(("weights_gib_per_gpu", "kv_gib_per_gpu", "kv_tokens", "max_concurrency", "outcome"), "")
    assert validated(row(**blank)).skipped == {"no measured column is filled": 1}


def test_heads_are_not_split_by_an_engine_that_splits_layers() -> None:
    start_up(row(engine="llama.cpp", engine_version="b6000", tp="3", n_gpus="3"), catalog(), 2)


@given(st.dictionaries(st.sampled_from(sorted(PLAIN)), st.text(max_size=20), max_size=6))
def test_no_cell_makes_a_traceback(changes: dict[str, str]) -> None:
    validated(row(**changes))


def test_the_suite_reads_logs_of_two_engines() -> None:
    assert {r["engine"] for r in logs().rows} == {"vllm", "tensorrt-llm"}
