"""Certificates of plans of several periods: models, workloads and pools under the names that the spec and the plan give them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from planner.candidates.periods import InPeriod
from planner.plan.pools import LoadedCandidate, pool_shape
from planner.plan.replayed import Certificate, PoolReplay, Tightening, TraceUse
from planner.plan.schema import Plan
from planner.simulate.fleet import Settings


def in_periods(settings: Settings, parts: Sequence[InPeriod]) -> Settings:
    """Return settings whose traces are those of the copies of their workloads in every period."""
    traces = {part.name(name): trace for part in parts for name, trace in settings.traces.items()}
    return replace(settings, traces=traces)


def named_as_planned(
    found: Certificate, parts: Sequence[InPeriod], pools: Sequence[LoadedCandidate], plan: Plan
) -> Certificate:
    """Return a certificate of `pools`, those of all periods, under the names of the `plan` that they are put together in."""
    names = _pool_names(parts, pools, plan)
    uses: dict[str, TraceUse] = {}
    for use in found.replayed.traces:
        base = _base(parts, use.workload)[0]
        uses.setdefault(base, use.model_copy(update={"workload": base}))
    replayed = found.replayed.model_copy(
        update={
            "pools": tuple(_pool(p, parts, names) for p in found.replayed.pools),
            "traces": tuple(uses.values()),
        }
    )
    steps = tuple(_step(s, parts) for s in found.tightened)
    return found.model_copy(update={"replayed": replayed, "tightened": steps})


def _base(parts: Sequence[InPeriod], name: str) -> tuple[str, str | None]:
    """Return what a model or workload is called in the spec, and its period; None where it is the same in all."""
    for part in parts:
        base = part.base(name)
        if base is not None:
            return base, None if base in part.steady else part.period.name
    return name, None


def _pool_names(parts: Sequence[InPeriod], pools: Sequence[LoadedCandidate], plan: Plan) -> dict[str, str]:
    """Return the pool of the plan that each pool of a period is part of: the first of the same kind that is free then."""
    names: dict[str, str] = {}
    taken: set[tuple[str, str | None]] = set()
    for candidate, load in pools:
        model, period = _base(parts, candidate.shape.model)
        alike = (
            p.name
            for p in plan.pools
            if (p.model, pool_shape(p), p.max_num_seqs, p.spot)
            == (model, candidate.shape.name, candidate.max_num_seqs, candidate.domain.spot)
            and (p.name, period) not in taken
        )
        names[load.name] = next(alike, model)
        taken.add((names[load.name], period))
    return names


def _pool(pool: PoolReplay, parts: Sequence[InPeriod], names: Mapping[str, str]) -> PoolReplay:
    model, period = _base(parts, pool.model)
    workloads = tuple(w.model_copy(update={"name": _base(parts, w.name)[0]}) for w in pool.workloads)
    return pool.model_copy(update={"name": names[pool.name], "model": model, "period": period, "workloads": workloads})


def _step(step: Tightening, parts: Sequence[InPeriod]) -> Tightening:
    """Name a pool of a fleet that was given up by its model and period: the plan does not have it."""
    pool, failed = step.pool, list(step.failed)
    for part in parts:
        copy = re.compile(rf"@{re.escape(part.period.name)}\b")
        if copy.search(pool):
            pool = f"{copy.sub('', pool)} in {part.period.name}"
        failed = [copy.sub("", text) for text in failed]
    return step.model_copy(update={"pool": pool, "failed": tuple(failed)})
