"""How much less traffic a workload may have for the limits of a spec to leave a fleet."""

from __future__ import annotations

import math
from collections.abc import Iterator

from planner.explain.change import Change, Place, change_at
from planner.explain.programs import Found
from planner.explain.trials import Trials, Variant
from planner.plan.growth import scaled
from planner.plan.schema import Plan
from planner.program.data import FleetProblem
from planner.program.index import row_needs
from planner.solve.outcome import Solved, Unproven
from planner.spec import FleetSpec

LEAST_SHARE = 1.0 / 16.0
BISECTIONS = 4
MOST_WORKLOADS = 3
SAFE_SHARE = 0.98  # pools are rated again at their mix: what the program just carries may not hold there


def less_traffic(at: Variant, problem: FleetProblem, free: Found, trials: Trials) -> Iterator[tuple[Variant, Plan]]:
    """Yield the spec with the largest rate found with which the limits leave a fleet, and its plan, for large workloads.

    `free` is a fleet without limits: it tells which workloads take most GPUs.
    """
    spec = at.spec
    for name in _largest(spec, free):
        rate = spec.workloads[name].traffic.rate
        if rate is None or trials.exhausted or not _feasible(problem, name, LEAST_SHARE, trials):
            continue
        low, high = LEAST_SHARE, 1.0
        for _ in range(BISECTIONS):
            middle = (low + high) / 2.0
            low, high = (middle, high) if _feasible(problem, name, middle, trials) else (low, middle)
        fewer = _rounded_down(rate.peak * low * SAFE_SHARE)
        variant = trials.changed(at, _lowered(spec, name, fewer))
        plan = trials.plan(variant.spec) if variant is not None else None
        if variant is not None and plan is not None:
            yield variant, plan


def _largest(spec: FleetSpec, free: Found) -> list[str]:
    """Return the workloads with a rate that take most GPUs in a fleet."""
    gpus: dict[str, float] = {}
    for (workload, name), rate in free.solution.rates.items():
        if spec.workloads[workload].traffic.rate is not None:
            column = free.problem.column(name)
            needed = rate * max(row_needs(column, column.services[workload])) * column.gpus
            gpus[workload] = gpus.get(workload, 0.0) + needed
    return sorted(gpus, key=lambda w: (-gpus[w], w))[:MOST_WORKLOADS]


def _feasible(problem: FleetProblem, workload: str, share: float, trials: Trials) -> bool:
    return isinstance(trials.solve(scaled(problem, {workload: share})), Solved | Unproven)


def _lowered(spec: FleetSpec, workload: str, peak: float) -> Change:
    """Return the change of a rate to a lower peak; its mean is never above that."""
    own = spec.workloads[workload].traffic.rate
    assert own is not None
    place: Place = ("workloads", workload, "traffic", "rate")
    if own.mean is None:
        return change_at(spec, place, _rate(own.peak), _rate(peak), own.model_copy(update={"peak": peak}))
    mean = min(own.mean, peak)
    now, to = (f"{{peak: {_rate(p)}, mean: {_rate(m)}}}" for p, m in ((own.peak, own.mean), (peak, mean)))
    return change_at(spec, place, now, to, own.model_copy(update={"peak": peak, "mean": mean}))


def _rate(requests_per_s: float) -> str:
    return f"{requests_per_s:.6g} req/s"


def _rounded_down(value: float) -> float:
    unit = 10.0 ** (math.floor(math.log10(value)) - 2)
    return math.floor(value / unit + 1e-9) * unit
