"""`planner check`: exit codes, streams, formats, what it loads."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import cli_run
import pytest
from cli_run import NO_SPECS, ROOT

from planner.diagnostics import Diagnostic, Severity, Span
from planner.report.diagnostics import render_concise, render_full, render_json, summary

PROD = str(ROOT / "specs" / "prod.yaml")
BAD = ROOT / "tests" / "data" / "bad_specs"


def run(*arguments: str, stdin: bytes = b"") -> tuple[int, str, str]:
    """Run a command; return exit code, stdout and stderr."""
    done = cli_run.run(*arguments, stdin=stdin)
    return done.code, done.out, done.err


def test_clean_spec() -> None:
    """Nothing on stdout, one line on stderr, exit 0."""
    assert run("check", PROD) == (0, "", "No problems found (1 file checked).\n")


def test_wrong_spec_is_exit_1() -> None:
    """The findings are the answer and go to stdout."""
    code, out, err = run("check", str(BAD / "unknown_key.yaml"))

    assert code == 1
    assert out.startswith("error[spec/unknown-key]: `ttft_p59` is not a key of `slo`\n")
    assert err == "Found 1 error in 1 file (1 checked).\n"


def test_many_files_and_folders() -> None:
    """Folders are searched for YAML files; each file is checked once, in order."""
    code, out, err = run("check", "--format", "concise", PROD, str(BAD), PROD)

    files = {line.partition(".yaml:")[0] for line in out.splitlines()}
    assert code == 1
    assert len(files) == len(list(BAD.glob("*.yaml")))
    assert err.endswith(f"({len(files) + 1} checked).\n")


@pytest.mark.parametrize("arguments", [["nowhere.yaml"], [PROD, "nowhere.yaml"], ["--catalog", "nowhere", PROD]])
def test_missing_path_is_exit_64_with_one_line(arguments: list[str]) -> None:
    """A path that is not there is wrong usage."""
    code, out, err = run("check", *arguments)

    assert (code, out) == (64, "")
    assert err.count("\n") == 1
    assert "nowhere" in err


def test_folder_without_specs_is_exit_64(tmp_path: Path) -> None:
    """Checking nothing is not a success."""
    code, _, err = run("check", str(tmp_path))

    assert code == 64
    assert err == f"planner: no YAML file in {tmp_path}\n"


def test_standard_input() -> None:
    """`-` reads a spec from a pipe, under a name of one's choice."""
    text = (BAD / "negative_rate.yaml").read_bytes()

    _, anonymous, _ = run("check", "--format", "concise", "-", stdin=text)
    code, named, _ = run("check", "--format", "concise", "--stdin-filename", "x.yaml", "-", stdin=text)

    assert code == 1
    assert anonymous.startswith("<stdin>:9:13: error[spec/out-of-range] ")
    assert named.startswith("x.yaml:9:13: error[spec/out-of-range] ")


@NO_SPECS
def test_files_that_are_no_specs(tmp_path: Path, content: bytes, code: str) -> None:
    """Empty, binary and 10 MB files are located errors."""
    file = tmp_path / "f.yaml"
    file.write_bytes(content)

    exit_code, out, _ = run("check", "--format", "concise", str(file))

    assert exit_code == 1
    assert out.startswith(f"{file}:1:1: error[{code}] ")
    assert out.count("\n") == 1


def test_json_is_one_object() -> None:
    """The JSON form is the interface for programs."""
    code, out, _ = run("check", "--format", "json", str(BAD / "duplicate_key.yaml"), PROD)

    report = json.loads(out)
    path = str(BAD / "duplicate_key.yaml")
    assert code == 1
    assert report == {
        "schema_version": 1,
        "checked": [path, PROD],
        "errors": 1,
        "warnings": 0,
        "diagnostics": [
            {
                "code": "yaml/duplicate-key",
                "severity": "error",
                "message": "`fleet` is given twice in one mapping",
                "span": {"path": path, "line": 16, "column": 1, "end_column": 6},
                "label": "again here; YAML would silently keep this one",
                "help": [],
                "related": [
                    {"span": {"path": path, "line": 2, "column": 1, "end_column": 6}, "label": "first here"},
                ],
            }
        ],
    }


def test_warnings_fail_on_request(tmp_path: Path) -> None:
    """Warnings are exit 0 unless asked otherwise."""
    text = Path(PROD).read_text(encoding="utf-8").replace("output: 20M", "output: 30M")
    file = tmp_path / "warn.yaml"
    file.write_text(text, encoding="utf-8")

    relaxed, _, err = run("check", str(file))
    strict, _, _ = run("check", "--fail-on", "warning", str(file))

    assert (relaxed, strict) == (0, 1)
    assert err == "Found 1 warning in 1 file (1 checked).\n"


