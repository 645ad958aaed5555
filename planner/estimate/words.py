"""Counts and times in the sentences of an estimate."""

from __future__ import annotations

TIME_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"))
"""Seconds per unit, and its name."""


def counted(amount: float, noun: str) -> str:
    """Return a count with its noun: `1 token`, `2,048 tokens`."""
    return f"{amount:,.0f} {noun}" + ("" if round(amount) == 1 else "s")


def brief(value_s: float) -> str:
    """Return a time of seconds in the unit that fits it, three significant digits: `105 ms`."""
    size, unit = next((pair for pair in TIME_UNITS if value_s >= pair[0] * (1.0 - 1e-9)), TIME_UNITS[-1])
    return f"{value_s / size:,.3g} {unit}"
