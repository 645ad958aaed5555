"""Sparse matrices from entries."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.sparse import coo_array, csr_array


def sparse(entries: Sequence[tuple[int, int, float]], shape: tuple[int, int]) -> csr_array:
    """Return the matrix of this shape with the entries (row, column, value), and zeros elsewhere."""
    if not entries:
        return csr_array(shape, dtype=float)
    at, columns, values = zip(*entries, strict=True)
    return csr_array(coo_array((np.array(values, dtype=float), (np.array(at), np.array(columns))), shape=shape))
