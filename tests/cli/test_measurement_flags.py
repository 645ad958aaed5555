"""Flags beside files of measurements, what `validate` prints of few rows, and what `calibrate` says of rows it leaves out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_run import ROOT, run
from speed_files import FLAGS, LOGS, RESULT, answered, nothing_scored, write

INFERENCEMAX = ROOT / "tests/data/results/inferencemax.json"
HEADINGS = ("Mean over", "Worst groups", "Worst rows", "Rows inside", "Outcome right")


def test_flags_change_nothing_that_a_result_file_states() -> None:
    plain = run("validate", INFERENCEMAX)
    flags = ("--gpu", "a10", "--gpus", "1", "--tp", "1", "--model", "qwen3-8b", "--weights", "int8", "--engine", "TGI")
    flagged = run("validate", INFERENCEMAX, *flags)
    assert plain.out == flagged.out
    assert "14 scored" in plain.out
    for flag in ("--gpu", "--gpus", "--model", "--weights", "--engine"):
        assert f"planner: {flag} is not used: it fills blank cells" in flagged.err


def test_a_flag_is_not_called_unused_where_no_row_was_read(tmp_path: Path) -> None:
    failed = tmp_path / "failed.json"
    failed.write_text(RESULT.read_text(encoding="utf-8").replace('"failed": 0', '"failed": 640'), encoding="utf-8")
    done = run("validate", failed, "--gpu", "a10", "--tp", "1")
    assert done.code == 1
    assert "is not used" not in done.err


def test_a_flag_that_fills_a_cell_is_not_noted() -> None:
    assert run("validate", INFERENCEMAX, "--source", "mine").err == ""


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--weights", "fp9"), "planner: --weights: no weight format `fp9`; did you mean `fp4`? Known: "),
        (("--kv", "fp9"), "planner: --kv: no KV format `fp9`; did you mean `fp8`? Known: auto, bf16, fp16, fp8, int8"),
        (("--engine", "aphrodite"), "planner: --engine: no engine `aphrodite`; known: vLLM, SGLang, TensorRT-LLM"),
        (("--engine", "sglnag 0.5"), "did you mean `SGLang`?"),
        (("--gpu", "nope"), "planner: --gpu: no gpu `nope` in the catalog (list them: planner catalog list gpus)"),
        (("--gpu", "H100"), "planner: --gpu: gpu `H100` could mean H100-NVL-94GB, H100-PCIe-80GB, H100-SXM-80GB"),
        (("--gpu", "MI250"), "planner: --gpu: `MI250`: no figures in the catalog"),
        (("--model", "zz"), "planner: --model: no model `zz` in the catalog (list them: planner catalog list models)"),
        (("--source", " "), "planner: --source: nothing is stated; leave it out"),
    ],
)
@pytest.mark.parametrize("command", ["validate", "calibrate"])
def test_flags_that_no_row_could_state_are_wrong_usage(command: str, flags: tuple[str, str], said: str) -> None:
    done = run(command, RESULT, *flags)
    assert (done.code, done.out) == (64, "")
    assert said in done.err


@pytest.mark.parametrize("kv", ["fp8", "fp8_e4m3", "int8", "bf16", "FP16", "auto"])
def test_cache_formats_as_engines_call_them(kv: str) -> None:
    assert answered("validate", RESULT, *FLAGS, "--kv", kv)["scored"] == 7


@pytest.mark.parametrize("gpu", ["h100-sxm", "H100 SXM 80GB", "h100-sxm-80gb"])
def test_groups_carry_the_name_of_the_catalog(gpu: str) -> None:
    found = answered("validate", RESULT, "--gpu", gpu, "--engine", "vLLM 0.11.0")
    assert {g["gpu"] for metric in found["metrics"].values() for g in metric["groups"]} == {"H100-SXM-80GB"}


def test_a_blank_source_is_named_so(tmp_path: Path) -> None:
    done = run("validate", write(tmp_path / "one.csv", {"source": ""}))
    assert done.out.startswith("1 speed measurement: 1 scorable, 1 scored\n")
    assert "output_tok_s_closed_loop (no source), H100 SXM 80GB: " in done.out


@pytest.mark.parametrize("change", [{"gpu": ""}, {"engine": ""}, {"model": ""}])
def test_no_heading_stands_above_nothing(change: dict[str, str], tmp_path: Path) -> None:
    out = run("validate", write(tmp_path / "none.csv", change)).out
    assert not any(heading in out for heading in HEADINGS)
    assert "Skipped: 1 row" in out
    assert f"(--{next(iter(change))})" in out


def test_no_heading_of_start_up_logs_stands_above_nothing(tmp_path: Path) -> None:
    logs = tmp_path / "logs.csv"
    logs.write_text("model,engine,kv_tokens\n,vllm,5\n", encoding="utf-8")
    out = run("validate", logs).out
    assert out == f"1 start-up log: 0 scorable, 0 scored\n\nSkipped: 1 row\n  1 x no model is named ({logs}:2)\n"


def test_reasons_beyond_the_shown_ones_are_counted(tmp_path: Path) -> None:
    strange = [{"gpu": f"Voodoo {n}"} for n in range(14)]
    done = run("validate", write(tmp_path / "odd.csv", *strange))
    assert "  2 more reasons; --format json has all" in done.out
    assert len(nothing_scored("validate", tmp_path / "odd.csv")["skipped"]) == 14
    one_less = run("validate", write(tmp_path / "odd.csv", *strange[:13])).out
    assert one_less.count("Voodoo") == 13
    assert "more reason" not in one_less


@pytest.mark.parametrize(("rows", "places"), [(1, "2"), (4, "2, 3, 4, 5"), (5, "2, 3, 4 and 2 more")])
def test_lines_beyond_the_shown_ones_are_counted(rows: int, places: str, tmp_path: Path) -> None:
    table = write(tmp_path / "odd.csv", *[{"gpu": ""}] * rows)
    assert f"  {rows} x no GPU is named (--gpu) ({table}:{places})\n" in run("validate", table).out


def test_calibrate_counts_every_row_it_leaves_out(tmp_path: Path) -> None:
    tail = {"metric": "ttft_ms_p99", "value": "900"}
    rows = ({}, {"gpu": "Voodoo 2"}, {"metric": "ttft_ms_mean", "value": "200"}, tail, tail | {"value": "901"})
    table = write(tmp_path / "some.csv", *rows)
    found = answered("calibrate", table)
    assert found["skipped"] == {"GPU Voodoo 2: not in the catalog": 1}
    assert [(reason.partition(":")[0], n) for reason, n in found["not_fitted"].items()] == [
        ("tail_ms", 2),
        ("ttft_ms", 1),
    ]
    assert found["used"] + sum(found["skipped"].values()) + sum(found["not_fitted"].values()) == found["rows"] == 5
    out = run("calibrate", table).out
    assert "own: levels, 1 of 5 rows used" in out
    assert "\nLeft out: 4 rows\n  2 x tail_ms: scored, never fitted" in out
    assert f"  1 x ttft_ms: scored, not fitted: it moves no level; --full fits it ({table}:4)\n" in out


def test_calibrate_leaves_out_rows_that_are_far_off(tmp_path: Path) -> None:
    table = write(tmp_path / "far.csv", {}, {"value": "0.0001"}, {"isl": "900"})
    found = answered("calibrate", table)
    assert found["used"] == 2
    assert found["not_fitted"] == {
        "output_tok_s_closed_loop: more than a factor of 100 off its prediction: a cell or its unit is wrong": 1
    }
    assert f"its unit is wrong ({table}:3)" in run("calibrate", table).out
    assert answered("validate", table)["scored"] == 3


def test_rows_of_several_files_count_once(tmp_path: Path) -> None:
    one, two = write(tmp_path / "one.csv", {}, {}), write(tmp_path / "two.csv", {}, {"isl": "900"})
    for command in ("validate", "calibrate"):
        out = run(command, one, two).out
        assert f"2 x counted once: the same row, cell by cell, stands before ({one}:3, {two}:2)" in out


def test_calibrate_that_uses_all_rows_says_nothing_of_the_rest(tmp_path: Path) -> None:
    assert "Left out" not in run("calibrate", write(tmp_path / "one.csv", {})).out
    assert "Left out" not in run("calibrate", LOGS).out


def test_calibrate_without_a_row_to_fit_names_the_reasons(tmp_path: Path) -> None:
    first = {"metric": "ttft_ms_mean", "value": "200"}
    done = run("calibrate", write(tmp_path / "none.csv", first, first | {"value": "201"}, {"gpu": "Voodoo 2"}))
    assert (done.code, done.out) == (1, "")
    assert "no row can be fitted: 2 x ttft_ms: scored, not fitted" in done.err
    assert "; 1 x GPU Voodoo 2: not in the catalog" in done.err


def test_calibrate_without_a_log_to_use_names_the_reasons(tmp_path: Path) -> None:
    logs = tmp_path / "logs.csv"
    logs.write_text("model,engine,kv_tokens\n,vllm,5\n", encoding="utf-8")
    done = run("calibrate", logs)
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith(f"error[measurements/too-little]: no log can be used: 1 x no model is named ({logs}:2)")


def test_calibrate_counts_start_up_logs_it_leaves_out(tmp_path: Path) -> None:
    logs = tmp_path / "logs.csv"
    lines = LOGS.read_text(encoding="utf-8").splitlines()
    blank = "," * lines[0].count(",")
    logs.write_text("\n".join([*lines, f"X{blank}"]) + "\n", encoding="utf-8")
    answer = json.loads(run("calibrate", logs, "--format", "json").out)
    assert (answer["rows"], answer["used"], answer["skipped"]) == (43, 42, {"no model is named": 1})
    said = f"42 of 43 logs used\n\nLeft out: 1 log\n  1 x no model is named ({logs}:44)\n"
    assert run("calibrate", logs).out.endswith(said)
