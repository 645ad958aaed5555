"""Plan the scenarios of a sweep that are not finished yet, and the limits of a frontier."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

from planner.diagnostics import DiagnosticError
from planner.pipeline import spec_digest
from planner.plan.io import loads, sha256
from planner.sweep.answer import Sweep
from planner.sweep.base import digest_of
from planner.sweep.executor import Executor, executor
from planner.sweep.frontier import UNITS, Frontier, steps_of
from planner.sweep.results import Header, Results
from planner.sweep.row import Row
from planner.sweep.scenario import Definition, Mode, Scenario
from planner.sweep.trade import Today, Trade, TradeError, trade_of
from planner.sweep.work import Answer, Job, answer, bench


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
    todo = unfinished(scenarios, results, plans)
    if todo:
        with executor(where) as opened:
            _plan(job, todo, opened, results, plans, finished)
    return tuple(results.rows[scenario.number] for scenario in scenarios)


def _plan(
    job: Job,
    todo: Sequence[Scenario],
    opened: Executor,
    results: Results,
    plans: Path | None,
    finished: Callable[[], None],
) -> None:
    for found in opened.answers(job, todo):
        if plans is not None:
            _save(plans, found)
        if found.scenario not in results.rows:
            results.add(found.line)
        finished()


def unfinished(scenarios: Sequence[Scenario], results: Results, plans: Path | None) -> list[Scenario]:
    """Return the scenarios to plan: those without a row, and those whose plan is not in the folder `plans`."""

    def is_saved(row: Row) -> bool:
        if plans is None or row.plan is None:
            return True
        with suppress(OSError, DiagnosticError):
            return loads(_place(plans, row.scenario).read_bytes(), "").digests.plan == row.plan
        return False

    return [s for s in scenarios if s.number not in results.rows or not is_saved(results.rows[s.number])]


def trade_called(job: Job, text: str, between: str | None) -> Trade:
    """Return the trade that a text stands for. Raises `TradeError` or `RangeError`."""
    base = bench(job).base
    if base.loaded.spec is not None and base.loaded.spec.growth is not None:
        raise TradeError(
            "a frontier is of the fleet of one day, and this spec has months ahead: remove `growth` for it"
        )
    return trade_of(text, base, between, partial(_today, job))


def frontier(
    job: Job, trade: Trade, where: str, results: Results, planned: Callable[[], None] = lambda: None
) -> Frontier:
    """Return the steps of a trade. `planned` is called after each limit that is planned now.

    Limits are numbered as they are asked for, which follows from the costs at earlier ones: so kept results are of the same ones.

    Raises:
        TradeError: a limit makes no spec.
        ExecutorError: nothing can be run, or not any more; what is finished is in the results.
        OSError: results cannot be written.
    """
    spec, asked = bench(job).base.loaded.spec, 0
    assert spec is not None

    def ask(limits: Sequence[float]) -> Mapping[float, Row]:
        nonlocal asked
        scenarios = [Scenario(asked + i, ((trade.key, trade.text_of(limit)),)) for i, limit in enumerate(limits, 1)]
        asked += len(limits)
        for scenario in scenarios:
            row = results.rows.get(scenario.number)
            if row is not None and dict(row.values) != dict(scenario.values):
                del results.rows[scenario.number]
        _plan(job, unfinished(scenarios, results, None), opened, results, None, planned)
        rows = [results.rows[scenario.number] for scenario in scenarios]
        for row in rows:
            if row.status in ("invalid", "failed"):
                raise TradeError(f"{trade.key} at {row.values[trade.key]}: {row.reason}")
        return dict(zip(limits, rows, strict=True))

    with executor(where) as opened:
        found = steps_of(trade, ask)
    return Frontier(
        fleet=spec.fleet,
        trade=trade.name,
        key=trade.key,
        unit=UNITS[trade.dimension],
        tightest=trade.tightest,
        loosest=trade.loosest,
        planned=found.planned,
        complete=found.complete,
        steps=found.steps,
    )


def _today(job: Job) -> Today | None:
    """Plan the spec as it is. Raises `TradeError` where that ends in a bug."""
    found = answer(replace(job, with_plans=True), Scenario(0, ()))
    row = Row.model_validate_json(found.line)
    if row.status == "failed":
        raise TradeError(f"the spec as it is cannot be planned: {row.reason}")
    if found.plan is None or row.gpus is None:
        return None
    return Today(row.gpus, sum(node.power_w for node in loads(found.plan.encode(), "").nodes))


def sweep_header(job: Job, definition: Definition) -> Header:
    """Return what the results file of a sweep says that it is about."""
    base = bench(job).base
    values = ((setting.key, value.text) for setting in definition.settings for value in setting.values)
    read = [digest_of(base.variant((value,))[1]) for value in values if base.reads_files(*value)]
    return _header(job, definition.text, read)


def frontier_header(job: Job, trade: Trade) -> Header:
    """Return what the results file of a frontier says that it is about."""
    return _header(job, json.dumps(["frontier", trade.key, trade.tightest, trade.loosest]), [])


def _header(job: Job, definition: str, read: Sequence[str]) -> Header:
    return Header(
        spec=spec_digest(bench(job).base.loaded),
        catalog=sha256("\n".join([job.catalog_digest, *read])) if read else job.catalog_digest,
        planner=job.release,
        definition=sha256(definition),
        options=f"as of {job.as_of}, gap {job.gap}",
    )


def sweep_of(job: Job, definition: Definition, rows: Sequence[Row]) -> Sweep:
    """Return the answer of a sweep."""
    loaded = bench(job).base.loaded
    assert loaded.spec is not None
    return Sweep(
        fleet=loaded.spec.fleet,
        spec=spec_digest(loaded),
        catalog=bench(job).base.catalog.digest(),
        planner=job.release,
        mode=definition.mode.value,
        seed=definition.seed if definition.mode is Mode.SAMPLE else None,
        keys=definition.keys,
        scenarios=tuple(rows),
    )


def _save(folder: Path, answer: Answer) -> None:
    path = _place(folder, answer.scenario)
    if answer.plan is None:
        path.unlink(missing_ok=True)  # that of another sweep
    else:
        beside = path.with_suffix(".part")
        beside.write_text(answer.plan, encoding="utf-8", newline="\n")
        beside.replace(path)


def _place(folder: Path, scenario: int) -> Path:
    return folder / f"{scenario:05d}.plan.json"