def test_check_loads_neither_numpy_nor_a_solver() -> None:
    """A commit hook stays fast."""
    program = (
        "import sys\n"
        "from planner.cli.check import check_file\n"
        f"assert check_file({PROD!r}, None)[0] == []\n"
        "print(sorted({'numpy', 'scipy', 'pyomo', 'highspy', 'rich'} & set(sys.modules)))\n"
    )

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=os.environ)

    assert done.stdout == "[]\n"


def test_schema_prints_the_committed_file() -> None:
    """`planner schema > specs/fleet.schema.json` changes nothing."""
    code, out, _ = run("schema")

    assert code == 0
    assert out == (ROOT / "specs" / "fleet.schema.json").read_text(encoding="utf-8")


SPEC = """\
version: 1
workloads:
  chat:
    slo:
      ttft_p95: 500 ms
      tpot_p59: 20 ms
    reserve: 6 Gb
    model: code
    allow: {}
    deny: {}
    slo:
""".splitlines()


def at(line: int, column: int, length: int) -> Span:
    """A place in the example."""
    return Span("specs/prod.yaml", line, column, column + length)


UNKNOWN_KEY = Diagnostic(
    "spec/unknown-key",
    "`tpot_p59` is not a key of `slo`",
    at(6, 7, 8),
    label="did you mean `tpot_p95`?",
    help=("keys here: ttft_p50, tpot_p95",),
    related=((at(4, 5, 3), ""),),
)
DUPLICATE = Diagnostic(
    "yaml/duplicate-key",
    "`slo` is given twice in one mapping",
    at(11, 5, 3),
    label="again here",
    related=((at(4, 5, 3), "first here"),),
)
WARNING = Diagnostic("physics/slo-below-floor", "TPOT p95 of 2 ms is too short", at(25, 17, 4), Severity.WARNING)
PLACELESS = Diagnostic("catalog/not-found", "no catalog", label="give one with --catalog")


def test_full_format() -> None:
    """Lines, carets, context of the parent key, second places, help."""
    text = render_full([UNKNOWN_KEY, DUPLICATE, WARNING, PLACELESS], {"specs/prod.yaml": SPEC})

    assert text == FULL


FULL = """\
error[spec/unknown-key]: `tpot_p59` is not a key of `slo`
 --> specs/prod.yaml:6:7
  |
4 |     slo:
5 |       ttft_p95: 500 ms
6 |       tpot_p59: 20 ms
  |       ^^^^^^^^ did you mean `tpot_p95`?
  = keys here: ttft_p50, tpot_p95

error[yaml/duplicate-key]: `slo` is given twice in one mapping
  --> specs/prod.yaml:11:5
   |
 4 |     slo:
   |     --- first here
11 |     slo:
   |     ^^^ again here

warning[physics/slo-below-floor]: TPOT p95 of 2 ms is too short
  --> specs/prod.yaml:25:17

error[catalog/not-found]: no catalog
  = give one with --catalog
"""


def test_concise_format() -> None:
    """One line each; without a place, no place is invented."""
    assert render_concise([UNKNOWN_KEY, PLACELESS]) == (
        "specs/prod.yaml:6:7: error[spec/unknown-key] `tpot_p59` is not a key of `slo`; did you mean `tpot_p95`?\n"
        "error[catalog/not-found] no catalog; give one with --catalog\n"
    )


def test_json_without_place() -> None:
    """A diagnostic without a place has a null span."""
    assert json.loads(render_json([PLACELESS], []))["diagnostics"][0]["span"] is None


def test_summary_counts() -> None:
    """Errors, warnings, files."""
    other = Diagnostic("x/y", "z", Span("b.yaml", 1, 1, 2))
    assert (
        summary([UNKNOWN_KEY, DUPLICATE, WARNING, other], 3) == "Found 3 errors and 1 warning in 2 files (3 checked)."
    )
    assert summary([], 2) == "No problems found (2 files checked)."


def test_long_and_odd_lines_stay_readable() -> None:
    """Long lines are cut around the caret; tabs, wide letters and control characters keep the caret in place."""
    long = "a" * 400 + "XY" + "b" * 400
    odd = "\t日本: \u202eXY"
    lines = {"specs/prod.yaml": [long, odd]}

    first = render_full([Diagnostic("a/b", "m", at(1, 401, 2))], lines).splitlines()
    second = render_full([Diagnostic("a/b", "m", at(2, odd.index("XY") + 1, 2))], lines).splitlines()

    assert len(first[3]) < 170
    assert first[3][first[4].index("^") :][:2] == "XY"
    assert second[3] == "2 |  日本: �XY"
    assert second[4] == "  |         ^^"
