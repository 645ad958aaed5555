"""Hours put together into periods: least demand added, time zones, constant demand."""

from __future__ import annotations

from itertools import combinations, pairwise

import numpy as np
import pytest
from planned import spec_of

from planner.candidates.hours import clustered, hour_assumptions, periods_of
from planner.catalog import Catalog

PROFILE = (1.2, 0.9, 0.7, 0.6, 0.6, 0.8, 1.5, 2.6, 4.1, 5.2, 5.8, 5.9, 5.4, 5.6, 6.0, 5.9, 5.3, 4.4, 3.6, 3.1, 2.7, 2.3, 1.9, 1.5)  # fmt: skip

SPEC = """\
version: 1
fleet: hours
models:
  chat: {use: llama-3.1-8b-instruct, max_model_len: 8k}
workloads:
WORKLOADS
supply:
  offers:
    - {name: cloud, provider: aws, gpus: [L40S], regions: [us-east-1]}
planning: {periods: PERIODS, hours_per_month: 720}
"""
WORKLOAD = "  {name}: {{model: chat, traffic: {{{demand}, input_tokens: 800, output_tokens: {output}}}}}\n"


def periods(catalog: Catalog, count: int, **demands: str) -> list[tuple[float, dict[str, float]]]:
    """Return hours per month and demand of the periods of a spec with these workloads."""
    workloads = "".join(WORKLOAD.format(name=name, demand=demand, output=200) for name, demand in demands.items())
    text = SPEC.replace("WORKLOADS\n", workloads).replace("PERIODS", str(count))
    return [(p.hours_per_month, dict(p.requests_per_s)) for p in periods_of(spec_of(text, catalog))]


def planned(demand: np.ndarray, groups: list[list[int]], weights: np.ndarray) -> float:
    return sum(len(group) * float(demand[group].max(axis=0) @ weights) for group in groups)


def least(values: list[float], most: int) -> float:
    """Return the least planned demand of one workload, by trying every way to cut its sorted hours."""
    ordered = sorted(values, reverse=True)
    ways = [[0, *cuts, len(ordered)] for count in range(most) for cuts in combinations(range(1, len(ordered)), count)]
    return min(sum(ordered[a] * (b - a) for a, b in pairwise(way)) for way in ways)


@pytest.mark.parametrize("most", [1, 2, 3, 4])
@pytest.mark.parametrize("seed", range(4))
def test_one_workload_is_cut_at_the_optimum(most: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    demand = rng.lognormal(0.0, 1.0, 24).round(1)[:, None] if seed else np.array(PROFILE)[:, None]
    groups = clustered(demand, np.ones(1), most)
    assert sorted(h for group in groups for h in group) == list(range(24))
    assert len(groups) <= most
    assert planned(demand, groups, np.ones(1)) == pytest.approx(least(demand[:, 0].tolist(), most))


@pytest.mark.parametrize("seed", range(6))
def test_more_periods_never_add_demand(seed: int) -> None:
    rng = np.random.default_rng(seed)
    demand, weights = rng.lognormal(0.0, 1.0, (24, 3)), rng.uniform(0.5, 2.0, 3)
    costs = [planned(demand, clustered(demand, weights, most), weights) for most in (1, 2, 4, 24)]
    assert all(more >= fewer for more, fewer in pairwise(costs))
    assert costs[-1] == pytest.approx(float((demand @ weights).sum()))


def test_days_and_nights_that_differ_by_workload_are_told_apart() -> None:
    day = np.array([3.0] * 12 + [1.0] * 12)
    groups = clustered(np.stack([day, day[::-1]], axis=1), np.ones(2), 2)
    assert sorted(map(tuple, groups)) == [tuple(range(12)), tuple(range(12, 24))]


def test_the_peak_comes_first_and_hours_add_up(catalog: Catalog) -> None:
    found = periods(catalog, 4, ask=f"hourly: {list(PROFILE)}")
    rates = [rates["ask"] for _, rates in found]
    assert rates == sorted(rates, reverse=True)
    assert rates[0] == max(PROFILE)
    assert sum(hours for hours, _ in found) == pytest.approx(720.0)


def test_what_the_hours_add_is_said(catalog: Catalog) -> None:
    demand = f"hourly: {[6.0] * 6 + [2.0] * 6 + [1.0] * 12}"
    text = SPEC.replace("WORKLOADS\n", WORKLOAD.format(name="ask", demand=demand, output=200))
    said = {}
    for count in (1, 2, 3):
        spec = spec_of(text.replace("PERIODS", str(count)), catalog)
        (assumption,) = hour_assumptions(spec, periods_of(spec))
        assert assumption.key == "workloads.ask.traffic.hourly"
        assert assumption.source == f"planning.periods: {count}"
        said[count] = assumption.value
    assert said == {
        1: "planned at its peak of 6 req/s, all hours: 140 % more requests than its hours have",
        2: "planned at its highest hour in each of 2 periods: 20 % more requests than its hours have",
        3: "planned at its highest hour in each of 3 periods: 0 % more requests than its hours have",
    }


def test_constant_demand_is_one_period(catalog: Catalog) -> None:
    found = periods(catalog, 4, ask=f"hourly: {[2.0] * 24}", batch="rate: 3 req/s")
    assert found == [(720.0, {"ask": 2.0, "batch": 3.0})]


def test_a_day_repeats_over_a_week(catalog: Catalog) -> None:
    week = [1.0] * 120 + [4.0] * 48
    found = periods(catalog, 24, ask=f"hourly: {week}", batch=f"hourly: {[1.0] * 12 + [2.0] * 12}")
    shares = {(rates["ask"], rates["batch"]): hours for hours, rates in found}
    assert shares == pytest.approx(
        {(4.0, 2.0): 720 / 7, (4.0, 1.0): 720 / 7, (1.0, 2.0): 1800 / 7, (1.0, 1.0): 1800 / 7}
    )


def test_hours_meet_by_their_time_zones(catalog: Catalog) -> None:
    here = f"hourly: {[9.0] + [1.0] * 23}, timezone: UTC"
    there = f"hourly: {[1.0] * 9 + [9.0] + [1.0] * 14}, timezone: Asia/Tokyo"
    assert [rates for _, rates in periods(catalog, 4, ask=here, batch=there)] == [
        {"ask": 9.0, "batch": 9.0},
        {"ask": 1.0, "batch": 1.0},
    ]


def test_of_two_hours_that_meet_in_one_the_higher_counts(catalog: Catalog) -> None:
    here = f"hourly: {[1.0] * 24}, timezone: UTC"
    there = f"hourly: {[9.0] + [1.0] * 23}, timezone: Asia/Kolkata"
    found = periods(catalog, 4, ask=here, batch=there)
    assert [(round(hours), rates["batch"]) for hours, rates in found] == [(60, 9.0), (660, 1.0)]
