"""`planner solve --prefer`: the flags, wrong plans, what the reports say."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from cli_run import INFEASIBLE, TINY, WriteSpec, run

from planner.plan.io import dump, loads, with_digest
from planner.plan.schema import Plan

LESS = TINY.replace("rate: 2 req/s", "rate: 1.9 req/s")


def test_a_kept_fleet(tiny_json: Path, spec_file: WriteSpec, tmp_path: Path) -> None:
    """The saved plan and all reports of it say that it was kept, and it is preferred in turn."""
    out = tmp_path / "plan.json"
    done = run("solve", spec_file(LESS), "--prefer", tiny_json, "--stay-within", "2 %", "--out", out)
    again = run("solve", spec_file(LESS), "--prefer", out, "--quiet", "--format", "json")

    assert (done.code, again.code) == (0, 0)
    assert "\nPreferred fleet: kept (sha256:" in done.out
    assert "\n  No cheaper fleet was found.\n" in done.out
    assert "### Preferred fleet: kept (sha256:" in run("show", out, "--format", "markdown").out
    saved = json.loads(out.read_text(encoding="utf-8"))
    assert saved["preferred"]["plan"] == json.loads(tiny_json.read_text(encoding="utf-8"))["digests"]["plan"]
    assert (saved["preferred"]["outcome"], saved["preferred"]["stay_within"]) == ("kept", 0.02)
    assert json.loads(again.out)["preferred"]["plan"] == saved["digests"]["plan"]


def test_the_spec_has_the_default(tiny_json: Path, spec_file: WriteSpec) -> None:
    spec = spec_file(TINY + "planning: {stay_within: 7 %}\n")
    done = run("solve", spec, "--prefer", tiny_json, "--quiet", "--format", "json")
    config = run("solve", spec, "--prefer", tiny_json, "--stay-within", "2 %", "--show-config").out

    assert json.loads(done.out)["preferred"]["stay_within"] == 0.07
    assert any(line.split() == ["stay_within:", "2", "%", "#", "--stay-within"] for line in config.splitlines())
    assert run("solve", spec, env={"PLANNER_PREFER": str(tiny_json)}).out.count("Preferred fleet: kept") == 1


def test_a_spec_without_a_fleet(tiny_json: Path, spec_file: WriteSpec) -> None:
    done = run("solve", spec_file(INFEASIBLE), "--prefer", tiny_json)
    assert done.code == 3
    assert "Preferred fleet: not kept" in done.out


def changed(plan: Plan, **values: object) -> str:
    return dump(with_digest(plan.model_copy(update=values)))


@pytest.mark.parametrize(
    ("kind", "error"),
    [
        ("text", "error[plan/unreadable]: this is not JSON"),
        ("spec", "error[plan/unreadable]: this is not a plan of schema_version 1"),
        ("edited", "error[plan/unreadable]: the plan was changed after it was written: its digest does not match"),
        ("empty", "error[plan/no-fleet]: this plan has no fleet to keep"),
        ("other", "error[plan/other-fleet]: this plan serves no model of the spec: it serves mail, and the spec chat"),
    ],
)
def test_files_that_hold_no_fleet_to_keep(
    kind: str, error: str, tiny_json: Path, spec_file: WriteSpec, tmp_path: Path
) -> None:
    """All are located mistakes, and the plan that is there already stays as it was."""
    plan = loads(tiny_json.read_bytes(), "plan.json")
    mail = tuple(p.model_copy(update={"model": "mail"}) for p in plan.pools)
    text = {
        "text": "no plan",
        "spec": "{}",
        "edited": tiny_json.read_text(encoding="utf-8").replace('"tiny"', '"tinier"'),
        "empty": changed(plan, pools=()),
        "other": changed(plan, pools=mail),
    }[kind]
    path, out = tmp_path / "before.json", tmp_path / "plan.json"
    path.write_text(text, encoding="utf-8")
    shutil.copy(tiny_json, out)
    done = run("solve", spec_file(TINY), "--prefer", path, "--out", out)

    assert (done.code, done.out) == (1, "")
    assert done.err.startswith(error)
    assert f"--> {path}:1:1\n" in done.err
    assert out.read_bytes() == tiny_json.read_bytes()


@pytest.mark.parametrize(
    ("flags", "error"),
    [
        (
            ("--stay-within", "2 %"),
            "planner: --stay-within: it says what keeping a fleet may cost; give its plan with --prefer",
        ),
        (("--prefer", "plan.json", "--stay-within", "-1 %"), "planner: --stay-within: "),
        (
            ("--prefer", "plan.json", "--stay-within", "2"),
            "planner: --stay-within: `2` is more than the whole; a share is 0 to 100 %; did you mean `2 %`?",
        ),
        (("--prefer", "plan.json", "--stay-within", "101 %"), "planner: --stay-within: `101 %` is more than the whole"),
        (("--prefer", "no-such-plan.json"), "planner: cannot read no-such-plan.json: No such file or directory"),
    ],
)
def test_wrong_usage(flags: tuple[str, ...], error: str, spec_file: WriteSpec) -> None:
    done = run("solve", spec_file(TINY), *flags)
    assert (done.code, done.out) == (64, "")
    assert done.err.startswith(error)


def test_standard_input_is_read_once() -> None:
    done = run("solve", "-", "--prefer", "-", stdin=TINY.encode())
    assert (done.code, done.err) == (
        64,
        "planner: --prefer: standard input is the spec already; give the plan as a file\n",
    )
