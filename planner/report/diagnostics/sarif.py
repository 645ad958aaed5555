"""Findings as SARIF 2.1.0, which code scanning services and editors read; rules have the help of the manual."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import cache
from importlib.resources import files as package_files
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import quote

from planner import __version__
from planner.diagnostics import Diagnostic, Span
from planner.report.figures import visible
from planner.report.findings import CheckedFile, Finding, is_a_file, plural, sentence, shown_path, worst_first

MOST_RESULTS = 5000
"""Results of a run that GitHub code scanning keeps."""

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_ROOT = "%SRCROOT%"
_ENTRY = re.compile(r"^\| `(?P<code>[^`]+/[^`]+)` \| (?P<wrong>.*?) \| (?P<remedy>.*?) \|$", re.MULTILINE)
_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
_READ_AS_MARKUP = re.compile(r"\[(?=[^\]]*\]\()|\{(?=\d+\})")


def render(files: Sequence[CheckedFile]) -> str:
    """Return a SARIF log of one run, the worst findings first, at most `MOST_RESULTS`."""
    findings = worst_first(files)
    codes = sorted({finding.diagnostic.code for finding in findings})
    left = len(findings) - MOST_RESULTS
    run = {
        "tool": {"driver": {"name": "planner", "version": __version__, "rules": _rules(codes)}},
        "columnKind": "unicodeCodePoints",
        "invocations": [{"executionSuccessful": True} | (_left_out(left) if left > 0 else {})],
        "results": [_result(finding, codes) for finding in findings[:MOST_RESULTS]],
    }
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2, ensure_ascii=False) + "\n"


def _rules(codes: Sequence[str]) -> list[dict[str, Any]]:
    """Return what the manual says about each code."""
    entries = _manual_entries() if codes else {}
    return [{"id": code} | (_explained(entries[code]) if code in entries else {}) for code in codes]


@cache
def _manual_entries() -> dict[str, re.Match[str]]:
    page = (package_files("planner") / "manual" / "errors.md").read_text(encoding="utf-8")
    return {entry["code"]: entry for entry in _ENTRY.finditer(_LINK.sub(r"\1", page))}


def _explained(entry: re.Match[str]) -> dict[str, Any]:
    wrong, remedy = _text(entry["wrong"]), _text(entry["remedy"])
    return {
        "shortDescription": {"text": wrong},
        "fullDescription": {"text": f"{wrong} {remedy}"},
        "help": {"text": remedy, "markdown": remedy},
    }


def _left_out(count: int) -> dict[str, Any]:
    text = f"and {plural(count, 'more finding')}; `planner check` prints all"
    return {"toolExecutionNotifications": [{"level": "note", "message": {"text": text}}]}


def _result(finding: Finding, codes: Sequence[str]) -> dict[str, Any]:
    diagnostic = finding.diagnostic
    related = [
        _location(span) | {"message": {"text": _text(label)}}
        for span, label in diagnostic.related
        if label and is_a_file(span.path)
    ]
    return {
        "ruleId": diagnostic.code,
        "ruleIndex": codes.index(diagnostic.code),
        "level": str(diagnostic.severity),
        "message": {"text": _message(diagnostic)},
        "locations": [_location(finding.place)] if is_a_file(finding.place.path) else [],
        "partialFingerprints": {"codePathMessage/v1": finding.fingerprint},
    } | ({"relatedLocations": related} if related else {})


def _message(diagnostic: Diagnostic) -> str:
    return "\n".join(_text(line) for line in (sentence(diagnostic), *diagnostic.help))


def _text(text: str) -> str:
    """Escape what a reader would take for a link or a placeholder; other brackets and braces are shown as they are."""
    return _READ_AS_MARKUP.sub(lambda sign: r"\[" if sign[0] == "[" else "{{", visible(text))


def _location(span: Span) -> dict[str, Any]:
    region = {"startLine": span.line, "startColumn": span.column, "endColumn": span.end_column}
    return {"physicalLocation": {"artifactLocation": _artifact(span.path), "region": region}}


def _artifact(path: str) -> dict[str, str]:
    """Return a file below the current folder by its path from there, others by their absolute address."""
    shown = shown_path(path)
    if PurePosixPath(shown).is_absolute():
        return {"uri": f"file://{quote(shown)}"}
    return {"uri": quote(shown), "uriBaseId": _ROOT}
