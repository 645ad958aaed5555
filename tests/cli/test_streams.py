"""What goes where: the answer to standard output, the rest to standard error, colour only where it is wanted."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from cli_run import ROOT, TINY, WRONG, WriteSpec, run

from planner.plan.schema import Plan

STAGES = re.compile(r"(?:[a-z ]+ \d+\.\d\d s\n)+")
ESCAPE = "\x1b["


def test_stdout_has_only_the_answer(spec_file: WriteSpec) -> None:
    spec = spec_file(TINY)
    done = run("solve", spec, "--format", "json")

    assert json.loads(done.out)["fleet"] == "tiny"
    assert STAGES.fullmatch(done.err)
    assert done.err.startswith("candidates ")


def test_two_runs_print_the_same_bytes(spec_file: WriteSpec, tiny_json: Path) -> None:
    spec = spec_file(TINY)

    assert run("solve", spec, "--format", "json").out.encode() == tiny_json.read_bytes()


def test_findings_go_to_stderr(spec_file: WriteSpec) -> None:
    done = run("solve", spec_file(WRONG))

    assert done.out == ""
    assert done.err.startswith("error[spec/unknown-key]: `ttft_p59` is not a key of `slo`\n")
    assert "did you mean `ttft_p95`?" in done.err


def test_quiet_leaves_the_answer(no_solver: Plan, spec_file: WriteSpec) -> None:  # noqa: ARG001
    spec = spec_file(TINY)

    assert run("solve", spec, "-q").out


@pytest.mark.usefixtures("no_solver")
@pytest.mark.parametrize("name", ["p.json", "p.html", "p.txt"])
def test_quiet_prints_nothing_where_a_file_has_the_answer(name: str, spec_file: WriteSpec, tmp_path: Path) -> None:
    done = run("solve", spec_file(TINY), "-q", "--out", tmp_path / name)

    assert (done.code, done.out, done.err) == (0, "", "")
    assert (tmp_path / name).stat().st_size > 0


@pytest.mark.usefixtures("no_solver")
def test_what_is_read_is_not_overwritten(spec_file: WriteSpec, tiny_json: Path, tmp_path: Path) -> None:
    spec, plan, link = spec_file(TINY), tmp_path / "plan.json", tmp_path / "link.yaml"
    plan.write_bytes(tiny_json.read_bytes())
    link.symlink_to(spec)
    for command in (
        ("check", spec, "--format", "sarif", "--out", spec),
        ("check", tmp_path, "--out", link),
        ("solve", spec, "--format", "json", "--out", tmp_path / "." / spec.name),
        ("solve", spec, "--write-lp", link),
        ("show", plan, "--out", plan),
        ("export", plan, "--to", "csv", "--out", plan),
        ("simulate", plan, "--out", plan),
        ("simulate", plan, "--trace", f"assistant={spec}", "--out", spec),
        ("verify", plan, "--out", plan),
    ):
        done = run(*command)
        assert (done.code, done.out) == (64, ""), command
        assert "it is one of the files that are read" in done.err
    assert spec.read_text(encoding="utf-8") == TINY
    assert plan.read_bytes() == tiny_json.read_bytes()


def test_the_plan_that_is_preferred_may_be_replaced(spec_file: WriteSpec, tiny_json: Path, tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    plan.write_bytes(tiny_json.read_bytes())

    assert run("solve", spec_file(TINY), "-q", "--prefer", plan, "--out", plan).code == 0


@pytest.mark.usefixtures("no_solver")
def test_warnings_are_printed_and_can_be_silenced(spec_file: WriteSpec) -> None:
    daily = "tokens_per_day: {input: 100M, output: 90M}"
    spec = spec_file(TINY.replace("rate: 2 req/s", daily))

    assert run("solve", spec).err.startswith("warning[spec/")
    assert run("solve", spec, "--quiet").err == ""


@pytest.mark.usefixtures("no_solver")
def test_out_saves_and_still_prints_the_table(spec_file: WriteSpec, tiny_json: Path, tmp_path: Path) -> None:
    plan, spec = tmp_path / "plan.json", spec_file(TINY)
    done = run("solve", spec, "--out", plan)

    assert plan.read_bytes() == tiny_json.read_bytes()
    assert done.out.startswith("tiny: 1 workload")
    assert done.out.endswith(f"\n\nNext: planner show {plan} --out report.html\n")
    assert done.err == f"wrote {plan}\n"


@pytest.mark.usefixtures("no_solver")
@pytest.mark.parametrize(
    ("name", "format", "start"),
    [
        ("p.json", None, "{\n"),
        ("p.md", None, "## tiny: "),
        ("p.txt", None, "tiny: "),
        ("p.JSON", None, "{\n"),
        ("p.json", "markdown", "## tiny: "),
        ("plan", "json", "{\n"),
    ],
)
def test_the_ending_picks_the_format(
    name: str, format: str | None, start: str, spec_file: WriteSpec, tmp_path: Path
) -> None:
    chosen = ["--format", format] if format else []
    done = run("solve", spec_file(TINY), "--out", tmp_path / name, *chosen)

    assert (tmp_path / name).read_text(encoding="utf-8").startswith(start)
    assert bool(done.out) == (format is None)


@pytest.mark.usefixtures("no_solver")
def test_a_dash_is_standard_output(spec_file: WriteSpec, tiny_json: Path) -> None:
    done = run("solve", spec_file(TINY), "--out", "-", "--format", "json")

    assert done.out.encode() == tiny_json.read_bytes()


@pytest.mark.usefixtures("no_solver")
def test_a_dash_is_standard_input() -> None:
    assert run("solve", "-", stdin=TINY.encode()).code == 0
    assert " --> <stdin>:9:" in run("solve", "-", stdin=WRONG.encode()).err
    assert " --> x.yaml:9:" in run("solve", "-", "--stdin-filename", "x.yaml", stdin=WRONG.encode()).err


@pytest.mark.usefixtures("no_solver")
@pytest.mark.parametrize(
    ("env", "flags", "is_colored"),
    [
        ({}, [], False),
        ({"FORCE_COLOR": "1"}, [], True),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, [], False),
        ({"NO_COLOR": "1"}, ["--color", "always"], True),
        ({"FORCE_COLOR": "1"}, ["--color", "never"], False),
        ({"PLANNER_COLOR": "always"}, [], True),
        ({"PLANNER_COLOR": "always"}, ["--color", "never"], False),
    ],
)
def test_colour(env: dict[str, str], flags: list[str], is_colored: bool, spec_file: WriteSpec) -> None:
    done = run("solve", spec_file(TINY), *flags, env=env)

    assert (ESCAPE in done.out) == is_colored
    assert re.sub(r"\x1b\[\d*m", "", done.out).split() == run("solve", spec_file(TINY)).out.split()


@pytest.mark.usefixtures("no_solver")
def test_saved_files_have_no_colour(spec_file: WriteSpec, tmp_path: Path) -> None:
    run("solve", spec_file(TINY), "--color", "always", "--out", tmp_path / "p.txt")

    assert ESCAPE not in (tmp_path / "p.txt").read_text(encoding="utf-8")


@pytest.mark.usefixtures("no_solver")
def test_every_flag_has_a_twin_in_the_environment(spec_file: WriteSpec, tmp_path: Path) -> None:
    spec, plan = spec_file(TINY), tmp_path / "plan.json"

    assert json.loads(run("solve", spec, env={"PLANNER_FORMAT": "json"}).out)["status"] == "solved"
    assert run("solve", spec, env={"PLANNER_FORMAT": "json"}).out != run("solve", spec, "--format", "table").out
    assert run("solve", spec, env={"PLANNER_OUT": str(plan), "PLANNER_QUIET": "1"}).err == ""
    assert plan.is_file()
    assert run("solve", spec, env={"PLANNER_SHOW_CONFIG": "1"}).out.startswith("version: 1 ")
    for flag in ("GAP", "TIME_LIMIT", "AS_OF", "CATALOG", "WRITE_LP"):
        assert run("solve", spec, env={f"PLANNER_{flag}": "no/where"}).code == 64


@pytest.mark.usefixtures("no_solver")
def test_a_terminal_without_unicode(spec_file: WriteSpec) -> None:
    """What the encoding lacks is written as an escape; the report itself needs ASCII only."""
    spec = spec_file(TINY.replace("fleet: tiny", "fleet: tïny"))
    done = run("solve", spec, encoding="ascii")

    assert done.code == 0
    assert done.out.isascii()


def test_the_program_is_written_as_lp(spec_file: WriteSpec, tmp_path: Path) -> None:
    lp = tmp_path / "fleet.lp"
    done = run("solve", spec_file(TINY), "--write-lp", lp)

    assert done.err.endswith(f"wrote {lp}\n")
    assert "demand" in lp.read_text(encoding="utf-8")


@pytest.mark.skipif(os.name == "nt", reason="pipes of a shell")
def test_a_reader_that_leaves_early_is_no_failure(spec_file: WriteSpec) -> None:
    program = f"import sys; from planner.cli import main; sys.exit(main(['solve', {str(spec_file(TINY))!r}, '-q']))"
    shell = f'set -o pipefail; "{sys.executable}" -c "$0" | head -c 5'
    done = subprocess.run(["bash", "-c", shell, program], capture_output=True, text=True, cwd=ROOT, check=False)

    assert (done.returncode, done.stdout, done.stderr) == (0, "tiny:", "")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
def test_a_full_disk_is_one_line(tiny_json: Path) -> None:
    program = f"import sys; from planner.cli import main; sys.exit(main(['show', {str(tiny_json)!r}]))"
    with open("/dev/full", "w", encoding="utf-8") as full:
        done = subprocess.run(
            [sys.executable, "-c", program], stdout=full, stderr=subprocess.PIPE, text=True, cwd=ROOT, check=False
        )

    assert done.returncode == 64
    assert done.stderr == "planner: cannot write to standard output: No space left on device\n"


@pytest.mark.parametrize(
    ("arguments", "absent"),
    [
        (["--help"], ["numpy", "scipy", "pyomo", "highspy", "rich", "pydantic", "yaml", "planner.cli.check"]),
        (["solve", "--help"], ["numpy", "scipy", "pyomo", "highspy", "rich", "planner.cli.check"]),
        (["check", str(ROOT / "specs" / "prod.yaml")], ["numpy", "scipy", "pyomo", "highspy", "rich"]),
        (["solve", str(ROOT / "tests/data/bad_specs/unknown_key.yaml")], ["numpy", "pyomo", "highspy", "rich"]),
        (["schema"], ["numpy", "scipy", "pyomo", "highspy", "rich"]),
        (
            ["show", str(ROOT / "tests/data/plans/prod.json")],
            ["pyomo", "highspy", "matplotlib", "jinja2", "latex2mathml"],
        ),
    ],
    ids=["help", "solve help", "check", "wrong spec", "schema", "show"],
)
def test_commands_load_only_what_they_need(arguments: list[str], absent: list[str]) -> None:
    program = (
        "import sys\nfrom planner.cli import main\n"
        f"main({arguments!r})\n"
        f"print('loaded:', *sorted(set({absent!r}) & sys.modules.keys()), file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT, check=True)

    assert done.stderr.splitlines()[-1] == "loaded:"


@pytest.mark.usefixtures("no_solver")
def test_files_are_written_whole_or_not_at_all(
    spec_file: WriteSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> Path:
        raise OSError(28, "No space left on device")

    out = tmp_path / "plan.json"
    out.write_text("what was there", encoding="utf-8")
    monkeypatch.setattr(Path, "replace", full)
    done = run("solve", spec_file(TINY), "--out", out)

    assert (done.code, out.read_text(encoding="utf-8")) == (64, "what was there")
    assert done.err.endswith(f"planner: cannot write {out}: No space left on device\n")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["fleet.yaml", "plan.json"]


def test_links_and_devices_stay_what_they_are(no_solver: Plan, spec_file: WriteSpec, tmp_path: Path) -> None:
    real, link = tmp_path / "real.json", tmp_path / "link.json"
    real.write_text("", encoding="utf-8")
    real.chmod(0o640)
    link.symlink_to(real)

    assert run("solve", spec_file(TINY), "--out", link).code == 0
    assert link.is_symlink()
    assert real.stat().st_mode & 0o777 == 0o640
    assert json.loads(real.read_text(encoding="utf-8"))["digests"]["plan"] == no_solver.digests.plan
    assert run("solve", spec_file(TINY), "--format", "json", "--out", "/dev/null").code == 0
    assert Path("/dev/null").is_char_device()
