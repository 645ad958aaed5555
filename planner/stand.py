"""Plan a fleet that runs as it is: no other is searched for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import date

from planner.audited import planned
from planner.candidates.periods import MARK
from planner.choose import Best
from planner.explain.causes import cause_of
from planner.explain.trials import unserved
from planner.ground import Ground, as_planned, whole_of
from planner.pipeline import Options, Prepared, ground_of, judged, today
from planner.plan.build import Context
from planner.plan.pools import pool_shape
from planner.plan.schema import Digests, Plan
from planner.prefer.broken import Broken
from planner.prefer.reasons import in_words_of_periods
from planner.prefer.settings import other_settings
from planner.prefer.standing import Terms, bases, standing


@dataclass(frozen=True)
class Stood:
    """How a fleet that runs fares on the terms of `as_of`: its plan as it is, None where it breaks something.

    `rerouted` are the models whose traffic must be shared out otherwise than before for it to hold. `predicted_s` are latencies
    of a fleet that breaks something, by (workload, SLO key): the worst of any pool and period. `usd_per_month` is what its nodes
    cost at the prices of the day, None where some are not for sale any more. `digests` are those of what it was held against.
    """

    as_of: date
    digests: Digests
    usd_per_month: float | None
    plan: Plan | None
    broken: tuple[Broken, ...] = ()
    rerouted: tuple[str, ...] = ()
    predicted_s: Mapping[tuple[str, str], float] = field(default_factory=dict)


def stand(prepared: Prepared, options: Options) -> Stood:
    """Plan the fleet that runs, that of `options.prefer` or what the spec says is deployed, as it is, on the demand of today.

    Raises:
        DiagnosticError: the catalog or the calibration is incomplete, or nothing of that plan is of this spec.
        ValueError: nothing runs.
    """
    ground = ground_of(today(prepared), options)
    if ground.earlier is None:
        raise ValueError("nothing runs: there is neither a plan nor anything deployed")
    whole = whole_of(ground)
    earlier = as_planned(ground.earlier, whole)
    spec, table = (ground.spec, ground.table) if whole is None else (whole.spec, whole.table)
    found = standing(earlier, Terms(spec, ground.catalog, table, ground.knowledge.constants, whole))
    usd_per_month = None if found.usd_per_h is None else found.usd_per_h * spec.planning.hours_per_month
    stood = Stood(ground.context.as_of, ground.context.digests, usd_per_month, None)
    broken = (*_settings(ground, options), *_without_candidates(ground), *found.broken)
    if found.fleet is None or broken:
        named = tuple(dict.fromkeys(_by_period(b, ground.context) for b in broken))
        return replace(stood, broken=named, predicted_s=found.predicted_s)
    plan = planned(ground, found.whole, Best(found.fleet, "unproven", ()), found.fleet)
    return replace(stood, plan=judged(plan, ground, options), rerouted=bases(found.rerouted, whole))


def _settings(ground: Ground, options: Options) -> Iterator[Broken]:
    """Yield what the pools of a saved plan run with otherwise than the spec has it."""
    if options.prefer is None:
        return
    known = {(c.shape.model, c.shape.name): c.shape for c in ground.table.candidates}
    plan = options.prefer.plan
    shapes = {p.name: known[p.model, pool_shape(p)] for p in plan.pools if (p.model, pool_shape(p)) in known}
    yield from other_settings(plan, ground.table.models, shapes)


def _without_candidates(ground: Ground) -> Iterator[Broken]:
    for workload in unserved(ground.table):
        cause = cause_of(ground.spec, ground.table, workload, ground.catalog)
        yield Broken("supply", workload, cause.reasons[0])


def _by_period(broken: Broken, context: Context) -> Broken:
    """Return what is broken with its period told apart from what it is about."""
    periods = [p.name for p in context.periods] if len(context.periods) > 1 else []
    period = next((p for p in periods if broken.subject.endswith(f"{MARK}{p}")), "")
    return replace(
        broken,
        reason=in_words_of_periods(broken.reason, periods),
        subject=broken.subject.removesuffix(f"{MARK}{period}") if period else broken.subject,
        key=in_words_of_periods(broken.key, periods),
        period=period,
    )
