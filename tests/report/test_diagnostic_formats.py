"""Findings in every format of `planner check`: for people, for programs, and for the services that show them."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from lxml import etree

from planner.candidates.references import OpenCatalogs
from planner.cli.check import CheckFormat, check_file
from planner.diagnostics import STANDARD_INPUT_NAME, Diagnostic, Severity, Span
from planner.report.diagnostics import formats, render
from planner.report.diagnostics.full import render_full
from planner.report.diagnostics.github import MOST_ANNOTATIONS, annotation
from planner.report.diagnostics.sarif import MOST_RESULTS
from planner.report.findings import CheckedFile, summary

ROOT = Path(__file__).parents[2]
BAD = ROOT / "tests" / "data" / "bad_specs"
SCHEMAS = ROOT / "tests" / "data" / "schemas"
HOSTILE = "a\r\n::error::b\t%0A<x a='1'>]]>&amp;\x1b[31m\u202e\ud800\ufffe{0}[c](https://d)\"e,f:g"
"""Text that breaks out of a format that does not escape it."""


def checked(*diagnostics: Diagnostic, path: str = "specs/prod.yaml", lines: Sequence[str] = ()) -> CheckedFile:
    """A file with these findings."""
    return CheckedFile(path, tuple(lines), diagnostics)


def hostile() -> list[CheckedFile]:
    """Findings with hostile text in every place that a user writes."""
    span = Span(f"specs/{HOSTILE}.yaml", 1, 2, 4)
    found = Diagnostic("spec/x", HOSTILE, span, Severity.ERROR, HOSTILE, (HOSTILE,), ((span, HOSTILE),))
    return [checked(found, path=span.path, lines=[HOSTILE]), checked(PLACELESS, path=STANDARD_INPUT_NAME)]


def sarif_schema() -> jsonschema.Draft4Validator:
    """The published schema of SARIF."""
    return jsonschema.Draft4Validator(json.loads((SCHEMAS / "sarif-2.1.0-rtm.5.json").read_text(encoding="utf-8")))


@cache
def bad_files() -> list[CheckedFile]:
    """Every wrong spec of the tests, checked."""
    opener = OpenCatalogs()
    return [check_file(str(path), None, opener=opener) for path in sorted(BAD.glob("*.yaml"))]


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
    text = render("full", [checked(UNKNOWN_KEY, DUPLICATE, WARNING, PLACELESS, lines=SPEC)])

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
    assert render("concise", [checked(UNKNOWN_KEY, PLACELESS)]) == (
        "specs/prod.yaml:6:7: error[spec/unknown-key] `tpot_p59` is not a key of `slo`; did you mean `tpot_p95`?\n"
        "error[catalog/not-found] no catalog; give one with --catalog\n"
    )


def test_json_without_place() -> None:
    """A diagnostic without a place has a null span."""
    assert json.loads(render("json", [checked(PLACELESS)]))["diagnostics"][0]["span"] is None


def test_summary_counts() -> None:
    """Errors, warnings, files."""
    other = Diagnostic("x/y", "z", Span("b.yaml", 1, 1, 2))
    files = [checked(UNKNOWN_KEY, DUPLICATE, WARNING), checked(other, path="b.yaml"), checked(path="c.yaml")]

    assert summary(files) == "Found 3 errors and 1 warning in 2 files (3 checked)."
    assert summary([checked(), checked()]) == "No problems found (2 files checked)."


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


def test_a_format_is_a_module() -> None:
    """The choices of `--format` are the modules of the folder."""
    assert tuple(CheckFormat) == formats()
    assert {"concise", "full", "github", "gitlab", "json", "junit", "sarif"} <= set(formats())


def test_github_format() -> None:
    """Errors come first, a place that is none is the start of the file, and text of several lines is one command."""
    text = render("github", [checked(WARNING, UNKNOWN_KEY, PLACELESS)])

    assert text == GITHUB


GITHUB = """\
::error title=catalog/not-found,file=specs/prod.yaml,line=1,col=1,endColumn=2::no catalog; give one with --catalog
::error title=spec/unknown-key,file=specs/prod.yaml,line=6,col=7,endColumn=15::`tpot_p59` is not a key of `slo`; \
did you mean `tpot_p95`?%0Akeys here: ttft_p50, tpot_p95
::warning title=physics/slo-below-floor,file=specs/prod.yaml,line=25,col=17,endColumn=21::TPOT p95 of 2 ms is too short
"""


def test_github_commands_cannot_be_broken_out_of() -> None:
    """One line per command, whatever the texts and paths hold; standard input is named in the text."""
    first, second = sorted(render("github", hostile()).splitlines(), key=len, reverse=True)

    properties = re.fullmatch(r"::error title=[^:,]*,file=[^:,]*,line=1,col=2,endColumn=4::(.*)", first)
    assert properties is not None
    assert "%3A%3Aerror%3A%3Ab" in first
    assert first.count("%250A") == 4
    assert second == "::error title=catalog/not-found::<stdin>:1:1: no catalog; give one with --catalog"


def test_annotations_of_other_commands() -> None:
    """An annotation needs neither a title nor a place."""
    assert annotation("notice", "one\ntwo: 50 %") == "::notice::one%0Atwo: 50 %25"
    assert annotation("error", "m", "a: b, c", at(1, 2, 3)) == (
        "::error title=a%3A b%2C c,file=specs/prod.yaml,line=1,col=2,endColumn=5::m"
    )


def test_github_shows_the_worst_and_counts_the_rest() -> None:
    """No more annotations of a kind than are shown, then how many are left."""
    errors = [Diagnostic("a/b", "m", at(line, 1, 1)) for line in range(1, 13)]
    lines = render("github", [checked(WARNING, *errors)]).splitlines()

    assert [line.split(" ", 1)[0] for line in lines] == ["::error"] * MOST_ANNOTATIONS + ["::notice", "::warning"]
    assert lines[-2] == "::notice title=planner check::and 2 more errors; `planner check` prints all"


def test_what_every_spec_meets_is_said_once() -> None:
    """A mistake in the catalog is one finding for services that count findings, and a failure of each file's tests."""
    files = [checked(PLACELESS), checked(PLACELESS, path="b.yaml")]

    assert render("github", files).count("\n") == len(json.loads(render("gitlab", files))) == 1
    assert len(etree.fromstring(render("junit", files).encode()).findall(".//failure")) == 2


