"""Put the hours of a day or a week together into few periods: what a fleet is planned for when demand is hourly."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from planner.candidates.types import Array, Assumption
from planner.spec import FleetSpec, TrafficSpec

PEAK = "peak"
SECONDS_PER_HOUR = 3600.0
ANY_DAY = date(2026, 1, 1)  # of a spec without a date
LEAST_GAIN = 1e-12  # relative; sums in another order differ by this much
Group = tuple[int, ...]
"""Levels of demand, by number, that one period holds."""


@dataclass(frozen=True)
class Period:
    """Hours that are planned as one: `requests_per_s` is the highest demand of each workload in any of them.

    `share` is that of all hours; `mean_requests_per_s` is the mean demand of the hours.
    """

    name: str
    hours_per_month: float
    share: float
    requests_per_s: Mapping[str, float]
    mean_requests_per_s: Mapping[str, float]


@dataclass(frozen=True)
class Hours:
    """The hours of a day or a week: requests/s of each workload, and the name of the period that each hour is planned in."""

    requests_per_s: Mapping[str, tuple[float, ...]]
    periods: tuple[str, ...]


def periods_of(spec: FleetSpec) -> tuple[Period, ...]:
    """Return the periods of a spec, at most `planning.periods`, the one of the highest load first.

    Hours go together such that demand planned for beyond that of each hour is least, workloads weighted by their tokens.
    """
    names = sorted(spec.workloads)
    demand, groups = _grouped(spec, names)
    found: list[Period] = []
    for name, group in groups.items():
        share = len(group) / len(demand)
        found.append(
            Period(
                name=name,
                hours_per_month=spec.planning.hours_per_month * share,
                share=share,
                requests_per_s=dict(zip(names, demand[group, :].max(axis=0).tolist(), strict=True)),
                mean_requests_per_s=dict(zip(names, demand[group, :].mean(axis=0).tolist(), strict=True)),
            )
        )
    return tuple(found)


def hours_of(spec: FleetSpec) -> Hours:
    """Return the hours that the periods of a spec are made of, from midnight; a single one where no demand is hourly."""
    names = sorted(spec.workloads)
    demand, groups = _grouped(spec, names)
    period_of = {hour: name for name, group in groups.items() for hour in group}
    rates = dict(zip(names, (tuple(column) for column in demand.T.tolist()), strict=True))
    return Hours(rates, tuple(period_of[hour] for hour in range(len(demand))))


def _grouped(spec: FleetSpec, names: Sequence[str]) -> tuple[Array, dict[str, list[int]]]:
    """Return the demand, [hour, workload], and the hours of each period by name, the highest load first."""
    demand = _hourly(spec, names)
    tokens = np.array([_tokens(spec.workloads[name].traffic) for name in names])
    groups = clustered(demand, tokens, spec.planning.periods)
    highest = [demand[group, :].max(axis=0) for group in groups]
    order = sorted(range(len(groups)), key=lambda i: (-float(highest[i] @ tokens), groups[i]))
    return demand, {PEAK if number == 1 else f"p{number}": groups[i] for number, i in enumerate(order, 1)}


def clustered(demand: Array, weights: Array, most: int) -> list[list[int]]:
    """Return at most so many groups of hours with the least demand planned beyond that of each hour.

    `demand` is [hour, workload]. Of one workload this is the optimum. Of several, groups that follow each other in load are
    the start, and hours then change their group while that helps.
    """
    levels, level_of = np.unique(-demand, axis=0, return_inverse=True)
    levels = -levels
    order = np.argsort(-(levels @ weights), kind="stable")
    levels, place = levels[order], np.argsort(order)
    hours = np.bincount(place[level_of.ravel()], minlength=len(levels)).astype(float)
    groups = _moved(levels, hours, weights, _consecutive(levels, hours, weights, most))
    number = {level: i for i, group in enumerate(groups) for level in group}
    found: list[list[int]] = [[] for _ in groups]
    for hour, level in enumerate(place[level_of.ravel()].tolist()):
        found[number[level]].append(hour)
    return found


def _consecutive(levels: Array, hours: Array, weights: Array, most: int) -> list[Group]:
    """Cut levels, the highest load first, into at most `most` runs of the least planned demand, by dynamic programming."""
    count = len(levels)
    cost = np.full((count, count + 1), np.inf)
    for start in range(count):
        highest = np.maximum.accumulate(levels[start:], axis=0) @ weights
        cost[start, start + 1 :] = highest * np.cumsum(hours[start:])
    least = np.full(count + 1, np.inf)
    least[0] = 0.0
    cuts: list[NDArray[np.intp]] = []
    for _ in range(min(most, count)):
        totals = least[:count, None] + cost
        cuts.append(totals.argmin(axis=0))
        least = totals.min(axis=0)
    groups: list[Group] = []
    end = count
    for cut in reversed(cuts):
        start = int(cut[end])
        groups.append(tuple(range(start, end)))
        end = start
    return groups[::-1]


def _moved(levels: Array, hours: Array, weights: Array, groups: Sequence[Group]) -> list[Group]:
    """Move levels between groups while that lowers the planned demand, the best move first."""
    now = list(groups)

    def planned(group: Group) -> float:
        index = list(group)
        return float(hours[index].sum() * (levels[index].max(axis=0) @ weights)) if group else 0.0

    while len(now) > 1 and levels.shape[1] > 1:
        costs = [planned(group) for group in now]
        best = (LEAST_GAIN * sum(costs), now)
        for source, target in ((a, b) for a in range(len(now)) for b in range(len(now)) if a != b):
            for level in now[source]:
                changed = list(now)
                changed[source] = tuple(x for x in now[source] if x != level)
                changed[target] = tuple(sorted((*now[target], level)))
                gain = sum(costs[i] - planned(changed[i]) for i in (source, target))
                if gain > best[0]:
                    best = (gain, changed)
        if best[1] is now:
            break
        now = [group for group in best[1] if group]
    return now


def _hourly(spec: FleetSpec, names: Sequence[str]) -> Array:
    """Return the demand of all workloads in requests/s, [hour, workload]: of a week where one of them is given by the week."""
    traffic = [spec.workloads[name].traffic for name in names]
    zones = {t.timezone for t in traffic if t.hourly is not None}
    day = spec.planning.as_of or ANY_DAY
    rows = [_in_one_zone(t, day) if len(zones) > 1 else t.hourly or (t.peak_requests_per_s(),) for t in traffic]
    length = max((len(row) for row in rows if len(row) > 1), default=1)
    return np.array([np.tile(row, length // len(row)) for row in rows]).T


def _in_one_zone(traffic: TrafficSpec, day: date) -> tuple[float, ...]:
    """Return hourly rates from midnight UTC, by the offset of that day; of two hours that meet in one, the higher counts."""
    rates = traffic.hourly
    if rates is None:
        return (traffic.peak_requests_per_s(),)
    offset = datetime.combine(day, time(12), ZoneInfo(traffic.timezone)).utcoffset()
    ahead = offset.total_seconds() / SECONDS_PER_HOUR if offset is not None else 0.0
    first, last = math.floor(ahead), math.ceil(ahead)
    return tuple(max(rates[(h + first) % len(rates)], rates[(h + last) % len(rates)]) for h in range(len(rates)))


def _tokens(traffic: TrafficSpec) -> float:
    return traffic.input_tokens.lengths.mean + traffic.output_tokens.lengths.mean


def hour_assumptions(spec: FleetSpec, periods: Sequence[Period]) -> list[Assumption]:
    """Say of every workload with hourly demand how its hours are planned, and what that adds."""
    found: list[Assumption] = []
    for name, workload in sorted(spec.workloads.items()):
        if workload.traffic.hourly is None:
            continue
        more = f"{_added_share(periods, name) * 100:.3g} % more requests than its hours have"
        if len(periods) == 1:
            value = f"planned at its peak of {workload.traffic.peak_requests_per_s():g} req/s, all hours: {more}"
        else:
            value = f"planned at its highest hour in each of {len(periods)} periods: {more}"
        found.append(
            Assumption(f"workloads.{name}.traffic.hourly", value, f"planning.periods: {spec.planning.periods}")
        )
    return found


def _added_share(periods: Sequence[Period], workload: str) -> float:
    """Return what is planned of a workload beyond its hours, as a share of them."""
    planned = sum(p.share * p.requests_per_s[workload] for p in periods)
    asked = sum(p.share * p.mean_requests_per_s[workload] for p in periods)
    return planned / asked - 1.0
