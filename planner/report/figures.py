"""Numbers and names as people read them: no more digits than the physics earns, always with the unit."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable

SIGNIFICANT = 3
WHOLE_USD_FROM = 100.0
SMALL_USD = 0.1
LARGE_SHARE = 10.0
SMALLEST_GAP = 1e-6
GIB = 2.0**30
_TIME_UNITS = ((7200.0, 3600.0, "h"), (600.0, 60.0, "min"), (1.0, 1.0, "s"), (1e-3, 1e-3, "ms"), (1e-6, 1e-6, "us"))
"""Least seconds to show in a unit, seconds per unit, its name."""


def number(value: float, digits: int = SIGNIFICANT) -> str:
    """Return a number with so many significant digits, thousands marked, no exponent and no zeros at the end."""
    if value == 0.0 or not math.isfinite(value):
        return f"{value:g}"
    decimals = digits - 1 - math.floor(math.log10(abs(value)))
    rounded = round(value, decimals)
    text = f"{rounded:,.{max(0, decimals)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def seconds(value_s: float) -> str:
    """Return a time to three significant digits with its unit: `18.7 ms`, `1.5 s`, `12 min`."""
    rounded_s = float(f"{value_s:.{SIGNIFICANT}g}")
    for least_s, size_s, unit in _TIME_UNITS:
        if rounded_s >= least_s:
            return f"{number(value_s / size_s)} {unit}"
    return f"{number(value_s)} s"


def usd(value: float) -> str:
    """Return money with its sign."""
    return f"${amount(value)}"


def amount(value: float) -> str:
    """Return US dollars: whole from 100 on, with cents below, three significant digits below ten cents."""
    if round(abs(value), 2) >= WHOLE_USD_FROM or value == 0.0:
        return f"{value:,.0f}"
    return number(value) if abs(value) < SMALL_USD else f"{value:,.2f}"


def share(value: float) -> str:
    """Return a share in whole percent, with more digits below one percent and fewer above a thousand: `94 %`, `0.3 %`."""
    if abs(value) >= LARGE_SHARE:
        return f"{number(100.0 * value)} %"
    if abs(value) >= 0.01 or value == 0.0:
        return f"{value:.0%}".replace("%", " %")
    return f"{number(100.0 * value, 1)} %"


def gap(value: float) -> str:
    """Return a proven distance in percent, two significant digits, rounded up so that it is never understated."""
    if value <= 0.0:
        return "0 %"
    percent = 100.0 * max(value, SMALLEST_GAP)
    step = 10.0 ** (math.floor(math.log10(percent)) - 1)
    return f"{number(math.ceil(percent / step - 1e-9) * step, 2)} %"


def gib(value_bytes: float) -> str:
    """Return memory in GiB with one decimal."""
    return f"{value_bytes / GIB:,.1f}"


def count(amount: int, noun: str) -> str:
    """Return a count with its noun: `1 pool`, `2 pools`."""
    return f"{amount:,} {noun}" if amount == 1 else f"{amount:,} {noun}s"


def listed(words: Iterable[str], most: int = 6) -> str:
    """Return words with commas, the first `most` of them and how many more there are."""
    all_words = list(words)
    rest = len(all_words) - most
    return ", ".join(all_words[:most]) + (f" and {rest} more" if rest > 0 else "")


def visible(text: str) -> str:
    """Return a user's text on one line, without characters that move the cursor, reorder the line or cannot be written."""
    return "".join(" " if c in "\n\t" else "�" if _is_unseen(c) else c for c in text)


def _is_unseen(character: str) -> bool:
    return unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp") or character in "\ufffe\uffff"
