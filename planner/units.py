"""Closed table of units: text such as `1.5 s` goes in, a float in base units comes out.

Knows no field names and no YAML. Base units: seconds, bytes, requests per second, US dollars, shares of one.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

UnitErrorKind = Literal["missing-unit", "unknown-unit", "not-a-quantity", "out-of-range", "negative"]

SECONDS_PER_DAY = 86400.0
_SCALES = MappingProxyType({"k": 1e3, "M": 1e6, "G": 1e9})
_QUANTITY = re.compile(r"\s*([+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)\s*(.*?)\s*", re.ASCII | re.DOTALL)
_SCALED = re.compile(r"([kMG])(?:\s+(.*))?", re.DOTALL)
_OTHER_BASE = re.compile(r"\s*[+-]?0(?:[xX][0-9a-fA-F]|[bB][01]|[oO][0-7]).*", re.DOTALL)
_LONGEST_QUOTE = 40


class UnitError(ValueError):
    """Text that is no quantity of the wanted dimension: what is wrong (`message`) and what to write (`hint`).

    `start` and `end` bound the offending part inside the text that was read (end exclusive).
    """

    def __init__(self, message: str, hint: str, kind: UnitErrorKind, start: int = 0, end: int = 0) -> None:
        self.message = message
        self.hint = hint
        self.kind: UnitErrorKind = kind
        self.start = start
        self.end = end
        super().__init__(f"{message}; {hint}" if hint else message)


@dataclass(frozen=True, slots=True)
class Dimension:
    """What a field measures: its legal units with their size in base units, and how a bare number is read.

    `bare` is the size of a number without a unit, None where a unit is due. `scaled` allows `12k`, `380M`, `2G`.
    `maximum` is in base units, `bare_maximum` that of a bare number; nothing here may be negative.
    """

    name: str
    noun: str
    units: Mapping[str, float]
    example: str
    bare: float | None = None
    scaled: bool = False
    maximum: float = math.inf
    bare_maximum: float = math.inf


DIMENSIONS: Mapping[str, Dimension] = MappingProxyType(
    {
        d.name: d
        for d in (
            Dimension(
                "time",
                "a time",
                {"s": 1.0, "ms": 1e-3, "us": 1e-6, "min": 60.0, "h": 3600.0, "day": SECONDS_PER_DAY},
                "500 ms",
            ),
            Dimension(
                "memory",
                "memory",
                {
                    "B": 1.0,
                    "kB": 1e3,
                    "MB": 1e6,
                    "GB": 1e9,
                    "TB": 1e12,
                    "KiB": 2.0**10,
                    "MiB": 2.0**20,
                    "GiB": 2.0**30,
                    "TiB": 2.0**40,
                },
                "6 GiB",
            ),
            Dimension(
                "rate",
                "a request rate",
                {"req/s": 1.0, "req/min": 1 / 60, "req/h": 1 / 3600, "req/day": 1 / SECONDS_PER_DAY},
                "12 req/s",
                scaled=True,
            ),
            Dimension("share", "a share", {"%": 0.01}, "80 %", bare=1.0, maximum=1.0),
            Dimension("ratio", "a ratio", {"%": 0.01}, "99.6 %", bare=1.0),
            Dimension("change", "a relative change", {"%": 0.01}, "15 %", bare=1.0, bare_maximum=1.0),
            Dimension("count", "a count", {}, "12k", bare=1.0, scaled=True),
            Dimension("money", "an amount of money", {"USD": 1.0}, "400000 USD", scaled=True),
            Dimension("money_per_month", "money per month", {"USD/month": 1.0}, "400000 USD/month", scaled=True),
            Dimension("money_per_mtok", "money per million tokens", {"USD/Mtok": 1.0}, "0.60 USD/Mtok"),
            Dimension("power", "power", {"W": 1.0, "kW": 1e3, "MW": 1e6}, "120 kW"),
            Dimension("price_per_kwh", "a price of energy", {"USD/kWh": 1.0}, "0.12 USD/kWh"),
            Dimension("price", "a price", {"USD/gpu/h": 1.0, "USD/node/h": 1.0}, "1.10 USD/gpu/h"),
            Dimension("price_per_gpu_hour", "a price per GPU", {"USD/gpu/h": 1.0}, "1.10 USD/gpu/h"),
            Dimension("price_per_node_hour", "a price per node", {"USD/node/h": 1.0}, "8.80 USD/node/h"),
        )
    }
)
"""Every dimension a quantity of the spec or of a flag can have, by name."""

_SPELLINGS: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(("sec", "secs", "second", "seconds"), "s"),
        **dict.fromkeys(("msec", "millis", "millisecond", "milliseconds"), "ms"),
        **dict.fromkeys(("µs", "μs", "usec", "microsecond", "microseconds"), "us"),
        **dict.fromkeys(("mins", "minute", "minutes"), "min"),
        **dict.fromkeys(("hr", "hrs", "hour", "hours"), "h"),
        **dict.fromkeys(("d", "days"), "day"),
        **dict.fromkeys(("rps", "qps", "r/s", "req/sec", "request/s", "requests/s", "/s", "hz"), "req/s"),
        **dict.fromkeys(("rpm", "req/minute", "requests/min", "requests/minute", "/min"), "req/min"),
        **dict.fromkeys(("rph", "req/hour", "requests/h", "requests/hour", "/h"), "req/h"),
        **dict.fromkeys(("rpd", "req/d", "requests/day", "/day"), "req/day"),
        **dict.fromkeys(("percent", "pct", "per cent"), "%"),
        **dict.fromkeys(("$", "dollar", "dollars"), "USD"),
        **dict.fromkeys(("$/month", "usd/mo", "$/mo", "usd/m"), "USD/month"),
        **dict.fromkeys(("usd/gpu/hour", "usd/gpu-hour", "usd/gpu-h", "usd/gpuh", "$/gpu/h"), "USD/gpu/h"),
        **dict.fromkeys(("usd/node/hour", "usd/node-hour", "usd/node-h", "$/node/h"), "USD/node/h"),
        **dict.fromkeys(("$/kwh", "usd/kw-h", "usd/kilowatt-hour"), "USD/kWh"),
        **dict.fromkeys(("watt", "watts"), "W"),
        **dict.fromkeys(("kilowatt", "kilowatts"), "kW"),
        **dict.fromkeys(("usd/mtokens", "$/mtok", "usd/1m", "usd/m tokens"), "USD/Mtok"),
    }
)
_BITS = re.compile(r"([kKMGT])(i?)(?:b|bits?)")
_BIT_NAMES = MappingProxyType({"k": "kilobit", "K": "kilobit", "M": "megabit", "G": "gigabit", "T": "terabit"})
_BYTE_PREFIX = re.compile(r"([kKMGT])i?(?:[bB]|bits?)?")


def parse_quantity(value: object, dimension: str) -> float:
    """Read a quantity and return it in the base unit of its dimension (see `DIMENSIONS`).

    Numbers are taken as they are where the dimension allows a bare number. Raises `UnitError` on a missing or
    unknown unit, on text that is no quantity, and on values that are negative, not finite or above the maximum.
    """
    wanted = DIMENSIONS[dimension]
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise UnitError(f"{_quote(value)} is not {wanted.noun}", f"write it as `{wanted.example}`", "not-a-quantity")
    if isinstance(value, str):
        return _read_text(value, wanted)[0]
    if wanted.bare is None:
        raise _missing_unit(str(value), wanted, 0, len(str(value)))
    try:
        return _bare_in_range(float(value), value, wanted)
    except OverflowError:
        return _in_range(math.inf, "the number", wanted)


@dataclass(frozen=True, slots=True)
class Price:
    """A price of hardware: per GPU and hour, or per node and hour. Exactly one is set."""

    usd_per_gpu_h: float | None = None
    usd_per_node_h: float | None = None

    def of_node(self, gpus: int) -> float:
        """Return the price in USD of an hour of a node with so many GPUs."""
        return self.usd_per_node_h if self.usd_per_node_h is not None else (self.usd_per_gpu_h or 0.0) * gpus


def parse_price(value: object) -> Price:
    """Read `1.10 USD/gpu/h` or `8.80 USD/node/h`. Raises `UnitError` as `parse_quantity` does."""
    amount = parse_quantity(value, "price")
    _, unit = _read_text(str(value), DIMENSIONS["price"])
    if unit == "USD/gpu/h":
        return Price(usd_per_gpu_h=amount)
    return Price(usd_per_node_h=amount)


def legal_units(dimension: str) -> str:
    """Return the units that a dimension takes, as a phrase for people."""
    wanted = DIMENSIONS[dimension]
    units = list(wanted.units)
    if wanted.bare is not None:
        units.append("a number from 0 to 1" if min(wanted.maximum, wanted.bare_maximum) == 1.0 else "a number")
    if wanted.scaled:
        units.append("with k, M or G")
    return ", ".join(units)


def _read_text(text: str, wanted: Dimension) -> tuple[float, str]:
    match = _QUANTITY.fullmatch(text)
    if match is None or _OTHER_BASE.fullmatch(text):
        raise _not_a_quantity(text, wanted)
    number, rest = float(match[1]), match[2]
    if wanted.scaled and (scaled := _SCALED.fullmatch(rest)):
        number, rest = number * _SCALES[scaled[1]], scaled[2] or ""
    if not rest:
        if wanted.bare is None:
            raise _missing_unit(text.strip(), wanted, match.start(1), match.end(1))
        return _bare_in_range(number * wanted.bare, text.strip(), wanted), ""
    unit = " ".join(rest.split())
    if unit not in wanted.units:
        start = match.end(2) - len(rest)
        raise UnitError(*_unknown_unit(unit, wanted), "unknown-unit", start, match.end(2))
    return _in_range(_in_base_units(number, wanted.units[unit]), text.strip(), wanted), unit


def _in_base_units(number: float, size: float) -> float:
    """Divide by whole numbers instead of multiplying by inexact fractions: `7 %` is 0.07, not 0.07000000000000001."""
    return number * size if size >= 1.0 else number / round(1.0 / size)


def _in_range(amount: float, written: object, wanted: Dimension) -> float:
    if not math.isfinite(amount):
        raise UnitError(f"{_quote(written)} is not a finite number", f"write {wanted.noun}", "out-of-range")
    if amount < 0:
        raise UnitError(f"{_quote(written)} is negative", f"{wanted.noun} is zero or more", "negative")
    if amount > wanted.maximum:
        raise UnitError(
            f"{_quote(written)} is more than the whole",
            f"a share is 0 to 100 %{_as_percent(written)}",
            "out-of-range",
        )
    return amount


def _bare_in_range(amount: float, written: object, wanted: Dimension) -> float:
    """Refuse `5` for a change that may well be 500 %, but is seldom meant so without the sign."""
    found = _in_range(amount, written, wanted)
    if found > wanted.bare_maximum:
        raise UnitError(
            f"{_quote(written)} is more than the whole",
            f"a number is 0 to 1; write more than 100 % with the sign{_as_percent(written)}",
            "out-of-range",
        )
    return found


def _as_percent(written: object) -> str:
    """Suggest the percent sign that `99` lacks."""
    try:
        percent = float(str(written))
    except ValueError:
        return ""
    return f"; did you mean `{percent:g} %`?" if 1.0 < percent <= 100.0 else ""


def _missing_unit(text: str, wanted: Dimension, start: int, end: int) -> UnitError:
    message = f"{_quote(text)} has no unit; this field is {wanted.noun}"
    return UnitError(message, f"add {_any_of(wanted)}, as in `{wanted.example}`", "missing-unit", start, end)


def _not_a_quantity(text: str, wanted: Dimension) -> UnitError:
    hint = f"write it as `{wanted.example}`"
    if re.match(r"\s*[$€£]", text):
        hint = f"write the currency after the number: `{wanted.example}`"
    return UnitError(f"{_quote(text)} is not {wanted.noun}", hint, "not-a-quantity", 0, len(text))


def _unknown_unit(unit: str, wanted: Dimension) -> tuple[str, str]:
    if unit.startswith((",", "_")) and unit[1:2].isdigit():
        return f"{_quote(unit)} is no unit", "write digits without separators, as in `1500`"
    if wanted.name == "memory":
        return _unknown_memory_unit(unit, wanted)
    if wanted.name == "price" and unit.lower() in ("usd/h", "usd/hour", "usd/hr", "$/h", "usd"):
        return (
            f"{_quote(unit)} does not say what is priced",
            "did you mean `USD/gpu/h` (each GPU) or `USD/node/h` (a whole node)?",
        )
    if wanted.name == "time" and unit.lower() == "m":
        return f"{_quote(unit)} is no unit of time", "did you mean `min` or `ms`?"
    return _foreign_unit(unit, wanted), _suggestion(unit, wanted)


def _unknown_memory_unit(unit: str, wanted: Dimension) -> tuple[str, str]:
    bits, size = _BITS.fullmatch(unit), _BYTE_PREFIX.fullmatch(unit)
    if size is None:
        return _foreign_unit(unit, wanted), _suggestion(unit, wanted)
    letter = size[1].upper()
    decimal, power = {"K": ("kB", 10), "M": ("MB", 20), "G": ("GB", 30), "T": ("TB", 40)}[letter]
    hint = f"did you mean `{decimal}` (10^{power // 10 * 3} bytes) or `{letter}iB` (2^{power})?"
    if bits is not None:
        return f"{_quote(unit)} is {_BIT_NAMES[bits[1]]}; this field is memory", hint
    return f"{_quote(unit)} is no unit of memory", hint


def _foreign_unit(unit: str, wanted: Dimension) -> str:
    for other in DIMENSIONS.values():
        if unit in other.units:
            return f"{_quote(unit)} measures {other.noun}; this field is {wanted.noun}"
    if bits := _BITS.fullmatch(unit):
        return f"{_quote(unit)} is {_BIT_NAMES[bits[1]]}; this field is {wanted.noun}"
    return f"{_quote(unit)} is not a unit of {wanted.noun.removeprefix('a ').removeprefix('an ')}"


def _suggestion(unit: str, wanted: Dimension) -> str:
    if not wanted.units:
        return f"write the number alone, as in `{wanted.example}`"
    by_case = {known.lower(): known for known in wanted.units}
    guess = by_case.get(unit.lower()) or _SPELLINGS.get(unit.lower(), "")
    if guess not in wanted.units:
        from difflib import get_close_matches

        guess = next(iter(get_close_matches(unit, wanted.units, n=1)), "")
    return f"did you mean `{guess}`?" if guess else f"write {_any_of(wanted)}"


def _any_of(wanted: Dimension) -> str:
    *others, last = (f"`{unit}`" for unit in wanted.units)
    return f"{', '.join(others)} or {last}" if others else last


def _quote(value: object) -> str:
    """Quote what the user wrote, shortened; containers by kind only."""
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, list | tuple):
        return "a list"
    text = (
        {True: "true", False: "false", None: "null"}[value] if value is None or isinstance(value, bool) else str(value)
    )
    text = " ".join(text.split())
    return f"`{text if len(text) <= _LONGEST_QUOTE else text[: _LONGEST_QUOTE - 1] + '…'}`"
