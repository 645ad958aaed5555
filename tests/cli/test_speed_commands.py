"""`planner validate` and `planner calibrate` with published speeds and result files, and what a calibration then changes."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import yaml
from cli_run import ROOT, run
from speed_files import COLUMNS, FLAGS, H100_8B, LOGS, RESULT, SPEEDS, answered, nothing_scored, write

from planner.source import parse


def tpot_s(model: str, gpu: str, *arguments: str | Path) -> float:
    done = run("estimate", "--model", model, "--gpu", gpu, "--concurrency", "64", "--format", "json", *arguments)
    found: float = json.loads(done.out)["tpot_s"]["p50"]
    return found


def test_validate_states_errors_groups_bands_and_reasons() -> None:
    done = run("validate", SPEEDS)
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("435 speed measurements: 420 scorable, 363 scored\n")
    for part in ("output_tok_s_offline", "Worst groups", "80 % band", "Skipped: 72 rows, 57 of them scorable"):
        assert part in done.out
    assert "  6 x GPU DGX Spark GB10: no figures in the catalog" in done.out


def test_validate_as_json_counts_every_row() -> None:
    answer = answered("validate", SPEEDS)
    assert (answer["schema_version"], answer["kind"], answer["rows"]) == (1, "speed", 435)
    assert answer["scored"] + sum(answer["skipped"].values()) == 435
    assert sum(metric["rows"] for metric in answer["metrics"].values()) == answer["scored"]
    assert "cross_validated" not in answer


def test_validate_reads_a_table_from_standard_input() -> None:
    said = run("validate", "-", stdin=SPEEDS.read_bytes()).out
    assert said.replace("<stdin>:", f"{SPEEDS}:") == run("validate", SPEEDS).out


def test_validate_takes_a_result_file_with_what_it_does_not_write() -> None:
    answer = answered("validate", RESULT, *FLAGS)
    assert (answer["rows"], answer["scored"]) == (7, 7)
    groups = [group for metric in answer["metrics"].values() for group in metric["groups"]]
    assert {(group["source"], group["gpu"]) for group in groups} == {("mine", "H100-SXM-80GB")}


def test_a_result_file_without_a_gpu_names_what_is_missing() -> None:
    answer = nothing_scored("validate", RESULT)
    assert (answer["scorable"], answer["skipped"]) == (0, {"no GPU is named (--gpu)": 7})


def test_tables_and_result_files_are_scored_together() -> None:
    assert answered("validate", RESULT, SPEEDS, *FLAGS)["rows"] == 442


def test_speeds_and_start_up_logs_are_not_scored_together() -> None:
    done = run("validate", SPEEDS, LOGS)
    assert (done.code, done.out) == (1, "")
    assert "csv/unusable" in done.err


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"model": "acme/roadrunner-7b"}, "model acme/roadrunner-7b: not in the catalog"),
        ({"gpu": "Voodoo 2"}, "GPU Voodoo 2: not in the catalog"),
        ({"engine": "aphrodite"}, "engine aphrodite: no class of the speed model"),
        ({"weight_dtype": "fp3"}, "weight format fp3: not known"),
        ({"value": "fast"}, "value `fast` is no number"),
        ({"value": "-1"}, "value -1 is no positive number"),
        ({"value": "nan"}, "no value is stated"),
        ({"tp": "two"}, "tp `two` is no number"),
        ({"tp": "100000"}, "tp 100000 is no count (at most 4,096)"),
        ({"tp": "128", "n_gpus": "128"}, "more than 64 GPUs in one replica"),
        ({"tp": "8", "n_gpus": "4"}, "the layout needs 8 GPUs, n_gpus states 4"),
        ({"isl": "1k"}, "isl `1k` is no number"),
        ({"osl": ""}, "no output length (osl)"),
        ({"concurrency": "many"}, "concurrency `many` is no number"),
        ({"concurrency": "1e30"}, "concurrency 1e30 is no number of requests in flight (at most 10,000,000)"),
        ({"metric": "happiness"}, "metric `happiness` is without a defined statistic, or not modelled"),
        (
            {"metric": "decode_tok_s_batch1", "value": "1e9"},
            "impossible: faster than the datasheet bandwidth or FLOP/s allow",
        ),
    ],
)
def test_rows_that_cannot_be_scored_are_counted_and_named(change: dict[str, str], reason: str, tmp_path: Path) -> None:
    answer = answered("validate", write(tmp_path / "odd.csv", {}, change, change))
    assert (answer["rows"], answer["scored"], answer["skipped"]) == (3, 1, {reason: 2})


def test_every_row_that_is_left_out_has_its_file_and_line(tmp_path: Path) -> None:
    first = write(tmp_path / "a.csv", {}, {"value": "fast"})
    second = tmp_path / "b.json"
    run_of = json.loads(RESULT.read_text(encoding="utf-8")) | {"max_concurrency": "thirty"}
    second.write_text(json.dumps(run_of, indent=1), encoding="utf-8")
    left = answered("validate", first, second)["left_out"]
    line = next(n for n, text in enumerate(second.read_text().splitlines(), 1) if "thirty" in text)
    assert [(row["file"], row["line"], row["reason"]) for row in left] == [
        (str(first), 3, "value `fast` is no number"),
        (str(second), line, '`max_concurrency` "thirty" is no positive number'),
    ]
    said = run("validate", first, second).out
    assert f"  1 x value `fast` is no number ({first}:3)\n" in said


@pytest.mark.parametrize("command", ["validate", "calibrate"])
@pytest.mark.parametrize(
    ("first", "said"),
    [
        ("model,gpu,scenario,metric", "columns are missing: speed measurements need `value` too"),
        ("Model,gpu,scenario,metric,value", "speed measurements need `model` (there is `Model`) too"),
        ("model,kv_tokens", "columns are missing: start-up logs need `engine` too"),
        ("model,engine", "`scenario`, `metric`, `value` too; start-up logs need one of weights_gib_per_gpu, kv_gib"),
        ("model;gpu;scenario;metric;value", "the columns are separated by `;`, not by commas"),
        ("model\tengine\tkv_tokens", "the columns are separated by tabs, not by commas"),
        ("a;b;c", "no known columns in the first line"),
    ],
)
def test_what_the_first_line_of_a_table_lacks_is_named(command: str, first: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "x.csv"
    file.write_text(f"\n{first}\n1;2\n", encoding="utf-8")
    done = run(command, file)
    assert (done.code, done.out) == (1, "")
    assert said in done.err
    assert f"{file}:" in done.err


@pytest.mark.parametrize("command", ["validate", "calibrate"])
def test_a_file_is_read_once(command: str, tmp_path: Path) -> None:
    done = run(command, "-", "-", stdin=SPEEDS.read_bytes())
    assert (done.code, done.out, done.err) == (64, "", "planner: standard input (-) is given twice\n")
    table = write(tmp_path / "a.csv", {})
    done = run(command, table, tmp_path / "." / "a.csv")
    assert (done.code, done.out) == (64, "")


@pytest.mark.parametrize("command", ["validate", "calibrate"])
@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "error[csv/unusable]: the file is empty"),
        (b"\n\n", "error[csv/unusable]: the file is empty"),
        (b"row_id,speed\n1,2\n", "error[csv/unusable]: no known columns in the first line"),
        (",".join(COLUMNS).encode() + b"\n", "error[csv/unusable]: the table has no rows"),
        (b"\xff\xfe\x00", "error[csv/unusable]: this file is not UTF-8 text"),
        (b'{\n "a": 1,\n "b" 2}', "error[json/syntax]: not JSON: Expecting ':' delimiter\n --> {file}:3:6\n"),
        (b'{\n "a": "\xff"}', "error[json/syntax]: this file is not UTF-8 text\n --> {file}:2:1\n"),
        (b"[]", "error[json/unusable]: no known benchmark result; looked for: aiperf"),
        (b"{}", "error[json/unusable]: no known benchmark result; looked for: aiperf"),
    ],
    ids=[
        "empty",
        "blank",
        "other columns",
        "header only",
        "binary",
        "broken JSON",
        "binary JSON",
        "empty list",
        "empty object",
    ],
)
def test_files_without_measurements_are_refused(command: str, content: bytes, said: str, tmp_path: Path) -> None:
    file = tmp_path / "x"
    file.write_bytes(content)
    done = run(command, file)
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith(said.format(file=file))


def test_calibrate_prints_errors_before_and_after() -> None:
    done = run("calibrate", RESULT, *FLAGS)
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("own: levels, 3 of 7 rows used; errors in sample\n")
    answer = answered("calibrate", RESULT, *FLAGS, "--name", "ours")
    assert (answer["kind"], answer["name"], answer["full"], answer["rows"]) == ("speed", "ours", False, 7)
    closed = answer["metrics"]["output_tok_s_closed_loop"]
    assert set(closed) == {"rows", "median_ape_before", "median_ape_after"}
    assert closed["median_ape_after"] < 0.5 * closed["median_ape_before"]


def test_validate_names_the_rows_that_are_furthest_off(tmp_path: Path) -> None:
    table = write(tmp_path / "some.csv", {}, {"value": "100"}, {"metric": "tpot_ms_mean", "value": "900"})
    worst = answered("validate", table)["worst"]
    assert [(row["file"], row["line"], row["metric"]) for row in worst[:2]] == [
        (str(table), 4, "tpot_ms"),
        (str(table), 3, "output_tok_s_closed_loop"),
    ]
    assert -1.0 < worst[0]["error"] < -0.9
    said = run("validate", table).out
    assert "\nWorst rows (by the constants of the catalog)\n" in said
    assert f"{table}:4\n" in said


def test_calibrate_names_the_rows_that_disagree(tmp_path: Path) -> None:
    slow = {"metric": "tpot_ms_mean", "value": "60"}
    table = write(tmp_path / "odd.csv", {}, {}, {}, {}, slow, {"metric": "tpot_ms_mean", "value": "8"})
    said = run("calibrate", table).out
    assert "Worse than before: " in said
    assert "These rows disagree among themselves, most of all:\n" in said
    assert f"  {table}:6: tpot_ms -" in said


def test_calibrate_prints_the_file_on_standard_output(calibrated: Path) -> None:
    done = run("calibrate", RESULT, *FLAGS, "--out", "-")
    assert (done.code, done.err) == (0, "")
    assert done.out == (calibrated / "calibration/own.yaml").read_text(encoding="utf-8")


def test_an_own_calibration_extends_the_shipped_one(calibrated: Path) -> None:
    document = parse((calibrated / "calibration/own.yaml").read_text(encoding="utf-8"), "own.yaml")[0]
    assert document is not None
    data = document.data
    assert (data["name"], data["extends"]) == ("own", "default")
    assert list(data["gpus"]) == ["H100-SXM-80GB"]
    assert [(level["gpu"], level["family"], level["weights"]) for level in data["levels"]] == [
        ("H100-SXM-80GB", "dense", "bf16")
    ]
    assert "constants" not in data


def test_estimates_of_the_measured_combination_follow_the_measurement(calibrated: Path) -> None:
    before, after = tpot_s(*H100_8B), tpot_s(*H100_8B, "--catalog", calibrated)
    assert after > 1.15 * before


def test_other_combinations_on_that_gpu_hardly_move(calibrated: Path) -> None:
    before, after = (tpot_s(*H100_8B, "--weights", "fp8", *more) for more in ((), ("--catalog", calibrated)))
    assert after == pytest.approx(before, rel=0.1)


@pytest.mark.parametrize("other", ["l40s", "b200", "mi300x"])
def test_estimates_on_other_gpus_stay_the_same(other: str, calibrated: Path) -> None:
    arguments = ("estimate", "--model", "llama-3.1-8b", "--gpu", other, "--concurrency", "64", "--format", "json")
    assert run(*arguments, "--catalog", calibrated).out == run(*arguments).out


def test_validate_scores_with_the_calibration_of_the_folder(calibrated: Path) -> None:
    errors = [
        answered("validate", RESULT, *FLAGS, *more)["metrics"]["tpot_ms"]["mean_of_group_medians"]
        for more in ((), ("--catalog", calibrated))
    ]
    assert errors[1] < 0.5 * errors[0]


def test_rows_that_calibrate_cannot_use_are_named(tmp_path: Path) -> None:
    answer = answered("calibrate", write(tmp_path / "some.csv", {}, {"gpu": "Voodoo 2"}))
    assert (answer["rows"], answer["used"]) == (2, 1)
    assert answer["skipped"] == {"GPU Voodoo 2: not in the catalog": 1}


@pytest.mark.parametrize("full", [(), ("--full",)])
def test_calibrate_writes_nothing_without_a_row_to_use(full: tuple[str, ...], tmp_path: Path) -> None:
    out = tmp_path / "own.yaml"
    done = run("calibrate", write(tmp_path / "none.csv", {"gpu": "Voodoo 2"}), "--out", out, *full)
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("error[measurements/too-little]: no row can be fitted: ")
    assert "no row can be fitted: 1 x GPU Voodoo 2: not in the catalog" in done.err
    assert not out.exists()


def test_calibrate_refuses_a_file_it_cannot_write_before_it_fits(tmp_path: Path) -> None:
    done = run("calibrate", SPEEDS, "--full", "--out", tmp_path / "missing" / "own.yaml")
    assert done.code == 64
    assert "missing" in done.err


def test_calibrating_again_beside_the_last_calibration_gives_the_same_file(calibrated: Path) -> None:
    again = run("calibrate", RESULT, *FLAGS, "--catalog", calibrated, "--out", "-")
    assert again.out == (calibrated / "calibration/own.yaml").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["", "../own", "a b", "x" * 65, "a\x1b[31m"])
def test_a_calibration_is_named_in_plain_words(name: str) -> None:
    done = run("calibrate", RESULT, *FLAGS, "--name", name)
    assert (done.code, done.out) == (64, "")
    assert "--name" in done.err


def test_a_calibration_is_named_as_its_file(tmp_path: Path) -> None:
    assert run("calibrate", RESULT, *FLAGS, "--out", tmp_path / "lab.yaml").code == 0
    assert 'name: "lab"' in (tmp_path / "lab.yaml").read_text(encoding="utf-8")


def test_all_constants_need_many_rows(tmp_path: Path) -> None:
    done = run("calibrate", write(tmp_path / "few.csv", {}), "--full")
    assert done.code == 1
    assert "--full needs 200 rows of 3 sources" in done.err


@pytest.mark.parametrize(
    ("line", "where"),
    [
        ("levels: {a: 1}", "levels"),
        ("gpus: [1]", "gpus"),
        ("level: []", "level"),
        ("extends: Default", "extends"),
        ("gpus: {H100-SXM-80GB: {weights: 800.0, kv: 0, compute: 0, layer: 0}}", "weights"),
        ("gpus: {Voodoo-2: {weights: 0.1, kv: 0, compute: 0, layer: 0}}", "Voodoo-2"),
        ("name: other", "name"),
    ],
)
@pytest.mark.parametrize("command", ["validate", "calibrate"])
def test_an_own_calibration_that_is_wrong_is_said_where(
    command: str, line: str, where: str, calibrated: Path, tmp_path: Path
) -> None:
    broken = tmp_path / "catalog"
    shutil.copytree(calibrated, broken)
    file = broken / "calibration/own.yaml"
    key = line.partition(":")[0]
    kept = [part for part in yaml.safe_load(file.read_text(encoding="utf-8")).items() if part[0] != key]
    file.write_text(yaml.safe_dump(dict(kept)) + line + "\n", encoding="utf-8")
    done = run(command, RESULT, *FLAGS, "--catalog", broken)
    assert (done.code, done.out) == (1, "")
    assert where in done.err


def test_flags_fill_blank_cells_of_tables(tmp_path: Path) -> None:
    blank = write(tmp_path / "blank.csv", {"gpu": "", "engine": "n/a"})
    assert nothing_scored("validate", blank)["scored"] == 0
    assert answered("validate", blank, "--gpu", "h100-sxm", "--engine", "vLLM 0.19.1")["scored"] == 1


def test_flags_of_speeds_are_refused_for_start_up_logs() -> None:
    done = run("validate", LOGS, "--gpu", "h100-sxm")
    assert done.code == 1
    assert "these are start-up logs" in done.err


def test_a_plan_says_that_own_measurements_changed_it(calibrated: Path) -> None:
    spec = ROOT / "specs/examples/one-model-one-gpu.yaml"
    assumed = json.loads(run("solve", spec, "--catalog", calibrated, "--format", "json").out)["assumptions"]
    own = next(row for row in assumed if row["key"] == "calibration")
    assert own["value"].startswith("3 own measurements on H100-SXM-80GB are put over")
    shipped = json.loads(run("solve", spec, "--format", "json").out)["assumptions"]
    assert "calibration" not in {row["key"] for row in shipped}


@pytest.mark.parametrize(
    ("out", "flags", "said"),
    [
        ("calibration/default.yaml", (), "only --full fits anew"),
        ("calibration/lab.yaml", ("--name", "other"), "in a catalog the file of `other` is other.yaml"),
        ("calibration/lab.yaml", ("--full",), "a full calibration is default.yaml"),
        ("notes.txt", (), "ends in .yaml"),
        ("mine.yaml", ("mine.yaml",), "is one of the files that are read"),
    ],
)
def test_a_calibration_destroys_nothing(
    out: str, flags: tuple[str, ...], said: str, calibrated: Path, tmp_path: Path
) -> None:
    catalog = tmp_path / "catalog"
    shutil.copytree(calibrated, catalog)
    target = catalog / out
    before = target.read_bytes() if target.exists() else None
    given = [catalog / flag if flag.endswith(".yaml") else flag for flag in flags]
    done = run("calibrate", RESULT, *given, *FLAGS, "--out", target)
    assert (done.code, done.out) == (64, "")
    assert said in done.err
    assert (target.read_bytes() if target.exists() else None) == before


@pytest.mark.parametrize(
    "command",
    [
        ("estimate", "--model", "llama-3.3-70b", "--gpu", "h100-sxm", "--tp", "4"),
        ("solve", ROOT / "specs/examples/one-model-one-gpu.yaml"),
        ("validate", SPEEDS),
        ("calibrate", RESULT, *FLAGS),
        ("catalog", "check"),
    ],
    ids=lambda command: command[0],
)
def test_a_broken_shipped_calibration_is_wrong_input(
    command: tuple[str | Path, ...], calibrated: Path, tmp_path: Path
) -> None:
    catalog = tmp_path / "catalog"
    shutil.copytree(calibrated, catalog)
    shutil.copy(calibrated / "calibration/own.yaml", catalog / "calibration/default.yaml")
    done = run(*command, "--catalog", catalog)
    assert done.code == 1
    assert "generations is missing" in done.err + done.out
