"""What a check yields: diagnostics with a place in a catalog file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import ParamSpec

from planner.catalog.loading import read_document
from planner.diagnostics import Diagnostic, DiagnosticError, Severity, Span
from planner.source import FilePath

P = ParamSpec("P")

Findings = Iterator[Diagnostic]


def guarded(check: Callable[P, Iterable[Diagnostic]], *args: P.args, **kwargs: P.kwargs) -> Findings:
    """Yield the findings of a check, and the diagnostics of the file that stops it."""
    try:
        yield from check(*args, **kwargs)
    except DiagnosticError as error:
        yield from error.diagnostics


def place(path: FilePath, *keys: str | int) -> Span:
    """Return where a key stands in a catalog file."""
    return read_document(path).span(keys, key=True)


def warning(code: str, message: str, span: Span | None) -> Diagnostic:
    """Return a diagnostic that does not fail the check."""
    return Diagnostic(code, message, span, Severity.WARNING)


def doubts(who: str, texts: Iterable[str], path: FilePath, *keys: str | int) -> Findings:
    """Yield a warning for each doubt that a file states, listed in it under `keys`."""
    for position, text in enumerate(texts):
        yield warning("catalog/doubt", f"{who}: {text}", place(path, *keys, position))
