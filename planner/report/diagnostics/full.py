"""Findings as text with the lines that they are about. Terminal colour is not needed to read them."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping, Sequence

from planner.diagnostics import Diagnostic, Span
from planner.report.figures import visible
from planner.report.findings import CheckedFile, all_diagnostics, place

Sources = Mapping[str, Sequence[str]]
"""The lines of each file by the path that spans name."""

_WIDEST = 150
_LEFT_OF_CARET = 60
_LARGEST_FILLED_GAP = 2


def render(files: Sequence[CheckedFile]) -> str:
    """Return every diagnostic with its lines."""
    return render_full(all_diagnostics(files), {file.path: file.lines for file in files})


def render_full(diagnostics: Iterable[Diagnostic], sources: Sources) -> str:
    """Return every diagnostic with the lines it is about, a caret and its help, separated by empty lines."""
    return "\n".join(_full(diagnostic, sources) for diagnostic in diagnostics)


def _full(diagnostic: Diagnostic, sources: Sources) -> str:
    lines = [f"{diagnostic.severity}[{diagnostic.code}]: {visible(diagnostic.message)}"]
    span = diagnostic.span
    gutter = 1
    if span is not None:
        excerpt = _Excerpt(diagnostic, span, sources.get(span.path, ()))
        gutter = excerpt.gutter
        lines.append(f"{' ' * gutter}--> {place(span)}")
        lines.extend(excerpt.lines())
    else:
        lines.extend([f"  = {visible(diagnostic.label)}"] if diagnostic.label else [])
    lines.extend(f"{' ' * gutter} = {visible(text)}" for text in diagnostic.help)
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
            return [f"{' ' * self.gutter} = {visible(label)}"] if label else []
        bar = f"{' ' * self.gutter} |"
        result = [bar]
        for number in shown:
            result.extend(self._line(number, bar))
        result.extend(f"{' ' * self.gutter} ::: {place(span)}: {visible(label)}" for span, label in self._elsewhere)
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
        shown = visible(text[cut : cut + _WIDEST])
        dots = "…" if cut else ""
        result = [f"{number:>{self.gutter}} | {dots}{shown}".rstrip()]
        for span, mark, label in marks:
            if mark == "-" and not label:
                continue
            indent = _width(text[cut : span.column - 1]) + len(dots)
            length = max(1, min(_width(text[span.column - 1 : span.end_column - 1]), _WIDEST))
            result.append(f"{bar} {' ' * indent}{mark * length} {visible(label)}".rstrip())
        return result


def _cut(text: str, column: int) -> int:
    """Return how many characters to leave out at the start of a line that is too wide."""
    return max(0, column - _LEFT_OF_CARET) if len(text) > _WIDEST else 0


def _width(text: str) -> int:
    """Return the columns that a terminal uses for the text."""
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in ("W", "F") else 1 for c in text
    )
