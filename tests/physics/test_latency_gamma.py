"""The incomplete gamma function against scipy's, which is slow but right."""

from __future__ import annotations

import numpy as np
from scipy.special import gammaincc

from planner.physics.latency.gamma import upper_gamma


def test_it_equals_scipy_where_either_way_is_taken() -> None:
    shape = np.concatenate([np.geomspace(1e-12, 1e6, 60), [1.2499, 1.25, 1.2501]])[:, None]
    above = np.concatenate([[0.0], np.geomspace(1e-12, 1e6, 80), [1.0999, 1.1, 1.1001, np.inf]])
    with np.errstate(all="ignore"):
        found = upper_gamma(shape, above)
    assert np.abs(found - gammaincc(shape, above)).max() < 1e-13


def test_all_large_or_all_small_arguments() -> None:
    for shape, above in ((np.full(3, 9.0), np.full(3, 5.0)), (np.full(3, 0.3), np.full(3, 0.7)), (np.ones(0),) * 2):
        assert np.abs(upper_gamma(shape, above) - gammaincc(shape, above)).sum() < 1e-13


def test_what_is_no_number_stays_none() -> None:
    assert np.isnan(upper_gamma(np.array([np.nan, 0.5]), np.array([0.5, np.nan]))).all()
