"""Plan the scenarios of a sweep that are not finished yet, and the limits of a frontier."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from planner.pipeline import spec_digest
from planner.plan.io import loads, sha256
from planner.sweep.answer import Sweep
from planner.sweep.executor import executor
from planner.sweep.frontier import UNITS, Frontier, TradeError, steps_of, trade_of
from planner.sweep.results import Header, Results
from planner.sweep.row import Row
from planner.sweep.scenario import Definition, Mode, Scenario
from planner.sweep.work import Answer, Job, bench


def run(
    job: Job,
    scenarios: Sequence[Scenario],
    where: str,
    results: Results,
    plans: Path | None = None,
    finished: Callable[[], None] = lambda: None,
) -> tuple[Row, ...]:
    """Return the rows of all scenarios, sorted by number. `finished` is called after each that is planned now.

    `where` names the executor. In the folder `plans`, the plan of a scenario is saved before its row is.

    Raises:
        ExecutorError: nothing can be run, or not any more; what is finished is in the results.
        OSError: results or plans cannot be written.
    """
    todo = [scenario for scenario in scenarios if scenario.number not in results.rows]
    if todo:
        with executor(where) as opened:
            for answer in opened.answers(job, todo):
                if plans is not None:
                    _save(plans, answer)
                results.add(answer.line)
                finished()
    return tuple(results.rows[scenario.number] for scenario in scenarios)


def frontier(
    job: Job, trade: str, between: str | None, where: str, planned: Callable[[int], None] = lambda _count: None
) -> Frontier:
    """Return the steps of a trade. `planned` is told how many limits were planned so far.

    Raises:
        TradeError: there is no such trade, or a limit makes no spec.
        ExecutorError: nothing can be run, or not any more.
    """
    base, count = bench(job).base, 0
    assert base.loaded.spec is not None
    with executor(where) as opened:
        (now,) = opened.answers(replace(job, with_plans=True), [Scenario(0, ())])
        power_w = sum(node.power_w for node in loads(now.plan.encode(), "").nodes) if now.plan is not None else 0.0
        moved = trade_of(trade, base, Row.model_validate_json(now.line), power_w, between)

        def ask(limits: Sequence[float]) -> Mapping[float, Row]:
            nonlocal count
            asked = [Scenario(i, ((moved.key, moved.text_of(limit)),)) for i, limit in enumerate(limits)]
            rows: dict[float, Row] = {}
            for answer in opened.answers(job, asked):
                row = Row.model_validate_json(answer.line)
                if row.status in ("invalid", "failed"):
                    raise TradeError(f"{moved.key} at {moved.text_of(limits[answer.scenario])}: {row.reason}")
                rows[limits[answer.scenario]] = row
                count += 1
                planned(count)
            return rows

        total, steps = steps_of(moved, ask)
    return Frontier(
        fleet=base.loaded.spec.fleet,
        trade=moved.name,
        key=moved.key,
        unit=UNITS[moved.dimension],
        tightest=moved.tightest,
        loosest=moved.loosest,
        planned=total,
        steps=steps,
    )


def header_of(job: Job, definition: Definition) -> Header:
    """Return what a results file says that it is about."""
    return Header(
        spec=spec_digest(bench(job).base.loaded),
        catalog=job.catalog_digest,
        planner=job.release,
        definition=sha256(definition.text),
        options=f"as of {job.as_of}, gap {job.gap}",
    )


def sweep_of(job: Job, definition: Definition, rows: Sequence[Row]) -> Sweep:
    """Return the answer of a sweep."""
    loaded = bench(job).base.loaded
    assert loaded.spec is not None
    return Sweep(
        fleet=loaded.spec.fleet,
        spec=spec_digest(loaded),
        catalog=job.catalog_digest,
        planner=job.release,
        mode=definition.mode.value,
        seed=definition.seed if definition.mode is Mode.SAMPLE else None,
        keys=definition.keys,
        scenarios=tuple(rows),
    )


def _save(folder: Path, answer: Answer) -> None:
    if answer.plan is not None:
        path = folder / f"{answer.scenario:05d}.plan.json"
        beside = path.with_suffix(".part")
        beside.write_text(answer.plan, encoding="utf-8", newline="\n")
        beside.replace(path)
