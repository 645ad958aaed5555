"""Length distributions against published values and their own definitions."""

from __future__ import annotations

import math
from itertools import pairwise
from statistics import NormalDist

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.physics.lengths import (
    LOGNORMAL_P95_TO_MEAN_LIMIT,
    Lengths,
    is_surely_within,
    joint_share_above,
    joint_truncation,
    truncated_share,
)

GRID = [(i + 0.5) / 20_000 for i in range(20_000)]
QUANTILES = {"p50": 600.0, "p90": 2000.0, "p95": 3000.0, "p99": 9000.0}


def mean_of(lengths: Lengths) -> float:
    """Mean by brute force over equally likely quantiles."""
    return sum(lengths.quantile(u) for u in GRID) / len(GRID)


def test_limit_of_p95_over_mean() -> None:
    """p95 / mean of a lognormal is exp(z s - s^2 / 2) and peaks at s = z, at exp(1.645^2 / 2) = 3.87."""
    z = NormalDist().inv_cdf(0.95)

    assert pytest.approx(3.87, abs=0.005) == LOGNORMAL_P95_TO_MEAN_LIMIT
    assert max(math.exp(z * s - s * s / 2) for s in (i / 1000 for i in range(4000))) == pytest.approx(
        LOGNORMAL_P95_TO_MEAN_LIMIT, rel=1e-6
    )


@pytest.mark.parametrize(
    ("mean", "p95"), [(1155, 4083), (211, 451), (6000, 12000), (12035, 39551), (100, 100), (1000, 3860)]
)
def test_lognormal_has_its_mean_and_p95(mean: float, p95: float) -> None:
    """The two numbers it is made from come back: p95 exactly, the mean within the grid's error."""
    lengths = Lengths.lognormal(mean, p95)

    assert lengths.mean == mean
    assert lengths.quantile(0.95) == pytest.approx(p95, rel=1e-9)
    assert mean_of(lengths) == pytest.approx(mean, rel=5e-3)


def test_lognormal_takes_the_smaller_root() -> None:
    """Of the two sigmas with this p95 the one below z = 1.645 is meant."""
    lengths = Lengths.lognormal(1155, 4083)

    s = lengths.last_slope
    assert s < 1.645
    assert 1.6448536 * s - s * s / 2 == pytest.approx(math.log(4083 / 1155), rel=1e-6)
    assert lengths.quantile(0.5) == pytest.approx(1155 * math.exp(-s * s / 2), rel=1e-9)


@pytest.mark.parametrize(("mean", "p95"), [(1000, 999), (1000, 3900)])
def test_no_such_lognormal(mean: float, p95: float) -> None:
    """A p95 below the mean or beyond the limit belongs to no lognormal that is meant."""
    with pytest.raises(ValueError, match="no lognormal"):
        Lengths.lognormal(mean, p95)


def test_quantiles_come_back_and_join_in_the_logarithm() -> None:
    """The curve passes through its points; between two, logarithms are linear in the normal quantile."""
    lengths = Lengths.quantiles(QUANTILES)

    for name, tokens in QUANTILES.items():
        assert lengths.quantile(int(name[1:]) / 100) == pytest.approx(tokens, rel=1e-9)
    middle = NormalDist().cdf((NormalDist().inv_cdf(0.5) + NormalDist().inv_cdf(0.9)) / 2)
    assert lengths.quantile(middle) == pytest.approx(math.sqrt(600 * 2000), rel=1e-9)
    assert lengths.mean == pytest.approx(mean_of(lengths), rel=5e-3)


def test_stated_mean_bends_the_lower_half() -> None:
    """With a mean, the curve below the median is chosen so that the whole has it."""
    lengths = Lengths.quantiles(QUANTILES, 1050.0)

    assert lengths.mean == 1050.0
    assert mean_of(lengths) == pytest.approx(1050.0, rel=5e-3)
    assert lengths.quantile(0.95) == pytest.approx(3000.0)


def test_constants_are_exact() -> None:
    """No rounding for lengths that do not vary."""
    lengths = Lengths.constant(100)

    assert lengths.quantile(0.3) == 100
    assert lengths.share_above(100) == 0.0
    assert lengths.share_above(99.9) == 1.0


def test_truncated_share_is_one_minus_the_distribution() -> None:
    """At a quantile u, a share 1 - u is longer."""
    for lengths in (Lengths.lognormal(1155, 4083), Lengths.quantiles(QUANTILES)):
        for u in (0.05, 0.5, 0.8, 0.92, 0.97, 0.999):
            assert truncated_share(lengths, lengths.quantile(u)) == pytest.approx(1 - u, abs=1e-9)


def test_joint_truncation_agrees_with_sampling() -> None:
    """Two lognormals of mean 1155 and p95 4083, cut at 8000 tokens.

    Two million samples (seed 0) gave a share of 0.03741 and means of 1078.25 and 1036.42.
    """
    lengths = Lengths.lognormal(1155, 4083)

    cut = joint_truncation(lengths, lengths, 8000)

    assert cut.share == pytest.approx(0.03741, rel=0.01)
    assert cut.mean_input_tokens == pytest.approx(1078.25, rel=0.003)
    assert cut.mean_output_tokens == pytest.approx(1036.42, rel=0.003)


def test_joint_truncation_of_constants() -> None:
    """Exactly at the limit nothing is cut; one token below, the output loses one."""
    prompt, answer = Lengths.constant(100), Lengths.constant(28)

    assert joint_truncation(prompt, answer, 128).share == 0.0
    cut = joint_truncation(prompt, answer, 127)
    assert cut.share == pytest.approx(1.0, rel=1e-6)
    assert cut.mean_input_tokens == pytest.approx(100)
    assert cut.mean_output_tokens == pytest.approx(27)


lengths_strategy = st.one_of(
    st.builds(Lengths.constant, st.floats(1, 1e6)),
    st.builds(lambda mean, ratio: Lengths.lognormal(mean, mean * ratio), st.floats(1, 1e6), st.floats(1, 3.86)),
    st.lists(st.floats(1, 1e7), min_size=4, max_size=4).map(
        lambda values: Lengths.quantiles(dict(zip(QUANTILES, sorted(values), strict=True)))
    ),
)


@settings(derandomize=True, max_examples=150, deadline=None)
@given(lengths_strategy, lengths_strategy, st.floats(2, 1e7))
def test_distributions_behave(prompt: Lengths, answer: Lengths, limit: float) -> None:
    """Quantiles rise and are finite, shares fall with the limit, and cutting never lengthens."""
    steps = [prompt.quantile(u) for u in (0.001, 0.1, 0.5, 0.7, 0.9, 0.95, 0.99, 0.9999)]
    assert all(low <= high * (1 + 1e-12) for low, high in pairwise(steps))
    assert math.isfinite(steps[-1])
    assert steps[0] >= 1.0
    assert math.isfinite(prompt.mean)
    assert 0.0 <= prompt.share_above(limit * 2) <= prompt.share_above(limit) <= 1.0
    cut = joint_truncation(prompt, answer, limit)
    assert -1e-12 <= cut.share <= 1 + 1e-6
    assert 1.0 <= cut.mean_input_tokens <= max(1.0, prompt.mean) + 1e-6
    assert 1.0 <= cut.mean_output_tokens <= max(1.0, answer.mean) + 1e-6
    if is_surely_within(prompt, answer, limit, 0.01):
        assert joint_share_above(prompt, answer, limit) <= 0.0101
