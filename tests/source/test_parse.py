"""YAML text to a located document."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.source import MAX_SOURCE_BYTES, Document, compose, parse, source_of


def document_of(text: str) -> Document:
    """Parse text that must be clean."""
    document, diagnostics = parse(text, "f.yaml")
    assert diagnostics == []
    assert document is not None
    return document


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("1e9", 1e9),
        ("1.5", 1.5),
        (".5", 0.5),
        ("010", 10),
        ("0o17", 15),
        ("0xff", 255),
        ("-3", -3),
        ("no", "no"),
        ("on", "on"),
        ("NO", "NO"),
        ("12:30", "12:30"),
        ("1_000", "1_000"),
        ("2026-12-01", "2026-12-01"),
        ("true", True),
        ("False", False),
        ("~", None),
        ("", None),
        ("null", None),
        ('"0.20"', "0.20"),
        ("'1'", "1"),
        ("!!str 5", "5"),
        (".inf", float("inf")),
        ("9" * 200, "9" * 200),
        ("80 %", "80 %"),
        ("=", "="),
    ],
)
def test_scalars_follow_the_core_schema(written: str, value: object) -> None:
    """YAML 1.2 core rules: none of the surprises of YAML 1.1."""
    actual = document_of(f"a: {written}\n").data["a"]

    assert value == actual
    assert type(value) is type(actual)


def test_keys_are_text() -> None:
    """Keys that look like numbers or booleans stay as written."""
    assert list(document_of("1: a\ntrue: b\n1y: c\nno: d\n").data) == ["1", "true", "1y", "no"]


def test_anchors_and_merge_keys_work() -> None:
    """Ordinary anchors are fine; a mapping's own keys win over merged ones, and the first source over the second."""
    text = "x-a: &a {one: 1, two: 2}\nx-b: &b {two: 3, three: 3}\nm: {<<: [*a, *b], one: 9}\nn: {<<: *a}\nl: [*a]\n"

    data = document_of(text).data

    assert data["m"] == {"one": 9, "two": 2, "three": 3}
    assert data["n"] == {"one": 1, "two": 2}
    assert data["l"] == [{"one": 1, "two": 2}]


SPANS = """\
a: 1
b:
  c: [x, {d: 'quoted'}]
  "e f": 80 %
empty:
"""


@pytest.mark.parametrize(
    ("path", "key", "place"),
    [
        (("a",), False, (1, 4, 5)),
        (("a",), True, (1, 1, 2)),
        (("b",), False, (2, 1, 2)),
        (("b", "c"), False, (3, 6, 24)),
        (("b", "c", 0), False, (3, 7, 8)),
        (("b", "c", 1, "d"), False, (3, 14, 22)),
        (("b", "e f"), False, (4, 10, 14)),
        (("b", "e f"), True, (4, 3, 8)),
        (("empty",), False, (5, 1, 6)),
        (("b", "c", 7), False, (3, 6, 24)),
        (("b", "missing", "deep"), False, (2, 1, 2)),
    ],
)
def test_spans(path: tuple[str | int, ...], key: bool, place: tuple[int, int, int]) -> None:
    """Values and keys have lines and columns from 1; what is missing or long is shown by its nearest key."""
    span = document_of(SPANS).span(path, key)

    assert place == (span.line, span.column, span.end_column)


def test_span_of_a_part_of_a_scalar() -> None:
    """The unit inside a quantity can be pointed at, quoted or not; escapes fall back to the whole."""
    document = document_of("a: 6 Gb\nb: '6 Gb'\nc: \"6\\x20Gb\"\n")

    parts = [document.part((key,), 2, 4) for key in "abc"]

    assert [(p.column, p.end_column) for p in parts] == [(6, 8), (7, 9), (4, 13)]


def test_spans_count_characters() -> None:
    """Columns count characters, also beyond the basic plane, and survive a byte order mark."""
    document = document_of("\ufeffé: \U0001f600 x\n")

    span = document.span(("é",))

    assert (span.column, span.end_column) == (4, 7)


def test_duplicates_name_both_places_and_parsing_goes_on() -> None:
    """Each duplicate is one diagnostic with the first place beside it; the first value is kept."""
    document, diagnostics = parse("a: 1\nb: {c: 1, c: 2}\na: 2\n", "f.yaml")

    assert document is not None
    assert document.data == {"a": 1, "b": {"c": 1}}
    assert {(d.code, d.span.line, d.related[0][0].line) for d in diagnostics if d.span} == {
        ("yaml/duplicate-key", 2, 2),
        ("yaml/duplicate-key", 3, 1),
    }


def test_alias_bombs_stop_early() -> None:
    """Exponential aliases are counted while they are read, not after they are written out."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 20)]

    document, diagnostics = parse("\n".join(lines), "f.yaml")

    assert document is None
    assert [d.code for d in diagnostics] == ["yaml/alias-expansion"]


def test_long_alias_chains_are_no_recursion() -> None:
    """Anchors that nest one level each by alias hit the depth limit, not the interpreter's."""
    lines = ["a0: &a0 [x]"] + [f"a{i}: &a{i} [*a{i - 1}]" for i in range(1, 2000)]

    document, diagnostics = parse("\n".join(lines), "f.yaml")

    assert document is None
    assert [d.code for d in diagnostics] == ["yaml/too-deep"]


