"""Ask workers whether scenarios can be served on given nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from planner.robust.plan import Holding, Nodes, Undecided
from planner.robust.scenarios import Case
from planner.sweep.executor import Executor
from planner.sweep.row import Row
from planner.sweep.work import Job


def holding_by(opened: Executor, job: Job) -> Holding:
    """Return what asks the workers of an executor, each scenario by itself; what holds has an audited plan there.

    Raises, when asked, `ExecutorError` where nothing can be run any more, and `Undecided` where a worker fails.
    """

    def holding(nodes: Nodes, cases: Sequence[Case]) -> Mapping[int, bool]:
        names = {case.scenario.number: case.name for case in cases}
        found: dict[int, bool] = {}
        for answer in opened.answers(replace(job, nodes=nodes), [case.scenario for case in cases]):
            row = Row.model_validate_json(answer.line)
            if row.usd_per_month is None and row.status != "infeasible":
                raise Undecided(f"{names[answer.scenario]}: {row.reason or row.status}")
            found[answer.scenario] = row.usd_per_month is not None
        return found

    return holding
