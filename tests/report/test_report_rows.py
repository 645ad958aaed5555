"""Rows as a table, JSON and CSV."""

from __future__ import annotations

import json

import pytest

from planner.report.rows import as_csv, as_json, cell, listing, table

ROWS = [{"name": "a, b", "x_w": 5, "share": 0.1 + 0.2, "fits": True}, {"name": "c", "x_w": None, "share": 1e7, "fits": False}]  # fmt: skip


def test_tables_align_numbers_to_the_right() -> None:
    assert table([{"name": "a", "x_w": 5}, {"name": "bcd", "x_w": None}]) == ["name  x w", "a       5", "bcd     -"]
    assert table([]) == ["nothing to list"]


def test_shares_are_read_in_percent() -> None:
    assert table([{"kv_share": 2.139}, {"kv_share": None}]) == ["kv share", "   214 %", "       -"]


def test_one_row_is_listed_key_by_key() -> None:
    assert listing({"name": "a", "step_ms": 25.576}, digits=3) == ["name     a", "step ms  25.6"]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "-"),
        ("", "-"),
        (True, "true"),
        (7, "7"),
        (0.0, "0"),
        (1978.9, "1,978.9"),
        (-3.25, "-3.25"),
        (1234567.4, "1,234,567"),
        (1e-5, "0.00001"),
    ],
)
def test_cells(value: object, text: str) -> None:
    assert cell(value) == text


def test_json_has_a_version_and_twelve_digits() -> None:
    answer = json.loads(as_json({"rows": ROWS}))

    assert list(answer) == ["schema_version", "rows"]
    assert answer["schema_version"] == 1
    assert answer["rows"][0] == {"name": "a, b", "x_w": 5, "share": 0.3, "fits": True}


def test_json_refuses_what_is_no_number() -> None:
    with pytest.raises(ValueError):
        as_json({"rows": [{"x": float("inf")}]})


def test_csv_quotes_and_leaves_absent_fields_empty() -> None:
    assert as_csv(ROWS) == 'name,x_w,share,fits\n"a, b",5,0.3,true\nc,,10000000,false\n'
    assert as_csv([]) == ""
