"""Merged lengths of workloads that share a pool."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.physics.latency import merge

rows = st.lists(st.floats(1, 1e5), min_size=1, max_size=40).map(np.array)


def test_one_workload_merges_to_itself() -> None:
    points = np.array([1.0, 5.0, 9.0, 20.0])
    assert merge([points], [3.0], 4) == pytest.approx(points)


def test_shares_count() -> None:
    merged = merge([np.array([10.0]), np.array([1000.0])], [3.0, 1.0], 8)
    assert merged == pytest.approx([10.0] * 6 + [1000.0] * 2)


def test_weighted_points() -> None:
    """A prefix hit shortens most prompts: chances other than equal ones."""
    merged = merge([np.array([100.0, 700.0])], [1.0], 10, weights=[np.array([0.8, 0.2])])
    assert merged == pytest.approx([100.0] * 8 + [700.0] * 2)


def test_a_workload_without_share_does_not_count() -> None:
    assert merge([np.array([10.0, 20.0]), np.array([1e6])], [1.0, 0.0], 2) == pytest.approx([10.0, 20.0])


def test_nothing_to_merge_is_refused() -> None:
    with pytest.raises(ValueError, match="positive share"):
        merge([np.array([10.0])], [0.0], 4)


@given(rows, rows, st.floats(0.01, 100), st.integers(1, 64))
@settings(max_examples=200, derandomize=True)
def test_the_mean_is_kept_and_the_points_stay_in_range(a: np.ndarray, b: np.ndarray, share: float, size: int) -> None:
    merged = merge([a, b], [share, 1.0], size)
    mean = (share * a.mean() + b.mean()) / (share + 1.0)
    assert merged.mean() == pytest.approx(mean, rel=1e-9)
    assert (np.diff(merged) >= -1e-9 * merged[1:]).all()
    assert merged.min() >= min(a.min(), b.min())
    assert merged.max() <= max(a.max(), b.max())


@given(rows, rows, st.integers(1, 64))
@settings(max_examples=100, derandomize=True)
def test_the_order_of_workloads_does_not_matter(a: np.ndarray, b: np.ndarray, size: int) -> None:
    assert merge([a, b], [1.0, 2.0], size) == pytest.approx(merge([b, a], [2.0, 1.0], size), rel=1e-9)
