"""No text makes a traceback: neither arbitrary text nor bent versions of a real spec."""

from __future__ import annotations

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from planner.diagnostics import has_errors
from planner.report.diagnostics import formats, render
from planner.report.findings import CheckedFile
from planner.spec import load_spec

JUNK = (
    *("null", "[]", "{}", "-1", "0", "1e400", ".nan", ".inf", "true", "x", '""', "'\\n'", "[[]]", "{a: {b: c}}", "99999999999999999999"),
    *("80 %", "6 Gb", "2026-02-30", "*a", "&a 1", "!t 1", "!!str 1", "{<<: 1}", "? [1]", "é", "1_0", "0x10", "req/s", "1 req/s", "{mean: 1, p95: 9}"),
)  # fmt: skip


def check(text: str) -> None:
    """Load, and show what was found in every format."""
    result = load_spec(text, "f.yaml")

    assert (result.spec is None) == has_errors(result.diagnostics)
    lines = result.document.lines if result.document else ()
    shown = {format: render(format, [CheckedFile("f.yaml", lines, result.diagnostics)]) for format in formats()}
    assert shown["concise"].count("\n") == len(result.diagnostics)
    for diagnostic in result.diagnostics:
        assert diagnostic.span is not None
        assert diagnostic.span.line >= 1
        assert 1 <= diagnostic.span.column < diagnostic.span.end_column


@settings(derandomize=True, max_examples=200, deadline=None)
@given(st.text(max_size=200))
def test_any_text(text: str) -> None:
    """Arbitrary text."""
    check(text)


@settings(derandomize=True, max_examples=250, deadline=None)
@given(st.data())
def test_bent_values(prod_text: str, data: st.DataObject) -> None:
    """Values of the production spec replaced by junk."""
    places = [
        match.span(1) for match in re.finditer(r": ([^\s,{}\[\]][^,{}\[\]\n]*|\[[^\]\n]*\]|\{[^}\n]*\})", prod_text)
    ]
    chosen = data.draw(st.lists(st.sampled_from(places), min_size=1, max_size=4, unique=True))
    text = prod_text
    for start, end in sorted(chosen, reverse=True):
        text = text[:start] + data.draw(st.sampled_from(JUNK)) + text[end:]
    check(text)


@settings(derandomize=True, max_examples=250, deadline=None)
@given(st.data())
def test_bent_text(prod_text: str, data: st.DataObject) -> None:
    """Pieces of the production spec removed, repeated, or overwritten by any text."""
    start = data.draw(st.integers(0, len(prod_text) - 1))
    end = min(len(prod_text), start + data.draw(st.integers(0, 120)))
    piece = data.draw(st.sampled_from(["", prod_text[start:end] * 2]) | st.text(max_size=20))
    check(prod_text[:start] + piece + prod_text[end:])


@settings(derandomize=True, max_examples=100, deadline=None)
@given(st.data())
def test_dropped_and_swapped_lines(prod_text: str, data: st.DataObject) -> None:
    """Lines removed, doubled or indented."""
    lines = prod_text.splitlines(keepends=True)
    for _ in range(data.draw(st.integers(1, 4))):
        index = data.draw(st.integers(0, len(lines) - 1))
        change = data.draw(st.sampled_from(["drop", "double", "indent", "outdent"]))
        line = lines[index]
        lines[index] = {"drop": "", "double": line * 2, "indent": "  " + line, "outdent": line[2:]}[change]
    check("".join(lines))
