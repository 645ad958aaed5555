"""`planner catalog`: lists, shows and checks; what goes to stdout and with which exit code."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from planner.catalog import Catalog
from planner.cli.catalog import app, outline

RUNNER = CliRunner()


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    root = tmp_path / "catalog"
    (root / "gpus").mkdir(parents=True)
    (root / "catalog.yaml").write_text('catalog: 1\nnewest_price_date: "2026-07-30"\nstale_after_days: 180\n')
    (root / "gpus/X1.yaml").write_text("name: X1\nvendor: 3\n")
    return root


def test_list_gpus_is_a_table() -> None:
    done = RUNNER.invoke(app, ["list", "gpus"])
    lines = done.stdout.splitlines()

    assert done.exit_code == 0
    assert lines[0].split()[:2] == ["name", "class"]
    row = next(line for line in lines if line.startswith("H100-SXM-80GB"))
    assert row.split() == [
        "H100-SXM-80GB", "Hopper", "79.1", "3.35", "989.4", "1,978.9", "-", "nvlink", "450", "8", "700", "high",
    ]  # fmt: skip
    assert any(line.startswith("not modelled: TPU-v6e: ") for line in lines)


def test_list_models_as_json() -> None:
    answer = json.loads(RUNNER.invoke(app, ["list", "models", "--format", "json"]).stdout)

    assert answer["schema_version"] == 1
    assert len(answer["models"]) == 207
    llama = next(m for m in answer["models"] if m["name"] == "meta-llama/Llama-3.3-70B-Instruct")
    assert llama["kv_bytes_per_token"] == 327_680


def test_list_offers_by_provider_and_gpu() -> None:
    arguments = ["list", "offers", "--provider", "gcp", "--gpu", "h100-sxm", "--format", "json"]
    offers = json.loads(RUNNER.invoke(app, arguments).stdout)["offers"]

    assert {o["gpu"] for o in offers} == {"H100-SXM-80GB"}
    assert {o["provider"] for o in offers} == {"gcp"}
    small = next(o for o in offers if o["instance"] == "a3-highgpu-1g" and o["region"] == "us-central1")
    assert (small["on-demand"], small["spot"]) == (None, 6.3262)


def test_list_all_offers() -> None:
    offers = json.loads(RUNNER.invoke(app, ["list", "offers", "--format", "json"]).stdout)["offers"]
    catalog = Catalog.open()

    assert len(offers) == sum(len(catalog.offers(p)) for p in catalog.providers())


@pytest.mark.parametrize(
    ("name", "kind", "line"),
    [
        ("h100-sxm", "gpu", "  bf16: 295.3"),
        ("llama-3.3-70b", "model", "  kv_bytes_per_token_at_16_bits: 327680"),
        ("vllm", "engine", "newest: 0.33"),
        ("azure", "provider", "provider: azure"),
        ("P5.48XLARGE", "instance", "instance: p5.48xlarge"),
    ],
)
def test_show(name: str, kind: str, line: str) -> None:
    assert line in RUNNER.invoke(app, ["show", name]).stdout.splitlines()
    assert json.loads(RUNNER.invoke(app, ["show", name, "--format", "json"]).stdout)["kind"] == kind


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("h100", "could mean H100-NVL-94GB, H100-PCIe-80GB, H100-SXM-80GB"),
        ("H100-SMX-80GB", "did you mean H100-SXM-80GB"),
        ("TPU-v5e", "not modelled"),
        ("roadrunner", "no entry `roadrunner`"),
    ],
)
def test_show_of_a_name_that_means_no_one_thing(name: str, words: str) -> None:
    done = RUNNER.invoke(app, ["show", name])

    assert done.exit_code == 1
    assert done.stdout == ""
    assert words in done.stderr


def test_check_passes_with_warnings() -> None:
    done = RUNNER.invoke(app, ["check"])

    assert done.exit_code == 0
    assert "warning[catalog/undated-price]" in done.stdout
    assert " 0 errors, " in done.stdout.splitlines()[-1]


def test_check_ages_prices_at_a_date() -> None:
    done = RUNNER.invoke(app, ["check", "--as-of", "2027-06-01", "--format", "json"])
    answer = json.loads(done.stdout)

    assert done.exit_code == 0
    assert answer["errors"] == 0
    assert "catalog/stale-price" in {d["code"] for d in answer["diagnostics"]}


def test_check_of_a_broken_catalog_fails(broken: Path) -> None:
    done = RUNNER.invoke(app, ["check", "--catalog", str(broken)])

    assert done.exit_code == 1
    assert "X1.yaml:2:9: error[catalog/invalid-value]: `vendor`: " in done.stdout


def test_names_in_a_catalog_stay_on_their_line(broken: Path) -> None:
    (broken / "gpus/X1.yaml").rename(broken / "gpus/a\x1b[2J\nerror[x]: y\u202e.yaml")
    done = RUNNER.invoke(app, ["check", "--catalog", str(broken)])

    assert done.exit_code == 1
    assert "/gpus/a�[2J error[x]: y�.yaml:2:9: error[catalog/invalid-value]" in done.stdout
    assert not set("\x1b\u202e") & set(done.stdout)


def test_list_of_a_broken_catalog_fails(broken: Path) -> None:
    done = RUNNER.invoke(app, ["list", "gpus", "--catalog", str(broken)])

    assert done.exit_code == 1
    assert done.stdout == ""
    assert "X1.yaml" in done.stderr


def test_a_folder_that_is_no_catalog(tmp_path: Path) -> None:
    done = RUNNER.invoke(app, ["list", "gpus", "--catalog", str(tmp_path)])

    assert done.exit_code == 1
    assert "is no catalog" in done.stderr


def test_the_environment_names_a_catalog(broken: Path) -> None:
    done = RUNNER.invoke(app, ["list", "gpus"], env={"PLANNER_CATALOG": str(broken)})

    assert done.exit_code == 1


def test_outlines_nest() -> None:
    data = {"a": {"b": 1.5, "c": True}, "d": [1, 2], "e": [{"f": None, "g": "x"}], "h": []}

    assert outline(data) == ["a:", "  b: 1.5", "  c: true", "d: 1, 2", "e:", "  - f: -", "    g: x", "h: -"]
