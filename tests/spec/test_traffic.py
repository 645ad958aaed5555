"""Demand and lengths of a workload."""

from __future__ import annotations

import pytest
from small_specs import codes, loaded, workload_of

LENGTHS = "input_tokens: 1000, output_tokens: 200"


@pytest.mark.parametrize(
    ("demand", "peak", "mean"),
    [
        ("rate: 12 req/s", 12.0, None),
        ("rate: {peak: 12 req/s, mean: 5 req/s}", 12.0, 5.0),
        ("rate: 720 req/min", 12.0, None),
        ("requests_per_day: 864k", 10.0, 10.0),
        ("tokens_per_day: {input: 86.4M, output: 17.28M}", 1.0, 1.0),
        (f"hourly: [{', '.join(['1'] * 23)}, 25]", 25.0, 2.0),
        (f"hourly: [{', '.join(['2'] * 168)}], timezone: Europe/Paris", 2.0, 2.0),
    ],
)
def test_demand(demand: str, peak: float, mean: float | None) -> None:
    """Peak and mean in requests per second, whatever the form."""
    traffic = workload_of(f"{demand}, {LENGTHS}").traffic

    assert traffic.peak_requests_per_s() == pytest.approx(peak)
    assert traffic.mean_requests_per_s() == (None if mean is None else pytest.approx(mean))
    assert traffic.is_even == ("day" in demand)


def test_larger_rate_of_tokens_per_day_is_used() -> None:
    """Within 5 % input and output may differ without a warning; the larger count is planned."""
    traffic = workload_of(f"tokens_per_day: {{input: 86.4M, output: 18M}}, {LENGTHS}").traffic

    assert traffic.daily_requests() == pytest.approx((86_400.0, 90_000.0))
    assert not traffic.daily_tokens_disagree()
    assert traffic.peak_requests_per_s() == pytest.approx(90_000 / 86_400)


def test_cached_share() -> None:
    """A shared prefix caches its tokens for the requests that hit; a plain share is taken as it is."""
    prefix = workload_of(f"rate: 1 req/s, {LENGTHS}, shared_prefix: {{tokens: 600, hit_rate: 80 %}}").traffic
    share = workload_of(f"rate: 1 req/s, {LENGTHS}, cached_input: 45 %").traffic

    assert prefix.cached_input_share() == pytest.approx(0.48)
    assert share.cached_input_share() == 0.45
    assert workload_of(f"rate: 1 req/s, {LENGTHS}").traffic.cached_input_share() == 0.0


@pytest.mark.parametrize(
    ("length", "mean", "p95"),
    [
        ("1000", 1000.0, 1000.0),
        ("12k", 12_000.0, 12_000.0),
        ("{constant: 5}", 5.0, 5.0),
        ("{mean: 1155, p95: 4083}", 1155.0, 4083.0),
        ("{p50: 600, p90: 2000, p95: 3000, p99: 9000, mean: 1000}", 1000.0, 3000.0),
    ],
)
def test_length_forms(length: str, mean: float, p95: float) -> None:
    """All forms state their mean and 95th percentile exactly."""
    spec = workload_of(f"rate: 1 req/s, input_tokens: {length}, output_tokens: 200").traffic.input_tokens

    assert (spec.mean, spec.p95) == (mean, p95)
    assert spec.quantile(0.95) == pytest.approx(p95)


def test_mistakes_inside_short_forms_point_at_the_scalar() -> None:
    """`rate: 2 rps` stands for a mapping with a peak; the place is that of the unit."""
    result = loaded(("rate: 2 req/s", "rate: 2 rps"), ("output_tokens: 200", "output_tokens: many"))

    assert codes(result) == [("spec/unknown-unit", 8, 23), ("spec/not-a-quantity", 8, 63)]
