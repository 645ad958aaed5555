"""Findings as a GitLab Code Quality report: the widget of a merge request lists them, and says which ones are new."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from planner.diagnostics import Severity
from planner.report.findings import CheckedFile, Finding, sentence, shown_path, worst_first

_SEVERITIES = {Severity.ERROR: "major", Severity.WARNING: "minor"}


def render(files: Sequence[CheckedFile]) -> str:
    """Return a JSON list with one object per finding, the worst first."""
    return json.dumps([_as_data(finding) for finding in worst_first(files)], indent=2, ensure_ascii=False) + "\n"


def _as_data(finding: Finding) -> dict[str, Any]:
    return {
        "description": sentence(finding.diagnostic),
        "check_name": finding.diagnostic.code,
        "fingerprint": finding.fingerprint,
        "severity": _SEVERITIES[finding.diagnostic.severity],
        "location": {"path": shown_path(finding.place.path), "lines": {"begin": finding.place.line}},
    }
