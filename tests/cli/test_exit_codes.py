"""Every way a run can end, and the exit code it has."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cli_run import DENIED, INFEASIBLE, TINY, UNSERVED, WARNED, WRONG, WriteSpec, run

from planner.cli.exits import PRECEDENCE, ExitCode, first_of
from planner.pipeline import BrokenPlan
from planner.plan.io import dump
from planner.plan.schema import Plan, PolicyResult


@pytest.mark.parametrize(
    ("text", "code"),
    [(TINY, 0), (WARNED, 0), (WRONG, 1), (INFEASIBLE, 3), (UNSERVED, 3), (DENIED, 5)],
    ids=["solved", "policy warns", "wrong spec", "infeasible", "unserved", "policy denies"],
)
def test_what_a_solve_ends_in(text: str, code: int, spec_file: WriteSpec) -> None:
    done = run("solve", spec_file(text))

    assert done.code == code
    assert bool(done.out) == (code != 1)


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["catalog"],
        ["solve"],
        ["solve", "nowhere.yaml"],
        ["solve", "."],
        ["solve", "n" * 5000],
        ["solve", "SPEC", "SPEC"],
        ["solve", "SPEC", "--fromat", "json"],
        ["solve", "SPEC", "--format", "xml"],
        ["solve", "SPEC", "--color", "pink"],
        ["solve", "SPEC", "--gap", "lots"],
        ["solve", "SPEC", "--gap", "0.1 kg"],
        ["solve", "SPEC", "--gap", "-1 %"],
        ["solve", "SPEC", "--time-limit", "60"],
        ["solve", "SPEC", "--time-limit", "0 s"],
        ["solve", "SPEC", "--as-of", "2026-13-01"],
        ["solve", "SPEC", "--catalog", "nowhere"],
        ["solve", "SPEC", "--out", "plan.pdf"],
        ["solve", "SPEC", "--out", "nowhere/plan.json"],
        ["solve", "SPEC", "--out", ".", "--format", "json"],
        ["solve", "SPEC", "--write-lp", "nowhere/fleet.lp"],
        ["show"],
        ["show", "nowhere.json"],
        ["show", "."],
        ["explain"],
        ["explain", "nowhere.json"],
        ["check", "nowhere.yaml"],
        ["check", "n" * 5000],
        ["schema", "fleets"],
        ["catalog", "list", "cars"],
        ["init", "SPEC/below"],
        ["sovle", "SPEC"],
    ],
    ids=lambda arguments: " ".join(arguments)[:40] or "nothing",
)
def test_wrong_usage_is_one_line(arguments: list[str], spec_file: WriteSpec) -> None:
    spec = str(spec_file(TINY))
    done = run(*(a.replace("SPEC", spec) for a in arguments))

    assert done.code == ExitCode.USAGE
    assert done.out == ""
    if arguments not in ([], ["catalog"]):
        assert done.err.startswith("planner: ")
        assert done.err.count("\n") == 1
        assert "Traceback" not in done.err


def test_a_group_alone_prints_its_help() -> None:
    assert run().err.startswith("Usage: planner [OPTIONS] COMMAND")
    assert run("catalog").err.startswith("Usage: planner catalog [OPTIONS] COMMAND")


def test_a_command_that_there_is_not_is_refused() -> None:
    assert run("sovle").err == "planner: there is no command `sovle`; did you mean `solve`?\n"


@pytest.mark.parametrize("flag", ["--gap", "--time-limit", "--as-of"])
def test_a_wrong_value_names_its_flag(flag: str, spec_file: WriteSpec) -> None:
    assert run("solve", spec_file(TINY), flag, "soon").err.startswith(f"planner: {flag}: ")


@pytest.mark.parametrize("arguments", [["--version"], ["--help"], ["-h"], ["solve", "-h"], ["catalog", "show", "-h"]])
def test_help_and_version_are_answers(arguments: list[str]) -> None:
    done = run(*arguments)

    assert (done.code, done.err) == (0, "")
    assert done.out


def test_a_missing_file_is_named() -> None:
    assert run("solve", "nowhere.yaml").err == "planner: cannot read nowhere.yaml: No such file or directory\n"


def _with(plan: Plan, **changes: Any) -> Callable[..., Plan]:
    return lambda *_: plan.model_copy(update=changes)


def test_an_unproven_plan_is_printed(no_solver: Plan, monkeypatch: pytest.MonkeyPatch, spec_file: WriteSpec) -> None:
    monkeypatch.setattr("planner.pipeline.make_plan", _with(no_solver, status="unproven"))
    spec = spec_file(TINY)
    done = run("solve", spec)

    assert done.code == ExitCode.UNPROVEN
    assert "NOT PROVEN" in done.out.splitlines()[0]
    assert run("solve", spec, "--accept-unproven").code == 0


def test_the_first_of_several_codes_wins(
    no_solver: Plan, monkeypatch: pytest.MonkeyPatch, spec_file: WriteSpec
) -> None:
    deny = PolicyResult(id="x", rule="forbid", outcome="deny", limit=None, actual=None, path="policies[0]")
    monkeypatch.setattr("planner.pipeline.make_plan", _with(no_solver, status="unproven", policies=(deny,)))
    spec = spec_file(TINY)

    assert run("solve", spec).code == ExitCode.UNPROVEN
    assert run("solve", spec, "--accept-unproven").code == ExitCode.DENIED


def test_precedence_is_total() -> None:
    assert set(PRECEDENCE) == set(ExitCode) - {ExitCode.INTERRUPTED}
    assert [int(code) for code in PRECEDENCE] == [70, 64, 1, 3, 4, 5, 2, 0]
    assert first_of([]) is ExitCode.DONE
    assert first_of([ExitCode.DENIED, ExitCode.WRONG_INPUT, ExitCode.UNPROVEN]) is ExitCode.WRONG_INPUT


@pytest.mark.parametrize("error", [BrokenPlan("pool chat is too small"), ArithmeticError("row"), KeyError("x")])
def test_a_bug_leaves_a_report(
    error: Exception, monkeypatch: pytest.MonkeyPatch, spec_file: WriteSpec, tmp_path: Path
) -> None:
    def fail(*_: object) -> Plan:
        secret = "hunter2"
        raise error from ValueError(f"{len(secret)} letters")

    monkeypatch.setattr("planner.pipeline.make_plan", fail)
    monkeypatch.chdir(tmp_path)
    done = run("solve", spec_file(TINY))
    (report,) = tmp_path.glob("planner-bug-*.txt")
    text = report.read_text(encoding="utf-8")

    assert done.code == ExitCode.BUG
    assert done.out == ""
    assert done.err.splitlines()[-1] == f"planner: this is a bug ({type(error).__name__}); a report is in {report}"
    assert "Traceback" not in done.err
    assert f"{type(error).__name__}: {error}" in text
    assert "after ValueError: 7 letters" in text
    assert "arguments: solve " in text
    assert "numpy: " in text
    assert "assistant" not in text


def test_a_bug_where_nothing_can_be_written(monkeypatch: pytest.MonkeyPatch, spec_file: WriteSpec) -> None:
    def full(**_: object) -> tuple[int, str]:
        raise OSError("disk full")

    monkeypatch.setattr("planner.pipeline.make_plan", lambda *_: 1 / 0)
    monkeypatch.setattr(tempfile, "mkstemp", full)
    done = run("solve", spec_file(TINY))

    assert done.code == ExitCode.BUG
    assert done.err.endswith("planner: this is a bug (ZeroDivisionError); no report could be written\n")


def test_an_interrupted_run(monkeypatch: pytest.MonkeyPatch, spec_file: WriteSpec) -> None:
    def interrupt(*_: object) -> Plan:
        raise KeyboardInterrupt

    monkeypatch.setattr("planner.pipeline.make_plan", interrupt)
    done = run("solve", spec_file(TINY))

    assert (done.code, done.out) == (130, "")
    assert done.err == "planner: interrupted\n"


def test_a_broken_catalog_is_wrong_input(spec_file: WriteSpec, tmp_path: Path) -> None:
    (tmp_path / "catalog").mkdir()
    (tmp_path / "catalog" / "catalog.yaml").write_text("catalog: [\n", encoding="utf-8")
    done = run("solve", spec_file(TINY))

    assert (done.code, done.out) == (1, "")
    assert "catalog.yaml:" in done.err


def test_showing_a_plan_is_no_verdict(no_solver: Plan, tmp_path: Path) -> None:
    """`show` only prints: an unproven plan was judged when it was made."""
    from planner.plan.io import with_digest

    path = tmp_path / "plan.json"
    path.write_text(dump(with_digest(no_solver.model_copy(update={"status": "unproven"}))), encoding="utf-8")

    assert json.loads(path.read_text(encoding="utf-8"))["status"] == "unproven"
    assert run("show", path).code == 0
