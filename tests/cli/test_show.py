"""`planner show`: saved plans in every format, and files that are no plans."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_run import run


def test_json_is_the_same_bytes(tiny_json: Path) -> None:
    done = run("show", tiny_json, "--format", "json")

    assert (done.code, done.err) == (0, "")
    assert done.out.encode() == tiny_json.read_bytes()


@pytest.mark.parametrize(("format", "start"), [("table", "tiny: 1 workload"), ("markdown", "## tiny: 1 workload")])
def test_other_formats(format: str, start: str, tiny_json: Path) -> None:
    done = run("show", tiny_json, "--format", format)

    assert done.code == 0
    assert done.out.startswith(start)


def test_the_table_is_the_default_and_says_nothing_of_a_spec(tiny_json: Path) -> None:
    done = run("show", tiny_json)

    assert done.out == run("show", tiny_json, "--format", "table").out
    assert "Next:" not in done.out


def test_standard_input_and_output(tiny_json: Path, tmp_path: Path) -> None:
    page = tmp_path / "plan.md"
    done = run("show", "-", "--format", "markdown", "--out", page, stdin=tiny_json.read_bytes())

    assert (done.out, done.err) == ("", f"wrote {page}\n")
    assert page.read_text(encoding="utf-8") == run("show", tiny_json, "--format", "markdown").out


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "this is not JSON"),
        (b"\x00\x01\xff", "this is not JSON"),
        (b'{"schema_version": 1', "this is not JSON"),
        (b"[" * 100_000, "this is not JSON"),
        (b"[]", "this is not a plan of schema_version 1"),
        (b'{"schema_version": 2}', "this is not a plan of schema_version 1"),
        (b'{"schema_version": 1}', "fleet: Field required"),
    ],
    ids=["empty", "binary", "cut", "deep", "list", "newer", "incomplete"],
)
def test_files_that_are_no_plans(content: bytes, words: str, tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_bytes(content)
    done = run("show", path)

    assert (done.code, done.out) == (1, "")
    assert words in done.err
    assert f"--> {path}:1:" in done.err
    assert "Traceback" not in done.err


def test_a_changed_plan_is_refused(tiny_json: Path, tmp_path: Path) -> None:
    data = json.loads(tiny_json.read_bytes())
    data["objective"]["usd_per_month"] -= 100
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(data), encoding="utf-8")
    done = run("show", path)

    assert done.code == 1
    assert "its digest does not match" in done.err
