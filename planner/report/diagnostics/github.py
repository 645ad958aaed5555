"""Findings as workflow commands that GitHub Actions shows as annotations beside the lines of a pull request."""

from __future__ import annotations

from collections.abc import Sequence

from planner.diagnostics import Severity, Span
from planner.report.figures import visible
from planner.report.findings import CheckedFile, Finding, is_a_file, place, plural, sentence, shown_path, worst_first

MOST_ANNOTATIONS = 10
"""Annotations of one kind that GitHub shows of a step; it drops the rest."""

NOTICE = "notice"
"""The kind of annotation that is neither an error nor a warning."""


def render(files: Sequence[CheckedFile]) -> str:
    """Return one workflow command per finding, the worst first, and a notice where there are more than are shown."""
    findings = worst_first(files)
    lines = [
        line for kind in Severity for line in _of_kind(kind, [f for f in findings if f.diagnostic.severity is kind])
    ]
    return "".join(f"{line}\n" for line in lines)


def annotation(kind: str, message: str, title: str = "", span: Span | None = None) -> str:
    """Return a workflow command, without line end, that no part of its texts can break out of.

    `kind` is error, warning or notice. `message` may have several lines. `title` is one line. Without a span, or one
    that is no file, the annotation is on the whole run.
    """
    properties: dict[str, object] = {"title": title} if title else {}
    if span is not None and is_a_file(span.path):
        properties |= {"file": shown_path(span.path), "line": span.line, "col": span.column}
        properties |= {"endColumn": span.end_column}
    written = ",".join(f"{key}={_property(str(value))}" for key, value in properties.items())
    return f"::{kind} {written}".rstrip() + f"::{_data(message)}"


def _of_kind(kind: Severity, findings: Sequence[Finding]) -> list[str]:
    lines = [annotation(kind, _message(f), f.diagnostic.code, f.place) for f in findings[:MOST_ANNOTATIONS]]
    left = len(findings) - len(lines)
    if left:
        more = f"and {plural(left, f'more {kind}')}; `planner check` prints all"
        lines.append(annotation(NOTICE, more, "planner check"))
    return lines


def _message(finding: Finding) -> str:
    where = "" if is_a_file(finding.place.path) else f"{place(finding.place)}: "
    return "\n".join((where + sentence(finding.diagnostic), *finding.diagnostic.help))


def _data(text: str) -> str:
    """Escape the text of a command: it ends with the line."""
    lines = (visible(line).replace("%", "%25") for line in text.split("\n"))
    return "%0A".join(lines)


def _property(text: str) -> str:
    """Escape the value of a property: it ends at a comma, and the properties at a colon."""
    return _data(text).replace(":", "%3A").replace(",", "%2C")
