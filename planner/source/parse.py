"""YAML text to a located document. Nothing in the text can run code, exhaust memory or raise.

PyYAML's parser (the C one where it is there) gives events; nodes are composed from them here, without recursion.
"""

from __future__ import annotations

import re
from typing import Any

import yaml

from planner.diagnostics import Diagnostic, Span
from planner.source.compose import Composer, Stop
from planner.source.document import Document
from planner.source.nodes import Node
from planner.source.text import find_forbidden_character, split_lines, without_byte_order_mark

MAX_SOURCE_BYTES = 5_000_000
"""Largest source that is read."""

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

_ADVICE = (
    (r"cannot start any token", "indent with spaces, and quote text that starts with a special character"),
    (r"mapping values are not allowed", "put text that contains `: ` in quotes, or check the indentation above"),
    (r"expected ',' or", "close the `[` or `{`, or put a comma between its items"),
    (r"did not find expected (key|<block end>|'-' indicator)", "align this line with its neighbours"),
    (r"could not find expected ':'", "write `key: value`, with a space after the colon"),
    (r"unexpected end of stream|while scanning a quoted scalar", "close the quotes"),
    (r"nesting depth|nesting level", "a spec needs no such depth"),
    (r"control characters|special characters", "remove the character; a spec is plain text"),
)


def parse(text: str, path: str) -> tuple[Document | None, list[Diagnostic]]:
    """Parse a YAML file whose top level is a mapping.

    Returns the document, None when nothing can be made of the text, and what is wrong with it: syntax, duplicate
    keys, tags, undefined or exploding aliases, several documents, an empty file, too much text or nesting.
    """
    if len(text) > MAX_SOURCE_BYTES:
        return None, [too_large(path)]
    text = without_byte_order_mark(text)
    forbidden = find_forbidden_character(text, path)
    if forbidden is not None:
        return None, [forbidden]
    composer = Composer(path)
    try:
        for event in yaml.parse(text, Loader=_LOADER):
            composer.feed(event)
    except Stop:
        return None, composer.diagnostics
    except yaml.YAMLError as error:
        return None, [*composer.diagnostics, _syntax_error(error, text, path)]
    return _document(composer, text, path)


def too_large(path: str) -> Diagnostic:
    """Return the diagnostic of a source above the limit."""
    return Diagnostic(
        "yaml/too-large",
        f"this file is larger than {MAX_SOURCE_BYTES // 1_000_000} MB",
        Span(path, 1, 1, 2),
        help=("a spec is a few kilobytes; is this the right file?",),
    )


def _document(composer: Composer, text: str, path: str) -> tuple[Document | None, list[Diagnostic]]:
    root = composer.root
    start = Span(path, 1, 1, 2)
    if root is None or root.data is None:
        message = "this file is empty"
        help = ("a first spec: planner init",)
        return None, [*composer.diagnostics, Diagnostic("yaml/empty", message, start, help=help)]
    if root.entries is None:
        return None, [*composer.diagnostics, _not_a_mapping(root, path)]
    return Document(path, text, root), composer.diagnostics


def _not_a_mapping(root: Node, path: str) -> Diagnostic:
    kind = "a list" if root.items is not None else "a single value"
    span = Span(path, root.mark.line + 1, root.mark.column + 1, root.mark.column + 2)
    return Diagnostic(
        "yaml/not-a-mapping",
        f"this file holds {kind}; a spec is a mapping",
        span,
        help=("start with `version: 1`",),
    )


def _syntax_error(error: yaml.YAMLError, text: str, path: str) -> Diagnostic:
    problem = str(getattr(error, "problem", None) or error)
    context, start = getattr(error, "context", None), getattr(error, "context_mark", None)
    mark = getattr(error, "problem_mark", None) or start
    message = " ".join((f"{context}: {problem}" if context else problem).split())
    advice = next((advice for pattern, advice in _ADVICE if re.search(pattern, message)), "check the YAML syntax here")
    span = _place(mark, text, path)
    begin = _place(start, text, path) if start else span
    related = ((begin, "begins here"),) if begin.line != span.line else ()
    return Diagnostic("yaml/syntax", message, span, label=advice, related=related)


def _place(mark: Any, text: str, path: str) -> Span:
    """Return the place of a PyYAML mark; the last character of the file when it lies beyond the end."""
    lines = split_lines(text.rstrip())
    if mark is not None and mark.line < len(lines) and mark.column < len(lines[mark.line]):
        return Span(path, mark.line + 1, mark.column + 1, mark.column + 2)
    line = min(mark.line, len(lines) - 1) if mark is not None else 0
    column = max(1, len(lines[line]))
    return Span(path, line + 1, column, column + 1)
