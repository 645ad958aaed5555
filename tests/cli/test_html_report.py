"""HTML reports from the command line: written, read back by every command that takes a plan, and what their flags refuse."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_run import TINY, WriteSpec, run

from planner.plan.schema import Plan


@pytest.fixture(scope="module")
def page(tiny_json: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report made without the spec of its plan, far from it."""
    path = tmp_path_factory.mktemp("page") / "report.html"
    away = path.with_name("plan.json")
    away.write_bytes(tiny_json.read_bytes())
    done = run("show", away, "--out", path, "--format", "html")
    assert (done.code, done.out) == (0, "")
    assert "is not beside it, here or in specs/: its report leaves out what needs it" in done.err
    assert done.err.endswith(f"wrote {path}\n")
    return path


def test_a_report_is_a_plan_like_any_other(page: Path, tiny_json: Path) -> None:
    assert run("show", page, "--format", "json").out.encode() == tiny_json.read_bytes()
    assert run("show", page).out == run("show", tiny_json).out
    assert run("show", "-", stdin=page.read_bytes()).out == run("show", tiny_json).out
    assert run("explain", page).out == run("explain", tiny_json).out


def test_the_ending_picks_the_format(tiny_json: Path) -> None:
    """Beside its spec, the report has what the spec adds; a table is printed as with any file."""
    path = tiny_json.with_name("plan.html")
    done = run("show", tiny_json, "--out", path)
    text = path.read_text(encoding="utf-8")

    assert done.out == run("show", tiny_json).out
    assert done.err.splitlines()[0].startswith("report ")
    assert "Roofline of L40S" in text
    assert str(tiny_json.with_name("fleet.yaml")) in text


@pytest.mark.usefixtures("no_solver")
def test_solve_writes_a_report(spec_file: WriteSpec, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    done = run("solve", spec_file(TINY), "--out", path, "--quiet")

    assert (done.code, done.err) == (0, "")
    assert "TTFT of pool chat against load" in path.read_text(encoding="utf-8")


def test_sensitivities_are_planned_where_they_are_asked_for(
    tiny_json: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def planned(_plan: Plan, _spec: object, _trials: object, starting: object) -> list[object]:
        starting("demand of assistant +10 % (1 of 3)")  # type: ignore[operator]
        return []

    monkeypatch.setattr("planner.explain.sensitivity.sensitivities", planned)
    done = run("show", tiny_json, "--out", tmp_path / "r.html", "--sensitivities")

    assert done.code == 0
    assert done.err.startswith("planning with demand of assistant +10 % (1 of 3)\n")


@pytest.mark.parametrize("command", ["show", "solve"])
def test_sensitivities_are_for_reports_alone(command: str, tiny_json: Path) -> None:
    given = tiny_json if command == "show" else tiny_json.with_name("fleet.yaml")
    done = run(command, given, "--sensitivities")

    assert (done.code, done.out) == (64, "")
    assert "--sensitivities: only the HTML report has them" in done.err


def test_another_spec_is_refused(tiny_json: Path, spec_file: WriteSpec, tmp_path: Path) -> None:
    other = spec_file(TINY.replace("rate: 2", "rate: 3"))
    done = run("show", tiny_json, "--spec", other, "--out", tmp_path / "r.html")

    assert done.code == 1
    assert "is not the spec that this plan was made from" in done.err
    assert not (tmp_path / "r.html").exists()


def test_a_page_that_is_no_report(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_text("<!DOCTYPE html><title>x</title>", encoding="utf-8")
    done = run("show", path)

    assert done.code == 1
    assert "this page holds no plan" in done.err
    assert f"--> {path}:1:1" in done.err