@pytest.mark.parametrize("text", ["[" * 100_000, "- " * 3000 + "x", "{a: " * 5000, "? " * 3000])
def test_nesting_is_limited(text: str) -> None:
    """Deep nesting is a diagnostic."""
    document, diagnostics = parse(text, "f.yaml")

    assert document is None
    assert [d.code for d in diagnostics] in (["yaml/too-deep"], ["yaml/syntax"])


def test_too_many_values_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file below the size limit can still hold too many values."""
    monkeypatch.setattr(compose, "MAX_NODES", 1000)

    document, diagnostics = parse("a: [" + "1," * 1000 + "]", "f.yaml")

    assert document is None
    assert [d.code for d in diagnostics] == ["yaml/too-large"]


def test_large_text_is_refused_unread() -> None:
    """More than 5 MB is refused before anything is parsed."""
    document, diagnostics = parse("a" * (MAX_SOURCE_BYTES + 1), "f.yaml")

    assert document is None
    assert [d.code for d in diagnostics] == ["yaml/too-large"]


@pytest.mark.parametrize(
    ("content", "code", "line", "column"),
    [
        (b"\x7fELF\x00\x01", "yaml/not-text", 1, 1),
        (b"a: 1\nb: caf\xe9\n", "yaml/not-text", 2, 7),
        ("a: 1".encode("utf-16"), "yaml/not-text", 1, 1),
        (b"a: " + b"x" * 10_000_000, "yaml/too-large", 1, 1),
    ],
)
def test_files_that_are_no_text(tmp_path: Path, content: bytes, code: str, line: int, column: int) -> None:
    """Binary files, other encodings and 10 MB files are diagnostics."""
    file = tmp_path / "f.yaml"
    file.write_bytes(content)

    source = source_of(file.read_bytes(), str(file))

    assert source.text is None
    assert [(d.code, d.span.line, d.span.column) for d in source.diagnostics if d.span] == [(code, line, column)]


def test_byte_order_mark_is_dropped(tmp_path: Path) -> None:
    """Files of some editors start with a mark; lines and columns do not count it."""
    file = tmp_path / "f.yaml"
    file.write_bytes(b"\xef\xbb\xbfa: 1\n")

    source = source_of(file.read_bytes(), str(file))

    assert source.lines == ("a: 1", "")
    assert document_of(source.text or "").data == {"a": 1}


def test_python_parser_gives_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the C parser is missing, PyYAML's own gives the same document and places."""
    import yaml

    fast = document_of(SPANS)
    monkeypatch.setattr(sys.modules["planner.source.parse"], "_LOADER", yaml.SafeLoader)
    slow = document_of(SPANS)

    assert fast.data == slow.data
    for path in (("a",), ("b", "c", 1, "d"), ("b", "e f")):
        assert fast.span(path) == slow.span(path)


@settings(derandomize=True, max_examples=400, deadline=None)
@given(st.text(st.sampled_from("ab:-[]{}&*!?#'\"|>%@`,. \n\t0159~<=\\"), max_size=60) | st.text(max_size=60))
def test_any_text_is_parsed_or_explained(text: str) -> None:
    """No text raises; without a document there is a reason, and every place lies in the text."""
    document, diagnostics = parse(text, "f.yaml")

    assert document is not None or diagnostics
    lines = text.count("\n") + text.count("\r") + text.count("\x85") + text.count("\u2028") + text.count("\u2029") + 1
    for diagnostic in diagnostics:
        assert diagnostic.span is not None
        assert 1 <= diagnostic.span.line <= lines
        assert 1 <= diagnostic.span.column < diagnostic.span.end_column


@pytest.mark.parametrize("hidden", ["\u2028", "\u2029", "\x85", "\r"])
@pytest.mark.parametrize(
    ("before", "after", "line", "column"),
    [
        ("a: 1\n# harmless ", "b: 2\n", 2, 12),
        ("a: 1\r\n# harmless ", "", 2, 12),
        ("a: 'one", "two'\n", 1, 8),
        ("", "a: 1", 1, 1),
    ],
)
def test_a_line_end_that_editors_do_not_show_is_refused(
    hidden: str, before: str, after: str, line: int, column: int
) -> None:
    """A comment may not hide what takes effect."""
    document, (found,) = parse(f"{before}{hidden}{after}", "f.yaml")

    assert document is None
    assert found.code == "yaml/line-break"
    assert f"U+{ord(hidden):04X}" in found.message
    assert found.span is not None
    assert (found.span.line, found.span.column) == (line, column)


def test_escapes_say_what_their_characters_may_not() -> None:
    assert document_of('a: "\\u2028\\u2029\\N\\r"\r\nb: 1\r\n').data == {"a": "\u2028\u2029\x85\r", "b": 1}
