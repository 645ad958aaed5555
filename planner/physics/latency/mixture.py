"""Merged lengths of several workloads that share one pool."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from planner.physics.latency.types import Array


def merge(points: Sequence[Array], shares: Sequence[float], size: int, weights: Sequence[Array] | None = None) -> Array:
    """Return `size` equally likely points of the mixture of discrete distributions, in rising order.

    `points[w]` are the values of workload `w`, equally likely or with the chances `weights[w]`; `shares[w]` is its
    share of the requests (any positive scale). Each result is the mean of one stratum of the mixture, so the mean is
    kept exactly and the variance is at most lowered. Lengths merged this way are rated as if input and output were
    independent. Raises `ValueError` when nothing has a positive share.
    """
    values = np.concatenate([np.asarray(each, dtype=np.float64).ravel() for each in points])
    chances = np.concatenate(
        [
            share * _chances(each, None if weights is None else weights[number])
            for number, (each, share) in enumerate(zip(points, shares, strict=True))
        ]
    )
    if not chances.sum() > 0:
        raise ValueError("a mixture needs a positive share")
    order = np.argsort(values, kind="stable")
    values, chances = values[order], chances[order] / chances.sum()
    edges = np.concatenate([[0.0], np.cumsum(chances)])
    integral = np.concatenate([[0.0], np.cumsum(chances * values)])
    cuts = np.linspace(0.0, edges[-1], size + 1)
    means = np.diff(np.interp(cuts, edges, integral)) * (size / edges[-1])
    return np.asarray(np.clip(means, values[0], values[-1]))


def _chances(points: Array, weights: Array | None) -> Array:
    if weights is None:
        return np.full(np.size(points), 1.0 / np.size(points))
    flat = np.asarray(weights, dtype=np.float64).ravel()
    return np.asarray(flat / flat.sum())
