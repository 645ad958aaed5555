"""How much less traffic a workload may have for the limits of a spec to leave a fleet."""

from __future__ import annotations

import math
from collections.abc import Iterator

from planner.explain.change import Change, with_value
from planner.explain.trials import Trials
from planner.plan.growth import scaled
from planner.plan.schema import Plan
from planner.program.data import FleetProblem
from planner.program.index import row_needs
from planner.solve.outcome import Solution, Solved, Unproven
from planner.spec import FleetSpec

LEAST_SHARE = 1.0 / 16.0
BISECTIONS = 4
MOST_WORKLOADS = 3
SAFE_SHARE = 0.98  # pools are rated again at their mix: what the program just carries may not hold there


def less_traffic(
    spec: FleetSpec, problem: FleetProblem, unlimited: Solution, trials: Trials
) -> Iterator[tuple[Change, Plan]]:
    """Yield the largest rate found with which the limits leave a fleet, and its plan, for the largest workloads.

    `unlimited` is a fleet without limits: it tells which workloads take most GPUs.
    """
    for name in _largest(spec, problem, unlimited):
        rate = spec.workloads[name].traffic.rate
        if rate is None or trials.exhausted or not _feasible(problem, name, LEAST_SHARE, trials):
            continue
        low, high = LEAST_SHARE, 1.0
        for _ in range(BISECTIONS):
            middle = (low + high) / 2.0
            low, high = (middle, high) if _feasible(problem, name, middle, trials) else (low, middle)
        fewer = _rounded_down(rate.peak * low * SAFE_SHARE)
        change = _changed(spec, name, fewer)
        plan = trials.plan(change.spec)
        if plan is not None:
            yield change, plan


def _largest(spec: FleetSpec, problem: FleetProblem, unlimited: Solution) -> list[str]:
    """Return the workloads with a rate that take most GPUs in a fleet."""
    columns = {c.name: c for c in problem.columns}
    gpus: dict[str, float] = {}
    for (workload, name), rate in unlimited.rates.items():
        if spec.workloads[workload].traffic.rate is not None:
            column = columns[name]
            needed = rate * max(row_needs(column, column.services[workload])) * column.gpus
            gpus[workload] = gpus.get(workload, 0.0) + needed
    return sorted(gpus, key=lambda w: (-gpus[w], w))[:MOST_WORKLOADS]


def _feasible(problem: FleetProblem, workload: str, share: float, trials: Trials) -> bool:
    return isinstance(trials.solve(scaled(problem, {workload: share})), Solved | Unproven)


def _changed(spec: FleetSpec, workload: str, rate: float) -> Change:
    own = spec.workloads[workload].traffic.rate
    assert own is not None
    key = f"workloads.{workload}.traffic.rate"
    mean = own.mean
    changed = with_value(spec, ("workloads", workload, "traffic", "rate", "peak"), rate)
    if mean is None:
        return Change(key, _rate(own.peak), _rate(rate), changed)
    lower = min(mean, rate)
    changed = with_value(changed, ("workloads", workload, "traffic", "rate", "mean"), lower)
    now, to = (f"{{peak: {_rate(peak)}, mean: {_rate(m)}}}" for peak, m in ((own.peak, mean), (rate, lower)))
    return Change(key, now, to, changed)


def _rate(requests_per_s: float) -> str:
    return f"{requests_per_s:.6g} req/s"


def _rounded_down(value: float) -> float:
    unit = 10.0 ** (math.floor(math.log10(value)) - 2)
    return math.floor(value / unit + 1e-9) * unit
