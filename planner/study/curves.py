"""Latency against load: what every limited percentile of a pool becomes as its traffic grows at the same mix."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from planner.candidates.types import CandidateTable
from planner.physics.constants import SpeedConstants
from planner.plan.assess import PoolLoad, assess_models, stable_factors

BELOW = tuple(i / 10 for i in range(1, 11))
"""Shares of the planned traffic that are shown up to it."""
STEPS_ABOVE = 10
MOST_ABOVE = 3.0
"""Multiple of the planned traffic that is shown at most."""
NEAR_SATURATION = 0.99
"""Share of the traffic at which queues grow without end."""


@dataclass(frozen=True)
class LimitCurve:
    """A limited percentile at each of the rates of its pool, in seconds; `metric` is such as `ttft_p95`.

    A value is None where queues grow without end: such a percentile has no end either.
    """

    workload: str
    metric: str
    limit_s: float
    seconds: tuple[float | None, ...]


@dataclass(frozen=True)
class PoolCurves:
    """A pool at several rates of all its traffic together, requests/s, its mix unchanged; `planned` is one of them."""

    pool: str
    planned: float
    rates: tuple[float, ...]
    curves: tuple[LimitCurve, ...]


def curves_of(table: CandidateTable, loads: Sequence[PoolLoad], constants: SpeedConstants) -> tuple[PoolCurves, ...]:
    """Return the curves of every pool, by name; pools none of whose workloads has a limit have none.

    Predictions are those of the plan: the closed form with the confidence factor, see `planner.plan.assess`.
    """
    limited = [load for load in loads if any(table.workloads[w].spec.slo for w in load.rates)]
    by_model = {
        m: [load for load in limited if load.shape.model == m] for m in sorted({x.shape.model for x in limited})
    }
    stable = {
        load.name: factor
        for model, own in by_model.items()
        for load, factor in zip(own, stable_factors(table.models[model], table.workloads, own, constants), strict=True)
    }
    factors = {name: _factors(factor) for name, factor in stable.items()}
    tried = {m: [_scaled(load, f) for load in own for f in factors[load.name]] for m, own in by_model.items()}
    rated = assess_models(table, tried, constants)
    found: list[PoolCurves] = []
    for model, own in by_model.items():
        states = iter(rated[model])
        for load in own:
            latency = [next(states).latency_s for _ in factors[load.name]]
            planned = sum(load.rates.values())
            borne = [f < stable[load.name] for f in factors[load.name]]
            curves = tuple(
                LimitCurve(
                    w,
                    metric,
                    table.workloads[w].spec.slo[metric],
                    tuple(each[w, metric] if is_borne else None for each, is_borne in zip(latency, borne, strict=True)),
                )
                for w, metric in sorted(latency[0])
            )
            found.append(PoolCurves(load.name, planned, tuple(planned * f for f in factors[load.name]), curves))
    return tuple(sorted(found, key=lambda each: each.pool))


def _factors(stable: float) -> tuple[float, ...]:
    """Return the multiples of the planned traffic to show: evenly up to it, then to where queues grow without end."""
    highest = min(NEAR_SATURATION * stable, MOST_ABOVE)
    above = (1.0 + (highest - 1.0) * i / STEPS_ABOVE for i in range(1, STEPS_ABOVE + 1))
    return (*BELOW, *above) if highest > 1.0 else BELOW


def _scaled(load: PoolLoad, factor: float) -> PoolLoad:
    return replace(load, rates={w: rate * factor for w, rate in load.rates.items()})
