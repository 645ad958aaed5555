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

from planner.catalog import loading
from planner.catalog.loading import read_document
from planner.cli.check import CheckFormat

PROD = str(ROOT / "specs" / "prod.yaml")
EXAMPLES = sorted((ROOT / "specs" / "examples").glob("*.yaml"))
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
        "from planner.candidates.references import OpenCatalogs\n"
        "from planner.cli.check import check_file\n"
        f"assert not check_file({PROD!r}, None, OpenCatalogs()).diagnostics\n"
        "print(sorted({'numpy', 'scipy', 'pyomo', 'highspy', 'rich'} & set(sys.modules)))\n"
    )

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=os.environ)

    assert done.stdout == "[]\n"


def test_schema_prints_the_committed_file() -> None:
    """`planner schema > specs/fleet.schema.json` changes nothing."""
    code, out, _ = run("schema")

    assert code == 0
    assert out == (ROOT / "specs" / "fleet.schema.json").read_text(encoding="utf-8")


@pytest.mark.parametrize("format", [format for format in CheckFormat if format not in ("full", "concise")])
def test_formats_of_pipelines(format: str) -> None:
    """Each of them says what is wrong; the exit code and the last line stay."""
    code, out, err = run("check", "--format", format, str(BAD / "unknown_key.yaml"))

    assert code == 1
    assert "spec/unknown-key" in out
    assert err == "Found 1 error in 1 file (1 checked).\n"


def test_findings_in_a_file(tmp_path: Path) -> None:
    """`--out` takes the answer, whatever bytes a path has; the exit code stays."""
    file = tmp_path / "found.json"
    odd = tmp_path / "a\udc80.yaml"
    odd.write_bytes((BAD / "unknown_key.yaml").read_bytes())

    code, out, err = run("check", "--format", "json", "-o", str(file), str(odd))

    assert (code, out) == (1, "")
    assert err == f"wrote {file}\nFound 1 error in 1 file (1 checked).\n"
    assert json.loads(file.read_text(encoding="utf-8"))["checked"] == [str(odd)]
    assert run("check", "-o", "-", PROD) == (0, "", "No problems found (1 file checked).\n")
    assert run("check", "-o", str(tmp_path / "no" / "f"), PROD)[0] == 64


def test_many_specs_read_each_file_of_a_catalog_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hook over many specs costs the catalog once, and says of each spec what it says alone."""
    specs = [str(BAD / "misspelt_model.yaml"), str(BAD / "not_sold_in_region.yaml")]
    alone = [run("check", "--format", "concise", spec)[1] for spec in specs]
    read: list[Path] = []
    monkeypatch.setattr(loading, "read_document", lambda path: read.append(path) or read_document(path))

    _, out, _ = run("check", "--format", "concise", *specs, PROD, *(str(p) for p in EXAMPLES))

    assert out == "".join(alone)
    assert len(read) == len(set(read)) > 10
