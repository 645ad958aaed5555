"""Every tolerance of the solving stage, in one place."""

INTEGRALITY_ATOL = 1e-5  # a solver value this close to an integer is that integer; anything else is a bug
FEASIBILITY_RTOL = 1e-5  # violation of a row, relative to its terms, that an accepted answer may have
COST_RTOL = 1e-6  # disagreement between the solver's objective and the recomputed one
GAP_ATOL = 1e-5  # what tie-breaks in the objective may leave of a gap that is closed
RATE_RTOL = 1e-9  # rates below this share of the demand of their workload are not routed


def to_count(value: float) -> int:
    """Turn a solver value into a whole number, refusing one that is not."""
    count = round(value)
    if abs(value - count) > INTEGRALITY_ATOL:
        raise ArithmeticError(f"solver returned {value!r} for a whole number")
    return count
