"""One type for everything the planner has to say about its input, with the place it is about."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

STANDARD_INPUT_NAME = "<stdin>"
"""The path of standard input in messages, where it has no name of its own."""


class Severity(StrEnum):
    """How much a diagnostic weighs: an error stops the run, a warning does not."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """A place in a text file. Lines and columns count from 1; `end_column` is exclusive, on `line`."""

    path: str
    line: int
    column: int
    end_column: int


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding: what is wrong (`message`), where (`span`), and what to do about it (`label`, `help`).

    `code` is a stable slug such as `spec/unknown-key`; `label` is printed under the caret and `help` lines after the
    excerpt. `related` marks a second place (the first of two duplicate keys) with its own label.
    """

    code: str
    message: str
    span: Span | None = None
    severity: Severity = Severity.ERROR
    label: str = ""
    help: tuple[str, ...] = ()
    related: tuple[tuple[Span, str], ...] = ()


class DiagnosticError(Exception):
    """Input that cannot be used, carrying every diagnostic found so far."""

    def __init__(self, diagnostics: Iterable[Diagnostic]) -> None:
        self.diagnostics = tuple(diagnostics)
        super().__init__("; ".join(d.message for d in self.diagnostics))


def sort_key(diagnostic: Diagnostic) -> tuple[str, int, int, str, str]:
    """Order diagnostics by place in the file, those without a place first."""
    span = diagnostic.span or Span("", 0, 0, 0)
    return (span.path, span.line, span.column, diagnostic.code, diagnostic.message)


def has_errors(diagnostics: Iterable[Diagnostic]) -> bool:
    """Tell whether any of the diagnostics is an error."""
    return any(d.severity is Severity.ERROR for d in diagnostics)
