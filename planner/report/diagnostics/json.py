"""Findings as one JSON object, for programs; `planner schema diagnostics` describes it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from planner.diagnostics import Diagnostic, Span
from planner.report.findings import CheckedFile, all_diagnostics, count

SCHEMA_VERSION = 1


def render(files: Sequence[CheckedFile]) -> str:
    """Return one JSON object with all diagnostics, and the files that were read."""
    diagnostics = all_diagnostics(files)
    errors, warnings = count(diagnostics)
    report = {
        "schema_version": SCHEMA_VERSION,
        "checked": list(dict.fromkeys(file.path for file in files)),
        "errors": errors,
        "warnings": warnings,
        "diagnostics": [_as_data(diagnostic) for diagnostic in diagnostics],
    }
    return json.dumps(report, indent=2, ensure_ascii=False) + "\n"


def _as_data(diagnostic: Diagnostic) -> dict[str, Any]:
    return {
        "code": diagnostic.code,
        "severity": str(diagnostic.severity),
        "message": diagnostic.message,
        "span": _span_data(diagnostic.span),
        "label": diagnostic.label,
        "help": list(diagnostic.help),
        "related": [{"span": _span_data(span), "label": label} for span, label in diagnostic.related],
    }


def _span_data(span: Span | None) -> dict[str, Any] | None:
    if span is None:
        return None
    return {"path": span.path, "line": span.line, "column": span.column, "end_column": span.end_column}
