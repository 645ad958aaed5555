"""Numbers as people read them."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.report import figures


@pytest.mark.parametrize(
    ("value_s", "text"),
    [
        (0.0, "0 s"),
        (2.0, "2 s"),
        (0.0187, "18.7 ms"),
        (0.33909, "339 ms"),
        (0.99961, "1 s"),
        (0.9994, "999 ms"),
        (0.00099961, "1 ms"),
        (12.345, "12.3 s"),
        (599.0, "599 s"),
        (600.0, "10 min"),
        (86400.0, "24 h"),
        (1.5e-5, "15 us"),
    ],
)
def test_times_have_three_digits_and_a_unit(value_s: float, text: str) -> None:
    assert figures.seconds(value_s) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (126332.048, "$126,332"),
        (100.0, "$100"),
        (99.999, "$100"),
        (58.2966, "$58.30"),
        (0.2835, "$0.28"),
        (0.02345, "$0.0234"),
        (0.0, "$0"),
    ],
)
def test_money_has_cents_only_where_they_matter(value: float, text: str) -> None:
    assert figures.usd(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0 %"), (2.897e-5, "0.0029 %"), (2.901e-5, "0.003 %"), (0.005, "0.5 %"), (0.0321, "3.3 %"), (1e-12, "0.0001 %"), (1.0, "100 %")],
)  # fmt: skip
def test_gaps_are_never_understated(value: float, text: str) -> None:
    assert figures.gap(value) == text


@given(value=st.floats(1e-6, 1.0))
@settings(max_examples=200, derandomize=True, deadline=None)
def test_a_gap_is_rounded_up_by_at_most_a_tenth(value: float) -> None:
    shown = float(figures.gap(value).removesuffix(" %")) / 100.0

    assert value * (1 - 1e-9) <= shown <= value * 1.1 + 1e-9


@given(value=st.floats(1e-9, 1e12))
@settings(max_examples=200, derandomize=True, deadline=None)
def test_numbers_keep_three_digits(value: float) -> None:
    shown = float(figures.number(value).replace(",", ""))

    assert math.isclose(shown, value, rel_tol=0.00501)


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.938, "94 %"), (0.0042, "0.4 %"), (0.0, "0 %"), (-0.031, "-3 %"), (1.2, "120 %"), (932.94, "93,300 %")],
)
def test_shares(value: float, text: str) -> None:
    assert figures.share(value) == text


def test_long_lists_are_cut() -> None:
    assert figures.listed("abc", 3) == "a, b, c"
    assert figures.listed("abcde", 3) == "a, b, c and 2 more"
