"""Steps of a robust least-squares fit with Gaussian priors, for residuals that each depend on few of the parameters."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from planner.validation.speed_predict import Array, Batch, Index

STEP = 1e-3
LARGEST_MOVE = 0.7
"""Step of the derivatives, and the most that a parameter moves at once: both of logarithms."""

Part = tuple[Index, Batch]
"""The rows that a parameter moves: their positions, and themselves as a batch."""


def derivatives(
    theta: Array, residuals: Array, parts: Sequence[Part], at: Callable[[Array, Index, Batch], Array]
) -> Array:
    """Return the derivatives [row, parameter] at `theta` by forward differences; `at` gives the residuals of a part."""
    found = np.zeros((residuals.size, theta.size))
    for column, (index, batch) in enumerate(parts):
        moved = theta.copy()
        moved[column] += STEP
        found[index, column] = (at(moved, index, batch) - residuals[index]) / STEP
    return found


def robust(residuals: Array, weights: Array | float, huber: float) -> Array:
    """Return the weights, less for residuals beyond `huber` (Huber's loss by reweighting)."""
    return np.asarray(weights * np.minimum(1.0, huber / np.maximum(np.abs(residuals), 1e-9)), dtype=np.float64)


def gauss_newton(residuals: Array, jacobian: Array, weights: Array, precisions: Array, from_centres: Array) -> Array:
    """Return the step to the optimum of the linearised fit, no parameter further than `LARGEST_MOVE`."""
    weighted = jacobian * weights[:, None]
    gradient = weighted.T @ residuals + precisions * from_centres
    step = -np.linalg.solve(jacobian.T @ weighted + np.diag(precisions), gradient)
    return np.asarray(np.clip(step, -LARGEST_MOVE, LARGEST_MOVE), dtype=np.float64)