def test_gitlab_format() -> None:
    """The keys that Code Quality needs."""
    (found,) = json.loads(render("gitlab", [checked(UNKNOWN_KEY)]))

    assert len(found.pop("fingerprint")) == 64
    assert found == {
        "description": "`tpot_p59` is not a key of `slo`; did you mean `tpot_p95`?",
        "check_name": "spec/unknown-key",
        "severity": "major",
        "location": {"path": "specs/prod.yaml", "lines": {"begin": 6}},
    }


def test_fingerprints_follow_a_finding() -> None:
    """They are unique, and stay when lines move."""

    def marks(*lines: int) -> list[str]:
        found = [Diagnostic("a/b", "m", at(line, 1, 1)) for line in lines]
        return [entry["fingerprint"] for entry in json.loads(render("gitlab", [checked(*found)]))]

    assert len(set(marks(1, 2))) == 2
    assert marks(1, 2) == marks(11, 30)


@pytest.mark.parametrize("files", [[], hostile, bad_files], ids=["none", "hostile", "bad specs"])
def test_sarif_fits_the_published_schema(files: Any) -> None:
    """Also without findings, and with hostile texts."""
    text = render("sarif", files() if callable(files) else files)

    assert [error.message for error in sarif_schema().iter_errors(json.loads(text))] == []


def test_sarif_places_and_rules() -> None:
    """Regions count characters, rules explain themselves, second places are related."""
    (run,) = json.loads(render("sarif", [checked(UNKNOWN_KEY, DUPLICATE, PLACELESS)]))["runs"]
    rules = run["tool"]["driver"]["rules"]
    result = next(r for r in run["results"] if r["ruleId"] == "yaml/duplicate-key")

    assert [rule["id"] for rule in rules] == ["catalog/not-found", "spec/unknown-key", "yaml/duplicate-key"]
    assert rules[2]["help"]["text"] == "Remove one. YAML would silently keep the last."
    assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
    assert result["locations"] == [
        {
            "physicalLocation": {
                "artifactLocation": {"uri": "specs/prod.yaml", "uriBaseId": "%SRCROOT%"},
                "region": {"startLine": 11, "startColumn": 5, "endColumn": 8},
            }
        }
    ]
    assert [related["message"]["text"] for related in result["relatedLocations"]] == ["first here"]


