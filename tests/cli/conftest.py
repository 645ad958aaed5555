"""Specs as files, and plans that are made once for all tests of the command line."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from cli_run import ROOT, TINY, WriteSpec, run
from speed_files import FLAGS, RESULT

from planner.plan.io import loads
from planner.plan.schema import Plan


@pytest.fixture
def spec_file(tmp_path: Path) -> WriteSpec:
    """Write a spec into a folder of its own and return its path."""

    def write(text: str) -> Path:
        path = tmp_path / "fleet.yaml"
        path.write_text(text, encoding="utf-8")
        return path

    return write


@pytest.fixture(scope="session")
def tiny_json(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The plan of the tiny spec, as `--out` saves it."""
    folder = tmp_path_factory.mktemp("plans")
    spec, plan = folder / "fleet.yaml", folder / "plan.json"
    spec.write_text(TINY, encoding="utf-8")
    assert run("solve", spec, "--quiet", "--out", plan).code == 0
    return plan


@pytest.fixture
def no_solver(monkeypatch: pytest.MonkeyPatch, tiny_json: Path) -> Plan:
    """Let `solve` return the plan of the tiny spec at once, for tests of what is around it."""
    plan = loads(tiny_json.read_bytes(), "plan.json")
    monkeypatch.setattr("planner.pipeline.make_plan", lambda *_: plan)
    return plan


@pytest.fixture(scope="session")
def calibrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the catalog with a calibration from a result file."""
    root = tmp_path_factory.mktemp("own") / "catalog"
    shutil.copytree(ROOT / "catalog", root)
    done = run("calibrate", RESULT, *FLAGS, "--out", root / "calibration/own.yaml")
    assert done.code == 0
    assert done.err.startswith("wrote ")
    return root
