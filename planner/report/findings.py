"""What checks found in files, and the parts that several formats share: counts, order, sentences, places."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from planner.diagnostics import STANDARD_INPUT_NAME, Diagnostic, Severity, Span, sort_key
from planner.report.figures import visible
from planner.revision.reference import RevisionError, is_reference, parse_reference


@dataclass(frozen=True, slots=True)
class CheckedFile:
    """A file that was checked: its name in messages, its lines, and what was found, sorted by place."""

    path: str
    lines: tuple[str, ...]
    diagnostics: tuple[Diagnostic, ...]

    def place(self, diagnostic: Diagnostic) -> Span:
        """Return the place of a diagnostic; the start of this file for one that has none."""
        return diagnostic.span or Span(self.path, 1, 1, 2)


@dataclass(frozen=True, slots=True)
class Finding:
    """A diagnostic with the file to show it in, and a text that names it also after lines were moved."""

    diagnostic: Diagnostic
    place: Span
    fingerprint: str


def all_diagnostics(files: Iterable[CheckedFile]) -> list[Diagnostic]:
    """Return the diagnostics of all files, in order."""
    return [diagnostic for file in files for diagnostic in file.diagnostics]


def worst_first(files: Iterable[CheckedFile]) -> list[Finding]:
    """Return every finding once, also one of the catalog that each spec meets: errors first, each kind by place."""
    placed = {d: file.place(d) for file in reversed(list(files)) for d in file.diagnostics}
    order = sorted(placed, key=lambda d: (d.severity is not Severity.ERROR, sort_key(d)))
    return [Finding(d, placed[d], mark) for d, mark in zip(order, _fingerprints(order, placed), strict=True)]


def _fingerprints(order: Sequence[Diagnostic], placed: dict[Diagnostic, Span]) -> Iterator[str]:
    """Yield a text for each diagnostic that does not change with its line; equal ones of a file are numbered."""
    seen: Counter[tuple[str, ...]] = Counter()
    for diagnostic in order:
        key = (shown_path(placed[diagnostic].path), diagnostic.code, diagnostic.message)
        seen[key] += 1
        text = "\0".join((*key, str(seen[key])))
        yield hashlib.sha256(text.encode(errors="backslashreplace")).hexdigest()


def count(diagnostics: Iterable[Diagnostic]) -> tuple[int, int]:
    """Return the number of errors and of warnings."""
    severities = [diagnostic.severity for diagnostic in diagnostics]
    return severities.count(Severity.ERROR), severities.count(Severity.WARNING)


def summary(files: Sequence[CheckedFile]) -> str:
    """Return the last line of a check: what was found, in how many of the files that were checked."""
    diagnostics = all_diagnostics(files)
    errors, warnings = count(diagnostics)
    if not diagnostics:
        return f"No problems found ({plural(len(files), 'file')} checked)."
    found = [plural(errors, "error")] if errors else []
    found += [plural(warnings, "warning")] if warnings else []
    places = len({d.span.path for d in diagnostics if d.span is not None})
    return f"Found {' and '.join(found)} in {plural(places, 'file')} ({len(files)} checked)."


def plural(count: int, noun: str) -> str:
    """Return a number with its noun."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def sentence(diagnostic: Diagnostic) -> str:
    """Return what is wrong on one line: the message and the label."""
    return visible("; ".join(part for part in (diagnostic.message, diagnostic.label) if part))


def place(span: Span) -> str:
    """Return a place as messages name it: `path:line:column`."""
    return f"{visible(span.path)}:{span.line}:{span.column}"


def is_a_file(path: str) -> bool:
    """Tell whether a name in messages is a path: standard input without a name of its own is none."""
    return path != STANDARD_INPUT_NAME


def shown_path(path: str) -> str:
    """Return a path as services show files: from the current folder on with `/`, absolute where it lies elsewhere.

    A file at a revision is shown as the file of the repository that it is, from the top of it.
    """
    if not is_a_file(path):
        return visible(path)
    in_repository = _path_in_repository(path)
    if in_repository is not None:
        return visible(in_repository)
    from_here = Path(os.path.relpath(path))
    lies_elsewhere = from_here.parts[:1] == (os.pardir,)
    return visible((Path(os.path.abspath(path)) if lies_elsewhere else from_here).as_posix())


def _path_in_repository(path: str) -> str | None:
    try:
        return parse_reference(path).path if is_reference(path) else None
    except RevisionError:
        return None
