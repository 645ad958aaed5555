"""Units that small demands are stated in, so that a solver does not take them for none.

Solvers keep rows to an absolute tolerance and drop coefficients that are nearly zero. Units are powers of two: nothing is
rounded.
"""

from __future__ import annotations

import math

PLAIN = 2.0**-7  # from here on a rate, share or load is stated as it is


def unit_of(value: float) -> float:
    """Return the unit for a positive value: 1 for one that is not small, else the power of two at or below it."""
    return 1.0 if value >= PLAIN or value <= 0.0 else math.ldexp(0.5, math.frexp(value)[1])
