"""Workloads as equally likely lengths: means kept, prefix hits taken off, what is too long cut."""

from __future__ import annotations

import numpy as np
import pytest
from planned import SMALL, spec_of

from planner.candidates.models import resolve_models
from planner.candidates.traffic import LENGTH_POINTS, length_points, resolve_workloads, workload_assumptions
from planner.candidates.types import ResolvedWorkload
from planner.catalog import Catalog
from planner.physics.lengths import Lengths

TRAFFIC = "rate: 20 req/s, input_tokens: {mean: 800, p95: 2000}, output_tokens: {mean: 200, p95: 450}"


def resolved(catalog: Catalog, traffic: str, *changes: tuple[str, str]) -> ResolvedWorkload:
    text = SMALL
    for old, new in ((TRAFFIC, traffic), *changes):
        assert old in text
        text = text.replace(old, new)
    spec = spec_of(text, catalog)
    return resolve_workloads(spec, resolve_models(spec, catalog))["assistant"]


def computed_mean(workload: ResolvedWorkload) -> float:
    return float(workload.prefill_tokens @ workload.prefill_weights)


@pytest.mark.parametrize(
    ("lengths", "rel"),
    [
        (Lengths.constant(1000.0), 1e-12),
        (Lengths.lognormal(800.0, 2000.0), 0.01),
        (Lengths.lognormal(12035.0, 39551.0), 0.03),
        (Lengths.quantiles({"p50": 600.0, "p90": 2000.0, "p95": 3000.0, "p99": 9000.0}), 0.05),
    ],
)
def test_points_keep_the_mean(lengths: Lengths, rel: float) -> None:
    points = length_points(lengths)
    assert points.size == LENGTH_POINTS
    assert (np.diff(points) >= 0.0).all()
    assert points.mean() == pytest.approx(lengths.mean, rel=rel)


def test_points_are_spread_like_the_distribution() -> None:
    lengths = Lengths.lognormal(800.0, 2000.0)
    points = length_points(lengths)
    shares = [(points <= lengths.quantile(u)).mean() for u in (0.25, 0.5, 0.75, 0.95)]
    assert shares == pytest.approx([0.25, 0.5, 0.75, 0.95], abs=1.0 / LENGTH_POINTS)


def test_no_length_is_below_one_token() -> None:
    assert length_points(Lengths.lognormal(1.2, 3.0)).min() == 1.0


def test_without_a_cache_every_prompt_token_is_computed(catalog: Catalog) -> None:
    found = resolved(catalog, "rate: 20 req/s, input_tokens: 1000, output_tokens: 100")
    assert computed_mean(found) == pytest.approx(1000.0)
    assert found.prefill_weights.sum() == pytest.approx(1.0)
    assert (found.mean_input_tokens, found.mean_output_tokens) == (1000.0, 100.0)


def test_prefix_hits_are_not_computed(catalog: Catalog) -> None:
    found = resolved(
        catalog, "rate: 20 req/s, input_tokens: 1000, output_tokens: 100, shared_prefix: {tokens: 600, hit_rate: 80 %}"
    )
    assert computed_mean(found) == pytest.approx(1000.0 - 0.8 * 600.0)
    assert set(found.prefill_tokens.tolist()) == {1000.0, 400.0}
    assert (found.shared_tokens, found.shared_hit_rate) == (600.0, 0.8)
    assert found.mean_input_tokens == 1000.0


def test_a_prompt_that_is_cached_whole_still_computes_a_token(catalog: Catalog) -> None:
    found = resolved(
        catalog,
        "rate: 20 req/s, input_tokens: {mean: 800, p95: 2000}, output_tokens: 100, shared_prefix: {tokens: 700, hit_rate: 100 %}",
    )
    hit = found.prefill_tokens[found.prefill_weights > 0.0]
    assert hit.min() == 1.0
    assert hit.max() == pytest.approx(found.input_tokens.max() - 700.0)


def test_a_cached_share_shortens_every_prompt(catalog: Catalog) -> None:
    found = resolved(catalog, "rate: 20 req/s, input_tokens: 1000, output_tokens: 100, cached_input: 45 %")
    assert computed_mean(found) == pytest.approx(550.0)
    assert found.shared_hit_rate == 0.0


@pytest.mark.parametrize("cache", ["shared_prefix: {tokens: 600, hit_rate: 80 %}", "cached_input: 45 %"])
def test_without_prefix_caching_nothing_is_cached(cache: str, catalog: Catalog) -> None:
    found = resolved(
        catalog,
        f"rate: 20 req/s, input_tokens: 1000, output_tokens: 100, {cache}",
        ("max_model_len: 8k}", "max_model_len: 8k, engine: {prefix_caching: false}}"),
    )
    assert computed_mean(found) == pytest.approx(1000.0)


def test_what_is_too_long_is_cut(catalog: Catalog) -> None:
    found = resolved(
        catalog, "rate: 20 req/s, input_tokens: {mean: 6000, p95: 14000}, output_tokens: {mean: 500, p95: 1200}"
    )
    assert found.input_tokens.max() <= 7999.0
    assert found.output_tokens.max() <= 8000.0
    assert found.output_tokens.min() >= 1.0
    assert 0.05 < found.truncated_share < 0.5


def test_what_fits_is_not_cut(catalog: Catalog) -> None:
    assert resolved(catalog, "rate: 20 req/s, input_tokens: 1000, output_tokens: 100").truncated_share == 0.0


@pytest.mark.parametrize(
    ("demand", "peak", "mean"),
    [
        ("rate: 12 req/s", 12.0, None),
        ("rate: {peak: 12 req/s, mean: 5 req/s}", 12.0, 5.0),
        ("requests_per_day: 86400", 1.0, 1.0),
        ("tokens_per_day: {input: 86.4M, output: 8.64M}", 1.0, 1.0),
        (f"hourly: [{', '.join(['1'] * 12 + ['3'] * 12)}]", 3.0, 2.0),
    ],
)
def test_demand(demand: str, peak: float, mean: float | None, catalog: Catalog) -> None:
    found = resolved(
        catalog,
        f"{demand}, input_tokens: 1000, output_tokens: 100",
        ("planning:", "reliability: {headroom: 10 %}\nplanning:"),
    )
    assert found.peak_requests_per_s == pytest.approx(peak)
    assert found.mean_requests_per_s == (None if mean is None else pytest.approx(mean))
    assert found.planned_requests_per_s == pytest.approx(1.1 * peak)


def test_what_is_assumed_about_traffic_is_said(catalog: Catalog) -> None:
    hourly = f"hourly: [{', '.join(['1'] * 23 + ['6'])}], input_tokens: {{mean: 6000, p95: 14000}}, output_tokens: 100"
    found = {a.key: a.value for a in workload_assumptions({"w": resolved(catalog, hourly)})}
    assert "are cut to max_model_len" in found["workloads.w.traffic.truncated"]
    assert "Poisson" in found["workloads.w.traffic.arrival_cv2"]


def test_what_is_said_is_not_assumed(catalog: Catalog) -> None:
    said = "rate: 1 req/s, input_tokens: 100, output_tokens: 100, arrival_cv2: 1"
    assert workload_assumptions({"w": resolved(catalog, said)}) == []
