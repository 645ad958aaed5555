"""Quantities: what is read, what is refused, and what the refusal suggests."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.units import DIMENSIONS, Price, UnitError, legal_units, parse_price, parse_quantity


@pytest.mark.parametrize(
    ("text", "dimension", "expected"),
    [
        ("500 ms", "time", 0.5),
        ("1.5s", "time", 1.5),
        ("35 us", "time", 35e-6),
        ("2 min", "time", 120.0),
        ("1 day", "time", 86400.0),
        ("6 GB", "memory", 6e9),
        ("6 GiB", "memory", 6 * 2**30),
        ("512 MiB", "memory", 2**29),
        ("12 req/s", "rate", 12.0),
        ("1.2k req/s", "rate", 1200.0),
        ("90 req/min", "rate", 1.5),
        ("86400 req/day", "rate", 1.0),
        ("80%", "share", 0.8),
        ("80 %", "share", 0.8),
        ("7 %", "share", 0.07),
        (0.8, "share", 0.8),
        ("0.8", "share", 0.8),
        (1, "share", 1.0),
        ("120 %", "change", 1.2),
        (0.15, "change", 0.15),
        (12, "count", 12.0),
        ("12k", "count", 12e3),
        ("380M", "count", 380e6),
        ("2G", "count", 2e9),
        ("1e3", "count", 1000.0),
        ("400000 USD", "money", 4e5),
        ("400k USD/month", "money_per_month", 4e5),
        ("0.60 USD/Mtok", "money_per_mtok", 0.6),
        ("1.10 USD/gpu/h", "price_per_gpu_hour", 1.1),
        ("8 USD/node/h", "price_per_node_hour", 8.0),
    ],
)
def test_reads(text: object, dimension: str, expected: float) -> None:
    """Legal spellings, exactly: percent and milliseconds divide instead of multiplying by inexact fractions."""
    assert expected == parse_quantity(text, dimension)


@pytest.mark.parametrize(
    ("text", "dimension", "kind", "hint"),
    [
        ("6 Gb", "memory", "unknown-unit", "`GB` (10^9 bytes) or `GiB` (2^30)"),
        ("6 G", "memory", "unknown-unit", "`GB` (10^9 bytes) or `GiB` (2^30)"),
        ("6 kb", "memory", "unknown-unit", "`kB` (10^3 bytes) or `KiB` (2^10)"),
        ("6 Tib", "memory", "unknown-unit", "`TB` (10^12 bytes) or `TiB` (2^40)"),
        ("6 gb", "memory", "unknown-unit", "did you mean `GB`"),
        ("5 m", "time", "unknown-unit", "`min` or `ms`"),
        ("5 sec", "time", "unknown-unit", "did you mean `s`"),
        ("5 S", "time", "unknown-unit", "did you mean `s`"),
        ("5 bananas", "time", "unknown-unit", "`s`, `ms`, `us`, `min`, `h` or `day`"),
        ("12 rps", "rate", "unknown-unit", "did you mean `req/s`"),
        ("3 USD/h", "price", "unknown-unit", "`USD/gpu/h` (each GPU) or `USD/node/h`"),
        ("12 EUR", "money", "unknown-unit", "`USD`"),
        ("$5", "money", "not-a-quantity", "after the number"),
        (500, "time", "missing-unit", "as in `500 ms`"),
        ("500", "time", "missing-unit", "as in `500 ms`"),
        (12.5, "rate", "missing-unit", "`req/s`"),
        (99, "share", "out-of-range", "did you mean `99 %`"),
        ("120 %", "share", "out-of-range", "0 to 100 %"),
        (5, "change", "out-of-range", "did you mean `5 %`"),
        ("2", "change", "out-of-range", "write more than 100 % with the sign; did you mean `2 %`"),
        ("-1 req/s", "rate", "negative", "zero or more"),
        (-1, "count", "negative", "zero or more"),
        (math.nan, "count", "out-of-range", "a count"),
        (math.inf, "count", "out-of-range", "a count"),
        (10**400, "count", "out-of-range", "a count"),
        ("1e999", "count", "out-of-range", "a count"),
        ("nan", "count", "not-a-quantity", "`12k`"),
        ("1,000", "count", "unknown-unit", "without separators"),
        ("12 tokens", "count", "unknown-unit", "the number alone"),
        ("", "count", "not-a-quantity", "`12k`"),
        (True, "count", "not-a-quantity", "`12k`"),
        (None, "time", "not-a-quantity", "`500 ms`"),
        ([1], "time", "not-a-quantity", "`500 ms`"),
        ({}, "time", "not-a-quantity", "`500 ms`"),
    ],
)
def test_refuses(text: object, dimension: str, kind: str, hint: str) -> None:
    """Each refusal has its kind and says what to write."""
    with pytest.raises(UnitError) as caught:
        parse_quantity(text, dimension)

    assert kind == caught.value.kind
    assert hint in caught.value.hint


def test_bit_units_are_named() -> None:
    """`Gb` is called by its name, whatever the field measures."""
    for dimension, noun in (("memory", "memory"), ("time", "a time")):
        with pytest.raises(UnitError, match=f"`Gb` is gigabit; this field is {noun}"):
            parse_quantity("6 Gb", dimension)


def test_units_of_other_dimensions_are_recognised() -> None:
    """A unit that exists elsewhere is named by what it measures."""
    with pytest.raises(UnitError, match="`GB` measures memory; this field is a time"):
        parse_quantity("6 GB", "time")


@pytest.mark.parametrize(("text", "part"), [("6 Gb", "Gb"), ("  12   rps ", "rps"), ("500", "500"), ("1.5k x", "x")])
def test_offending_part_is_marked(text: str, part: str) -> None:
    """`start` and `end` bound the part that is wrong."""
    with pytest.raises(UnitError) as caught:
        parse_quantity(text, "rate")

    assert part == text[caught.value.start : caught.value.end]


def test_prices_say_what_is_priced() -> None:
    """A price is per GPU or per node, never both."""
    assert Price(usd_per_gpu_h=1.1) == parse_price("1.10 USD/gpu/h")
    assert Price(usd_per_node_h=8.8) == parse_price("8.80 USD/node/h")


def test_legal_units_are_a_phrase() -> None:
    """The manual lists what a field takes."""
    assert legal_units("time") == "s, ms, us, min, h, day"
    assert legal_units("share") == "%, a number from 0 to 1"


@settings(derandomize=True, max_examples=300)
@given(
    st.text(max_size=30) | st.integers() | st.floats() | st.booleans() | st.none(), st.sampled_from(sorted(DIMENSIONS))
)
def test_reads_or_refuses(value: object, dimension: str) -> None:
    """Any value is a finite amount in range, or a UnitError."""
    try:
        amount = parse_quantity(value, dimension)
    except UnitError:
        return
    assert 0 <= amount <= DIMENSIONS[dimension].maximum
    assert math.isfinite(amount)


@settings(derandomize=True, max_examples=200)
@given(st.sampled_from(sorted(DIMENSIONS)), st.data())
def test_examples_and_units_round_trip(dimension: str, data: st.DataObject) -> None:
    """Every unit of the table reads back as its size."""
    wanted = DIMENSIONS[dimension]
    assert parse_quantity(wanted.example, dimension) > 0
    if not wanted.units:
        return
    unit = data.draw(st.sampled_from(sorted(wanted.units)))
    number = data.draw(st.integers(0, 100))

    assert parse_quantity(f"{number} {unit}", dimension) == pytest.approx(number * wanted.units[unit], rel=1e-12)
