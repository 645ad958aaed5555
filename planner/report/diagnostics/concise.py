"""Findings as text, one line each."""

from __future__ import annotations

from collections.abc import Sequence

from planner.diagnostics import Diagnostic
from planner.report.findings import CheckedFile, all_diagnostics, place, sentence


def render(files: Sequence[CheckedFile]) -> str:
    """Return one line per diagnostic: `path:line:column: error[code] message; label`."""
    return "".join(_line(diagnostic) for diagnostic in all_diagnostics(files))


def _line(diagnostic: Diagnostic) -> str:
    where = f"{place(diagnostic.span)}: " if diagnostic.span is not None else ""
    return f"{where}{diagnostic.severity}[{diagnostic.code}] {sentence(diagnostic)}\n"
