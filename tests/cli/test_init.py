"""`planner init`: the first spec is right, solves, and is never overwritten by accident."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_run import run


def test_the_first_spec_solves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    made = run("init")
    assert made.out == "Next: planner solve fleet.yaml\n"
    assert made.err == "wrote fleet.schema.json\nwrote fleet.yaml\n"

    checked = run("check", "fleet.yaml", "--fail-on", "warning")
    solved = run("solve", "fleet.yaml", "--format", "json")

    assert (made.code, checked.code, solved.code) == (0, 0, 0)
    assert json.loads(solved.out)["status"] == "solved"


def test_the_schema_is_beside_it(tmp_path: Path) -> None:
    run("init", tmp_path / "new" / "folder")
    first = (tmp_path / "new" / "folder" / "fleet.yaml").read_text(encoding="utf-8").splitlines()[0]
    schema = tmp_path / "new" / "folder" / first.rpartition("=")[2]

    assert schema.read_text(encoding="utf-8") == run("schema").out


def test_a_spec_that_is_there_stays(tmp_path: Path) -> None:
    spec = tmp_path / "fleet.yaml"
    spec.write_text("mine", encoding="utf-8")
    refused = run("init", tmp_path)

    assert refused.code == 1
    assert refused.err == f"planner: {spec} is there already; --force replaces it\n"
    assert spec.read_text(encoding="utf-8") == "mine"
    assert run("init", tmp_path, "--force", "--quiet").err == ""
    assert spec.read_text(encoding="utf-8").startswith("# yaml-language-server")
