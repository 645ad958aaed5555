"""Own calibrations: how commands name them where they decide, and what is said of files that were edited by hand."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from cli_run import ROOT, run
from speed_files import FLAGS, GOOD, RESULT, write

SPEC = ROOT / "specs/examples/one-model-one-gpu.yaml"
EDITED = "calibration/own.yaml"
Edit = Callable[[str, str, str], Path]


def explained(*arguments: str | Path) -> str:
    out = run("estimate", "--gpu", "h100-sxm", "--model", "llama-3.1-8b", "--explain", *arguments).out
    return " ".join(out.split())


@pytest.fixture
def edit(calibrated: Path, tmp_path: Path) -> Edit:
    """Copy the catalog and change a text in one of its files."""

    def edited(name: str, old: str, new: str) -> Path:
        root = tmp_path / "catalog"
        shutil.copytree(calibrated, root)
        text = (root / name).read_text(encoding="utf-8")
        assert re.search(old, text)
        (root / name).write_text(re.sub(old, new, text, count=1), encoding="utf-8")
        return root

    return edited


@pytest.mark.parametrize("load", [(), ("--concurrency", "8")])
def test_explain_names_the_own_calibration_that_decides(load: tuple[str, ...], calibrated: Path) -> None:
    text = explained("--catalog", calibrated, *load)
    assert "speed: own calibration own, 3 rows of this combination, put over catalog/calibration/default.yaml" in text
    assert "measured on vllm" not in text
    assert "own calibration" not in explained(*load)


def test_explain_names_own_rows_of_other_combinations_on_the_gpu(calibrated: Path) -> None:
    text = explained("--weights", "fp8", "--catalog", calibrated)
    assert "measured on vllm 0.9 to before 0.20 (0.33 is newer)" in text
    assert "constants of this GPU: own calibration own, 3 rows of other combinations" in text


def test_the_last_of_several_own_calibrations_decides(calibrated: Path, tmp_path: Path) -> None:
    root = tmp_path / "catalog"
    shutil.copytree(calibrated, root)
    table = write(tmp_path / "one.csv", {"weight_dtype": "bf16"})
    assert run("calibrate", table, "--catalog", root, "--out", root / "calibration/zoo.yaml").code == 0
    assert "speed: own calibration zoo, 1 row of this combination" in explained("--catalog", root)


def test_a_version_beyond_the_measured_ones_is_said_to_go_by_own_rows(calibrated: Path) -> None:
    text = explained("--engine-version", "0.40", "--catalog", calibrated)
    assert "speed by own calibration own, 3 rows" in text
    assert "speed as for 0.9 to before 0.20" in explained("--engine-version", "0.40")


def test_estimates_as_json_carry_the_own_rows(calibrated: Path) -> None:
    arguments = ("estimate", "--gpu", "h100-sxm", "--model", "llama-3.1-8b", "--format", "json")
    band = json.loads(run(*arguments, "--catalog", calibrated).out)["band"]
    assert band["own"] == {"calibration": "own", "rows": 3, "same": True}
    assert json.loads(run(*arguments).out)["band"]["own"] is None


def test_the_engine_line_of_a_plan_names_own_rows(calibrated: Path, tmp_path: Path) -> None:
    root = tmp_path / "catalog"
    shutil.copytree(calibrated, root)
    table = write(tmp_path / "l40s.csv", {**GOOD, "gpu": "L40S", "weight_dtype": "int8", "value": "900"})
    assert run("calibrate", table, "--catalog", root, "--out", root / "calibration/lab.yaml").code == 0
    assumed = json.loads(run("solve", SPEC, "--catalog", root, "--format", "json").out)["assumptions"]
    values = {row["key"]: row for row in assumed}
    assert values["models.chat.engine"]["value"].endswith(
        "(memory: 0.21 and later); speed of int8 weights on L40S: own calibration lab, 1 row"
    )
    assert values["calibration"]["source"] == "catalog/calibration/lab.yaml, catalog/calibration/own.yaml"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('levels:(.*\n.*)"vllm_new"', r'levels:\1"vllm_nwe"', "no engine class `vllm_nwe`; did you mean `vllm_new`?"),
        ('coverage:(.*\n.*)"vllm_new"', r'coverage:\1"vlm_new"', "no engine class `vlm_new`; did you mean `vllm_new`?"),
        ('family: "dense"', 'family: "dence"', "no family `dence`; did you mean `dense`?"),
        ('weights: "bf16"', 'weights: "bf61"', "no weight format `bf61`; did you mean `bf16`?"),
        ('gpu: "H100-SXM-80GB"', 'gpu: "H100-SMX-80GB"', "no GPU `H100-SMX-80GB`; did you mean `H100-SXM-80GB`?"),
        ("  H100-SXM-80GB:", "  H100-SXM:", "no GPU `H100-SXM`; did you mean `H100-SXM-80GB`?"),
        ('generation: "modern"', 'generation: "moden"', "no generation `moden`; did you mean `modern`?"),
        ('architecture_class: "Hopper"', 'architecture_class: "hoper"', "no architecture class `hoper`; did you mean"),
        ('family: "dense"', 'family: "x"', "no family `x`; known: dense, hybrid, mla-moe, moe"),
        ("log_time: [0-9.]+", "log_time: .nan", "`levels.0.log_time`: must be a finite number, got nan"),
        ("layer: [0-9.]+", "layer: .inf", "`gpus.H100-SXM-80GB.layer`: must be a finite number, got inf"),
        ("rows: 3, fitted", "rows: .nan, fitted", "`coverage.0.rows`: must be a finite number, got nan"),
    ],
)
@pytest.mark.parametrize(
    "command",
    [("catalog", "check"), ("validate", RESULT, *FLAGS), ("estimate", "--model", "llama-3.1-8b", "--gpu", "l40s")],
    ids=lambda command: command[0],
)
def test_a_slip_in_an_own_calibration_is_said_with_its_line(
    command: tuple[str | Path, ...], old: str, new: str, said: str, edit: Edit
) -> None:
    root = edit(EDITED, old, new)
    done = run(*command, "--catalog", root)
    assert done.code == 1
    assert said in done.err + done.out
    text = (root / EDITED).read_text(encoding="utf-8")
    wrong = said.split("`")[1] if said.startswith("no ") else ".nan" if "nan" in said else ".inf"
    line = next(n for n, row in enumerate(text.splitlines(), start=1) if re.search(rf"\W{re.escape(wrong)}\W", row))
    assert f"calibration/own.yaml:{line}:" in done.err + done.out


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("log_time: [0-9.-]+", "log_time: .inf", "`levels.0.log_time`: must be a finite number, got inf"),
        ("p95: [0-9.]+", "p95: .inf", "`bands.own.throughput.p95`: must be a finite number, got inf"),
        ("p80: [0-9.]+", "p80: .nan", "`bands.own.throughput.p80`: must be a finite number, got nan"),
        ("gpu_time: [0-9.]+", "gpu_time: -.inf", "must be a finite number, got -inf"),
    ],
)
def test_numbers_of_the_shipped_calibration_are_finite(old: str, new: str, said: str, edit: Edit) -> None:
    done = run("validate", RESULT, *FLAGS, "--catalog", edit("calibration/default.yaml", old, new))
    assert (done.code, done.out) == (1, "")
    assert said in done.err
    assert re.search(r"calibration/default.yaml:\d+:\d+", done.err)


@pytest.mark.parametrize(
    "name", ["calibration/lab.yml", "gpus/B1.yml", "offers/acme.YAML", "models/acme/m.yml", "engines/e.Yml"]
)
def test_a_file_by_another_ending_is_not_left_out_in_silence(name: str, calibrated: Path, tmp_path: Path) -> None:
    root = tmp_path / "catalog"
    shutil.copytree(calibrated, root)
    (root / name).parent.mkdir(exist_ok=True)
    (root / name).write_text("a: 1\n", encoding="utf-8")
    for command in (("catalog", "check"), ("solve", SPEC)):
        done = run(*command, "--catalog", root)
        assert done.code == 1
        assert f"{name} is not read: files of a catalog end in .yaml; rename it" in done.err + done.out
    assert run("catalog", "check", "--catalog", root).out.splitlines()[-1].partition(": ")[2].startswith("1 error, ")
