"""What a worker does: plan one scenario. It is sent texts and small values, and keeps what scenarios have in common."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date
from functools import lru_cache
from threading import Lock

from planner import __version__
from planner.candidates.ratings import Ratings
from planner.candidates.references import open_catalog
from planner.diagnostics import DiagnosticError
from planner.parallel import alone
from planner.pipeline import Options, make_plan, prepare
from planner.plan.io import dump, line_of
from planner.source import FilePath
from planner.spec import load_spec
from planner.sweep.base import Base, UnknownKeyError, digest_of, reason_of
from planner.sweep.row import Row, row_of
from planner.sweep.scenario import Scenario
from planner.units import UnitError

ANY_FLEET = 0.99  # a gap that any fleet is within
_ONE_AT_A_TIME = Lock()  # a worker with several threads plans in one of them: ratings are shared, and HiGHS has a core


class OtherWorkerError(RuntimeError):
    """A worker whose answers would be others: it has another release, or another catalog."""


@dataclass(frozen=True)
class Job:
    """What all scenarios of a sweep have in common.

    `file` is where the spec lies, `folder` the catalog of the command line. `catalog_digest` is also of models that the spec
    brings along. With `nodes`, by offer, scenarios are planned on no others, as far as to tell whether there is a fleet.
    """

    text: str
    path: str
    file: FilePath | None
    folder: FilePath | None
    catalog_digest: str
    as_of: date | None = None
    gap: float | None = None
    with_plans: bool = False
    nodes: tuple[tuple[str, int], ...] | None = None
    release: str = __version__


@dataclass(frozen=True)
class Answer:
    """The line of the results for a scenario, by its number, and its plan as JSON where plans are asked for and there is one."""

    scenario: int
    line: str
    plan: str | None = None


def answer(job: Job, scenario: Scenario) -> Answer:
    """Plan a scenario. Whatever goes wrong with it alone is its answer. Raises `OtherWorkerError`."""
    with _ONE_AT_A_TIME, alone():
        found = bench(replace(job, nodes=None))
        try:
            return found.planned(scenario, job.nodes)
        except (DiagnosticError, UnknownKeyError, UnitError) as error:
            return _without_plan(scenario, "invalid", reason_of(error))
        except Exception as error:
            return _without_plan(scenario, "failed", f"{type(error).__name__}: {error}")


def lost(scenario: Scenario) -> Answer:
    """Return the answer for a scenario that no worker survived."""
    return _without_plan(scenario, "failed", "every worker that planned it died")


def _without_plan(scenario: Scenario, status: str, reason: str) -> Answer:
    row = {"scenario": scenario.number, "values": dict(scenario.values), "status": status, "reason": reason}
    return Answer(scenario.number, line_of(Row.model_validate(row)))


@lru_cache(maxsize=1)
def bench(job: Job) -> Bench:
    """Return what the scenarios of a sweep have in common, the same one as long as nothing else is swept here."""
    return Bench(job)


class Bench:
    """A sweep's spec and catalog, read once, with all that was rated so far. Raises `OtherWorkerError`."""

    def __init__(self, job: Job) -> None:
        if job.release != __version__:
            raise OtherWorkerError(f"a worker has release {__version__} of the planner, this is {job.release}")
        loaded = load_spec(job.text, job.path, job.file)
        catalog = open_catalog(loaded, job.folder)
        if digest_of(catalog) != job.catalog_digest:
            raise OtherWorkerError("a worker has another catalog: the same files must lie at the same place for all")
        self.base = Base(loaded, catalog, job.folder)
        self._options = Options(as_of=job.as_of, gap=job.gap, explains=False)
        self._with_plans = job.with_plans
        self._ratings = Ratings()

    def planned(self, scenario: Scenario, nodes: tuple[tuple[str, int], ...] | None = None) -> Answer:
        """Plan a scenario. Raises `DiagnosticError`, `UnknownKeyError` or `UnitError` where its values make no spec."""
        options = self._options
        if nodes is not None:
            options = replace(options, nodes=nodes, gap=ANY_FLEET, periods=1)
        plan = make_plan(prepare(*self.base.variant(scenario.values)), options, ratings=self._ratings)
        row = row_of(scenario.number, dict(scenario.values), plan)
        return Answer(
            scenario.number, line_of(row), dump(plan) if self._with_plans and plan.objective is not None else None
        )
