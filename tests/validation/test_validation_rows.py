"""Reading tables and rows of start-up logs: what is stated, what is filled in, what is refused and why."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from validation_inputs import PLAIN, catalog, logs, row, validated

from planner.diagnostics import DiagnosticError
from planner.physics.memory import Outcome
from planner.validation.memory import percentile
from planner.validation.start_up import NotScored, StartUp, measured, start_up
from planner.validation.table import read_table


def started(**changes: str) -> StartUp:
    return start_up(row(**changes), catalog(), 2)


def refused(**changes: str) -> NotScored:
    with pytest.raises(NotScored) as caught:
        started(**changes)
    return caught.value


def test_a_complete_row_needs_only_the_default_batch() -> None:
    assert started().defaults == ("max_num_seqs 1024",)


def test_errors_are_relative_to_the_log() -> None:
    scored = validated(row(weights_gib_per_gpu="29.98", kv_tokens="952000")).scored[0]
    assert scored.errors["weights_gib"] == pytest.approx(-0.5, abs=0.001)
    assert scored.errors["kv_tokens"] == pytest.approx(-0.5, abs=0.001)
    assert scored.worst == pytest.approx(0.5, abs=0.001)


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
        ({"tp": "two"}, "tp is no count", True),
        ({"tp": "1.5"}, "tp is no count", True),
        ({"tp": "1e7"}, "more than 64 GPUs", True),
        ({"max_model_len": "-1"}, "max_model_len is no count", True),
        ({"max_model_len": "nan"}, "max_model_len is no count", True),
        ({"gpu_memory_utilization": "1.2"}, "memory share", True),
        ({"total_gpu_gib": "0.1"}, "total memory", True),
        ({"total_gpu_gib": "1e300"}, "total memory", True),
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
        ("perhaps", None),
        ("", None),
    ],
)
def test_outcomes_have_three_labels(text: str, outcome: Outcome | None) -> None:
    assert measured(row(outcome=text)).outcome is outcome


def test_cells_that_are_no_numbers_are_blank() -> None:
    seen = measured(row(kv_tokens="many", kv_gib_per_gpu="inf", weights_gib_per_gpu="nan"))
    assert (seen.kv_tokens, seen.kv_gib, seen.weights_gib) == (None, None, None)


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
    assert table.rows == ({"model": "a", "engine": "vllm", "kv_tokens": ""},)
    assert table.is_memory


def test_speed_measurements_are_told_apart() -> None:
    table = read_table(b"row_id,model,gpu,engine,scenario,metric,value\n1,m,g,e,s,t,1\n", "x.csv")
    assert table.is_speed
    assert not table.is_memory


@given(st.dictionaries(st.sampled_from(sorted(PLAIN)), st.text(max_size=20), max_size=6))
def test_no_cell_makes_a_traceback(changes: dict[str, str]) -> None:
    validated(row(**changes))


def test_the_suite_reads_logs_of_two_engines() -> None:
    assert {r["engine"] for r in logs().rows} == {"vllm", "tensorrt-llm"}
