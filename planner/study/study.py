"""Everything that is shown beyond a plan, put together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from planner.candidates.hours import Hours, hours_of
from planner.candidates.types import CandidateTable
from planner.catalog import Catalog
from planner.explain.sensitivity import Sensitivity
from planner.pipeline import Prepared, replayable, variants
from planner.plan.assess import PoolLoad
from planner.plan.schema import Plan
from planner.program.constraint import all_constraints
from planner.program.index import ProgramIndex
from planner.program.problem import fleet_problem, gpu_limits
from planner.simulate.planned import loads_of
from planner.spec import FleetSpec
from planner.study.alternatives import Considered, considered
from planner.study.curves import PoolCurves, curves_of
from planner.study.roofline import OperatingPoint, operating_points


@dataclass(frozen=True)
class Study:
    """What the spec and the catalog add to a plan.

    `hours` is None where no demand is hourly. `rows` counts the rows of each constraint before prices and routing add
    theirs; it is empty where hours are planned in several periods, whose program has copies of each. `sensitivities`
    are the changes that were planned anew, none where that was not asked for.
    """

    catalog_date: str
    curves: tuple[PoolCurves, ...]
    points: tuple[OperatingPoint, ...]
    considered: tuple[Considered, ...]
    hours: Hours | None
    rows: Mapping[str, int]
    sensitivities: tuple[Sensitivity, ...] = ()


def study_of(prepared: Prepared, plan: Plan, sensitivities: Sequence[Sensitivity] = ()) -> Study:
    """Return what a report shows beyond a plan of this spec. Raises `DiagnosticError` where a pool is no candidate of it."""
    spec, _ = variants(prepared, plan)
    table, constants = replayable(prepared, plan)
    loads = _loads(plan, table)
    hours = hours_of(spec)
    return Study(
        catalog_date=prepared.catalog.newest_price_date().isoformat(),
        curves=curves_of(table, loads, constants),
        points=operating_points(plan, {load.name: load.shape.device for load in loads}),
        considered=considered(plan, table),
        hours=hours if len(hours.periods) > 1 else None,
        rows=_rows(spec, table, prepared.catalog) if plan.demand_by_period is None else {},
        sensitivities=tuple(sensitivities),
    )


def _loads(plan: Plan, table: CandidateTable) -> list[PoolLoad]:
    """Return every pool at the traffic that its figures are of: in the period with most of its replicas."""
    by_period = {p.period: loads_of(plan, table, p.period) for p in plan.pools}
    period_of = {p.name: p.period for p in plan.pools}
    return [load for period, loads in sorted(by_period.items()) for load in loads if period_of[load.name] == period]


def _rows(spec: FleetSpec, table: CandidateTable, catalog: Catalog) -> dict[str, int]:
    """Return how many rows of each constraint the program of a spec has at the start, by name."""
    index = ProgramIndex(fleet_problem(spec, table, gpu_limits(spec, catalog)))
    return {c.name: sum(1 for _ in c.index(index)) for c in all_constraints()}
