"""Bytes and characters of a source: what may be in a text file, and where its lines end."""

from __future__ import annotations

import re

from planner.diagnostics import Diagnostic, Span

_LINE_END = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
_FORBIDDEN = re.compile("[^\t\n\r\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]|\r(?!\n)")
_HIDDEN_LINE_ENDS = "\r\x85\u2028\u2029"
"""Characters that end a line, and a comment, for YAML 1.1, while editors and reviews show what follows on the same line."""
_BYTE_ORDER_MARK = "\ufeff"
_UTF_16_MARKS = (b"\xff\xfe", b"\xfe\xff")


def split_lines(text: str) -> tuple[str, ...]:
    """Split text where YAML ends lines."""
    return tuple(_LINE_END.split(text))


def without_byte_order_mark(text: str) -> str:
    """Drop the mark that some editors put before the first character."""
    return text.removeprefix(_BYTE_ORDER_MARK)


def find_forbidden_character(text: str, path: str) -> Diagnostic | None:
    """Return a diagnostic about the first character that no file here may hold, None when there is none.

    Lines end in LF or CRLF. Whatever else YAML takes for an end of line would let a comment hide what takes effect.
    """
    match = _FORBIDDEN.search(text)
    if match is None:
        return None
    before = _LINE_END.split(text[: match.start()])
    column = len(before[-1]) + 1
    span = Span(path, len(before), column, column + 1)
    name = f"U+{ord(match[0]):04X}"
    if match[0] in _HIDDEN_LINE_ENDS:
        return _hidden_line_end(match[0], name, span)
    return not_text(f"character {name} does not belong into a text file", span)


def _hidden_line_end(character: str, name: str, span: Span) -> Diagnostic:
    escape = "save the file with line ends LF or CRLF"
    if character != "\r":
        escape = f'write it as "\\u{ord(character):04x}" in double quotes where a text needs it'
    return Diagnostic(
        "yaml/line-break",
        f"{name} ends a line for YAML, but editors and reviews show what follows on the same line",
        span,
        help=(f"remove it; {escape}",),
    )


def decode(data: bytes, path: str) -> str | Diagnostic:
    """Return the bytes as text, or a diagnostic when they are no UTF-8."""
    if data.startswith(_UTF_16_MARKS):
        return not_text("this file is UTF-16", Span(path, 1, 1, 2))
    if b"\0" in data:
        return not_text("this file is binary, not YAML", Span(path, 1, 1, 2))
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        before = data[: error.start].decode("utf-8")
        lines = split_lines(before)
        column = len(lines[-1]) + 1
        span = Span(path, len(lines), column, column + 1)
        return not_text(f"byte 0x{data[error.start]:02X} is not UTF-8 text", span)


def not_text(message: str, span: Span) -> Diagnostic:
    """Return the diagnostic of a file that is no text."""
    return Diagnostic("yaml/not-text", message, span, help=("a spec is a text file; save it as UTF-8",))
