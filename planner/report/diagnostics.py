"""Diagnostics as text: with the lines they are about, one line each, or JSON. Terminal colour is not needed to read them."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from planner.diagnostics import Diagnostic, Severity, Span

SCHEMA_VERSION = 1
Sources = Mapping[str, Sequence[str]]
"""The lines of each file by the path that spans name."""

_WIDEST = 150
_LEFT_OF_CARET = 60
_LARGEST_FILLED_GAP = 2


def render_full(diagnostics: Iterable[Diagnostic], sources: Sources) -> str:
    """Return every diagnostic with the lines it is about, a caret and its help, separated by empty lines."""
    return "\n".join(_full(diagnostic, sources) for diagnostic in diagnostics)


def render_concise(diagnostics: Iterable[Diagnostic]) -> str:
    """Return one line per diagnostic: `path:line:column: error[code] message; label`."""
    return "".join(f"{_place(d.span)}{d.severity}[{d.code}] {_sentence(d)}\n" for d in diagnostics)


def render_json(diagnostics: Sequence[Diagnostic], checked: Sequence[str]) -> str:
    """Return one JSON object with all diagnostics; `checked` are the files that were read."""
    errors, warnings = _count(diagnostics)
    report = {
        "schema_version": SCHEMA_VERSION,
        "checked": list(checked),
        "errors": errors,
        "warnings": warnings,
        "diagnostics": [_as_data(diagnostic) for diagnostic in diagnostics],
    }
    return json.dumps(report, indent=2, ensure_ascii=False) + "\n"


def summary(diagnostics: Sequence[Diagnostic], checked: int) -> str:
    """Return the last line of a check: what was found, in how many of the files that were checked."""
    errors, warnings = _count(diagnostics)
    if not diagnostics:
        return f"No problems found ({_plural(checked, 'file')} checked)."
    found = [_plural(errors, "error")] if errors else []
    found += [_plural(warnings, "warning")] if warnings else []
    files = len({d.span.path for d in diagnostics if d.span is not None})
    return f"Found {' and '.join(found)} in {_plural(files, 'file')} ({checked} checked)."


def _full(diagnostic: Diagnostic, sources: Sources) -> str:
    lines = [f"{diagnostic.severity}[{diagnostic.code}]: {_one_line(diagnostic.message)}"]
    span = diagnostic.span
    gutter = 1
    if span is not None:
        excerpt = _Excerpt(diagnostic, span, sources.get(span.path, ()))
        gutter = excerpt.gutter
        lines.append(f"{' ' * gutter}--> {_one_line(span.path)}:{span.line}:{span.column}")
        lines.extend(excerpt.lines())
    else:
        lines.extend([f"  = {_one_line(diagnostic.label)}"] if diagnostic.label else [])
    lines.extend(f"{' ' * gutter} = {_one_line(text)}" for text in diagnostic.help)
    return "\n".join(lines) + "\n"


class _Excerpt:
    """The lines around a span, with markers under the parts that are meant."""

    def __init__(self, diagnostic: Diagnostic, span: Span, source: Sequence[str]) -> None:
        self._source = source
        self._marks: dict[int, list[tuple[Span, str, str]]] = {span.line: [(span, "^", diagnostic.label)]}
        self._elsewhere: list[tuple[Span, str]] = []
        for related, label in diagnostic.related:
            if related.path != span.path:
                self._elsewhere.append((related, label))
            elif label or related.line != span.line:
                self._marks.setdefault(related.line, []).insert(0, (related, "-", label))
        self.gutter = len(str(max(self._marks)))

    def lines(self) -> list[str]:
        """Return the excerpt, empty when the file's lines are not known."""
        shown = [number for number in self._numbers() if 0 < number <= len(self._source)]
        if not shown:
            label = next((label for marks in self._marks.values() for _, _, label in marks if label), "")
            return [f"{' ' * self.gutter} = {_one_line(label)}"] if label else []
        bar = f"{' ' * self.gutter} |"
        result = [bar]
        for number in shown:
            result.extend(self._line(number, bar))
        result.extend(f"{' ' * self.gutter} ::: {_place(span)} {label}" for span, label in self._elsewhere)
        return result

    def _numbers(self) -> list[int]:
        """Line numbers to show: all that are marked, and short gaps between them."""
        marked = sorted(self._marks)
        numbers = marked[:1]
        for number in marked[1:]:
            gap = range(numbers[-1] + 1, number)
            numbers.extend(gap if len(gap) <= _LARGEST_FILLED_GAP else ())
            numbers.append(number)
        return numbers

    def _line(self, number: int, bar: str) -> list[str]:
        text = self._source[number - 1]
        marks = self._marks.get(number, [])
        cut = _cut(text, marks[-1][0].column if marks else 1)
        shown = _visible(text[cut : cut + _WIDEST])
        dots = "…" if cut else ""
        result = [f"{number:>{self.gutter}} | {dots}{shown}".rstrip()]
        for span, mark, label in marks:
            if mark == "-" and not label:
                continue
            indent = _width(text[cut : span.column - 1]) + len(dots)
            length = max(1, min(_width(text[span.column - 1 : span.end_column - 1]), _WIDEST))
            result.append(f"{bar} {' ' * indent}{mark * length} {_one_line(label)}".rstrip())
        return result


def _cut(text: str, column: int) -> int:
    """Return how many characters to leave out at the start of a line that is too wide."""
    return max(0, column - _LEFT_OF_CARET) if len(text) > _WIDEST else 0


def _visible(text: str) -> str:
    """Replace what would move the cursor or reorder the line."""
    return "".join(" " if c == "\t" else "�" if unicodedata.category(c) in ("Cc", "Cf") else c for c in text)


def _width(text: str) -> int:
    """Return the columns that a terminal uses for the text."""
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in ("W", "F") else 1 for c in text
    )


def _one_line(text: str) -> str:
    return _visible(" ".join(text.split("\n")))


def _place(span: Span | None) -> str:
    return f"{_one_line(span.path)}:{span.line}:{span.column}: " if span is not None else ""


def _sentence(diagnostic: Diagnostic) -> str:
    return _one_line("; ".join(part for part in (diagnostic.message, diagnostic.label) if part))


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


def _count(diagnostics: Iterable[Diagnostic]) -> tuple[int, int]:
    severities = [diagnostic.severity for diagnostic in diagnostics]
    return severities.count(Severity.ERROR), severities.count(Severity.WARNING)


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