def test_sarif_has_no_places_in_standard_input() -> None:
    """Neither first nor second ones: code scanning would look for a file of that name."""
    span = Span(STANDARD_INPUT_NAME, 3, 1, 2)
    found = replace(DUPLICATE, span=span, related=((span, "first here"),))
    (result,) = json.loads(render("sarif", [checked(found, path=STANDARD_INPUT_NAME)]))["runs"][0]["results"]

    assert result["locations"] == []
    assert "relatedLocations" not in result


def test_sarif_is_capped() -> None:
    """Services drop what is more; the log says that there is more."""
    found = [Diagnostic("a/b", "m", at(line, 1, 1)) for line in range(1, MOST_RESULTS + 3)]
    (run,) = json.loads(render("sarif", [checked(*found)]))["runs"]

    assert len(run["results"]) == MOST_RESULTS
    assert "and 2 more findings" in json.dumps(run["invocations"])


def test_sarif_texts_hold_no_links_and_no_placeholders() -> None:
    """A reader shows what was written."""
    message = json.loads(render("sarif", hostile()))["runs"][0]["results"][-1]["message"]["text"]

    assert r"\[c](https://d)" in message
    assert "{{0}" in message


@pytest.mark.parametrize("files", [hostile, bad_files], ids=["hostile", "bad specs"])
def test_junit_fits_the_published_schema(files: Any) -> None:
    """Also with hostile texts."""
    schema = etree.XMLSchema(etree.parse(SCHEMAS / "junit-10.xsd"))

    schema.assertValid(etree.fromstring(render("junit", files()).encode()))


def test_junit_counts() -> None:
    """A suite per file, a failure per error; a file without findings is a test that passes."""
    files = [checked(UNKNOWN_KEY, WARNING), checked(path="b.yaml")]
    root = etree.fromstring(render("junit", files).encode())

    assert dict(root.attrib) == {"name": "planner check", "tests": "3", "failures": "1", "errors": "0"}
    assert [(s.get("name"), s.get("tests"), s.get("failures")) for s in root] == [
        ("specs/prod.yaml", "2", "1"),
        ("b.yaml", "1", "0"),
    ]
    assert root.findtext(".//system-out", "").startswith("specs/prod.yaml:25:17: warning[physics/slo-below-floor]")


@pytest.mark.parametrize(
    ("path", "shown", "uri"),
    [
        ("a b/../x.yaml", "x.yaml", "x.yaml"),
        ("a b.yaml", "a b.yaml", "a%20b.yaml"),
        ("..x/y.yaml", "..x/y.yaml", "..x/y.yaml"),
        ("{above}/y #.yaml", "{above}/y #.yaml", "file://{above}/y%20%23.yaml"),
        ("../y.yaml", "{above}/y.yaml", "file://{above}/y.yaml"),
        ("{here}/x.yaml", "x.yaml", "x.yaml"),
        ("git:HEAD~1:a b/x.yaml", "a b/x.yaml", "a%20b/x.yaml"),
        ("git:main@{{12:30}}:x.yaml", "x.yaml", "x.yaml"),
        ("git::x.yaml", "git::x.yaml", "git%3A%3Ax.yaml"),
    ],
)
def test_paths_from_the_current_folder_on(
    path: str, shown: str, uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Services show files of the repository; what lies elsewhere keeps its whole path."""
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    path, shown, uri = (text.format(above=tmp_path, here=here) for text in (path, shown, uri))
    files = [checked(Diagnostic("a/b", "m", Span(path, 1, 1, 2)), path=path)]

    (entry,) = json.loads(render("gitlab", files))
    (result,) = json.loads(render("sarif", files))["runs"][0]["results"]
    assert entry["location"]["path"] == shown
    assert f"file={shown.replace(':', '%3A')}," in render("github", files)
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == uri
