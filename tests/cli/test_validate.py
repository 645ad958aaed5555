"""`planner validate`, `planner calibrate` and `planner catalog import-model`: streams, formats, exit codes."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from cli_run import ROOT, run

LOGS = ROOT / "tests/data/memory/start_up_logs.csv"
CONFIGS = ROOT / "tests/data/configs"
QWEN = CONFIGS / "Qwen--Qwen3.5-27B.json"


def test_validate_prints_errors_groups_and_worst_rows() -> None:
    done = run("validate", str(LOGS))
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("42 start-up logs: 42 scorable, 42 scored\n")
    for part in ("weights_gib", "Worst groups", "Worst rows", "Outcome right in 40 of 42"):
        assert part in done.out


def test_validate_as_json_has_the_keys_of_the_contract() -> None:
    answer = json.loads(run("validate", str(LOGS), "--format", "json").out)
    assert answer["schema_version"] == 1
    assert (answer["rows"], answer["scorable"], answer["skipped"]) == (42, 42, {})
    assert set(answer["metrics"]) == {"weights_gib", "kv_gib", "kv_tokens", "max_concurrency", "outcome"}
    weights = answer["metrics"]["weights_gib"]
    assert weights["rows"] == sum(g["n"] for g in weights["groups"])
    assert set(weights["groups"][0]) == {"engine", "arch_class", "n", "median_ape", "p90_ape", "bias"}
    assert weights["median_ape"] < 0.005
    assert set(answer["metrics"]["outcome"]) == {"rows", "accuracy"}
    assert len(answer["details"]) == 42
    assert "cross_validated" not in answer


def test_validate_reports_both_with_cross_validation() -> None:
    done = run("validate", str(LOGS), "--cross-validate", "--format", "json")
    crossed = json.loads(done.out)["cross_validated"]["metrics"]
    assert crossed["weights_gib"]["rows"] == 38
    assert "median without model" in run("validate", str(LOGS), "--cross-validate").out


def test_validate_reads_standard_input() -> None:
    assert run("validate", "-", stdin=LOGS.read_bytes()).out == run("validate", str(LOGS)).out


def test_calibrate_prints_fitted_constants_beside_the_catalog() -> None:
    done = run("calibrate", str(LOGS), "--format", "json")
    answer = json.loads(done.out)
    assert (answer["rows"], answer["used"]) == (42, 42)
    logit = next(c for c in answer["constants"] if c["constant"] == "bytes_per_logit" and c["logs"] == 18)
    assert logit["catalog"] == 14.9
    assert logit["fitted"] == pytest.approx(14.9, abs=0.05)
    assert "42 of 42 logs used" in run("calibrate", str(LOGS)).out


@pytest.mark.parametrize("command", ["validate", "calibrate"])
@pytest.mark.parametrize(
    ("content", "code"),
    [
        ("", "csv/unusable"),
        ("a,b\n1,2\n", "csv/unusable"),
        ("model,gpu,scenario,metric,value\n", "csv/unusable"),
    ],
)
def test_tables_that_cannot_be_used_are_refused(command: str, content: str, code: str, tmp_path: Path) -> None:
    file = tmp_path / "x.csv"
    file.write_text(content)
    done = run(command, str(file))
    assert (done.code, done.out) == (1, "")
    assert code in done.err


@pytest.mark.parametrize("command", ["validate", "calibrate"])
def test_a_missing_table_is_wrong_usage(command: str) -> None:
    done = run(command, "no.csv")
    assert done.code == 64
    assert "cannot read no.csv" in done.err


def scratch_catalog(tmp_path: Path) -> Path:
    root = tmp_path / "catalog"
    root.mkdir()
    shutil.copy(ROOT / "catalog/catalog.yaml", root)
    return root


def test_import_model_writes_an_entry_that_the_catalog_reads(tmp_path: Path) -> None:
    root = scratch_catalog(tmp_path)
    arguments = (
        "catalog",
        "import-model",
        str(QWEN),
        "--name",
        "Qwen/Mine",
        "--catalog",
        str(root),
        "--read",
        "2026-11-30",
    )
    done = run(*arguments)
    assert (done.code, done.out) == (0, "")
    assert "26.896B parameters" in done.err
    text = (root / "models/Qwen/Mine.yaml").read_text()
    assert "read: '2026-11-30'" in text
    shown = run("catalog", "show", "Qwen/Mine", "--catalog", str(root), "--format", "json")
    assert json.loads(shown.out)["model"]["state"]["elements"] == 786432
    assert run(*arguments).code == 64
    assert run(*arguments, "--force").code == 0


def test_import_model_prints_to_standard_output() -> None:
    done = run("catalog", "import-model", str(QWEN), "--name", "a/b", "-o", "-")
    assert done.code == 0
    assert done.out.startswith("name: a/b\n")


def test_import_model_takes_the_name_of_its_folders(tmp_path: Path) -> None:
    folder = tmp_path / "Qwen" / "Qwen3.5-27B"
    folder.mkdir(parents=True)
    shutil.copy(QWEN, folder / "config.json")
    assert run("catalog", "import-model", str(folder / "config.json"), "-o", "-").out.startswith(
        "name: Qwen/Qwen3.5-27B\n"
    )


def test_import_model_reads_the_quantisation_beside_the_config(tmp_path: Path) -> None:
    for kind, name in (("", "config.json"), (".hf_quant_config", "hf_quant_config.json")):
        shutil.copy(CONFIGS / f"nvidia--Qwen3-235B-A22B-NVFP4{kind}.json", tmp_path / name)
    done = run("catalog", "import-model", str(tmp_path / "config.json"), "--name", "a/b", "-o", "-")
    assert "native_format: nvfp4" in done.out


@pytest.mark.parametrize(
    ("name", "code", "message"),
    [
        ("../../etc/x", 64, "is no ORG/NAME"),
        ("noslash", 64, "is no ORG/NAME"),
        ("a/b/c", 64, "is no ORG/NAME"),
        ("a/.b", 64, "is no ORG/NAME"),
    ],
)
def test_import_model_refuses_names_that_lead_elsewhere(name: str, code: int, message: str) -> None:
    done = run("catalog", "import-model", str(QWEN), "--name", name)
    assert done.code == code
    assert message in done.err


def test_import_model_refuses_what_it_cannot_count() -> None:
    done = run("catalog", "import-model", str(CONFIGS / "deepseek-ai--DeepSeek-V4-Flash.json"), "--name", "a/b")
    assert (done.code, done.out) == (1, "")
    assert "model/unsupported" in done.err
    assert "deepseek_v4" in done.err


def test_import_model_refuses_files_that_are_no_config(tmp_path: Path) -> None:
    assert run("catalog", "import-model", str(tmp_path / "no.json"), "--name", "a/b").code == 64
    bad = tmp_path / "config.json"
    bad.write_text("[1, 2")
    done = run("catalog", "import-model", str(bad), "--name", "a/b")
    assert done.code == 1
    assert "not JSON" in done.err
