"""Findings as a JUnit report, which most services show as tests: a suite per file, and a failed test per error."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree

from planner.diagnostics import Diagnostic, Severity, Span
from planner.report.figures import visible
from planner.report.findings import CheckedFile, all_diagnostics, count, place, sentence, shown_path

_CLEAN = "planner check"
"""Name of the test that stands for a file without findings: suites without tests count as not run."""


def render(files: Sequence[CheckedFile]) -> str:
    """Return an XML document. A warning is a test that passes, with the warning as its output."""
    cases = sum(max(1, len(file.diagnostics)) for file in files)
    root = ElementTree.Element("testsuites", _head("planner check", cases, count(all_diagnostics(files))[0]))
    for file in files:
        _add_suite(root, file)
    ElementTree.indent(root)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{ElementTree.tostring(root, encoding="unicode")}\n'


def _add_suite(root: ElementTree.Element, file: CheckedFile) -> None:
    name = shown_path(file.path)
    found = file.diagnostics
    suite = ElementTree.SubElement(root, "testsuite", _head(name, max(1, len(found)), count(found)[0]))
    if not found:
        ElementTree.SubElement(suite, "testcase", {"name": _CLEAN, "classname": name})
    for diagnostic in found:
        span = file.place(diagnostic)
        title = f"{diagnostic.code} {span.line}:{span.column}"
        case = ElementTree.SubElement(suite, "testcase", {"name": title, "classname": shown_path(span.path)})
        _add_outcome(case, diagnostic, span)


def _add_outcome(case: ElementTree.Element, diagnostic: Diagnostic, span: Span) -> None:
    said = {"type": diagnostic.code, "message": sentence(diagnostic)}
    is_error = diagnostic.severity is Severity.ERROR
    outcome = ElementTree.SubElement(case, "failure", said) if is_error else ElementTree.SubElement(case, "system-out")
    lines = (f"{place(span)}: {diagnostic.severity}[{diagnostic.code}] {sentence(diagnostic)}", *diagnostic.help)
    outcome.text = "\n".join(visible(line) for line in lines)


def _head(name: str, tests: int, failures: int) -> dict[str, str]:
    return {"name": name, "tests": str(tests), "failures": str(failures), "errors": "0"}
