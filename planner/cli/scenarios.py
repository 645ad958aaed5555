"""The flags of `planner solve` for one fleet that holds in several scenarios, and how it is planned."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Annotated

import typer

from planner.cli.executors import working_at
from planner.cli.inputs import read_source, refuse
from planner.cli.options import flag, quantity
from planner.cli.streams import STANDARD, usage_error
from planner.cli.sweep import job_of, settings_of
from planner.diagnostics import DiagnosticError

if TYPE_CHECKING:
    from collections.abc import Callable

    from planner.catalog import Catalog
    from planner.pipeline import Options
    from planner.plan.schema import Plan
    from planner.robust.scenarios import Case
    from planner.spec import LoadedSpec
    from planner.sweep.base import Base
    from planner.sweep.scenario import Scenario

ScenariosOption = Annotated[
    str | None,
    flag("--scenarios", "Buy nodes that hold in the scenarios of a file, or in so many draws.", metavar="FILE|COUNT"),
]
HoldInOption = Annotated[
    str | None, flag("--hold-in", "With --scenarios: share of them to hold in; default: all.", metavar="SHARE")
]
DrawnOption = Annotated[
    list[str] | None,
    typer.Option("--set", help="With --scenarios COUNT: what is drawn; repeatable.", metavar="KEY~DISTRIBUTION"),
]
SolveExecutorOption = Annotated[
    str,
    flag(
        "--executor", "Where models and scenarios are solved: local, local:COUNT or dask://HOST:PORT.", metavar="WHERE"
    ),
]


@dataclass(frozen=True)
class Scenarios:
    """What is asked for: scenarios of a file or draws, the share to hold in, and where they are tried."""

    asked: str
    hold_in: float
    drawn: tuple[str, ...]
    seed: int
    executor: str

    def plan(
        self,
        loaded: LoadedSpec,
        catalog: Catalog,
        folder: Path | None,
        options: Options,
        progress: Callable[[str, float], None],
        solving: Callable[[], AbstractContextManager[Event | None]],
    ) -> Plan:
        """Plan nodes that hold. Leaves with a usage error, or with what is wrong with scenarios."""
        from planner.pipeline import prepare
        from planner.robust.holding import holding_by
        from planner.robust.plan import robust_plan
        from planner.sweep.base import Base

        job = job_of(loaded, catalog, folder, options.as_of)
        base = Base(loaded, catalog, job.folder)
        cases = self._cases(base)
        with working_at(self.executor) as opened:
            return robust_plan(
                prepare(loaded, catalog), cases, options, self.hold_in, holding_by(opened, job), progress, solving
            )

    def _cases(self, base: Base) -> tuple[Case, ...]:
        from planner.robust.scenarios import cases_drawn, cases_of_file
        from planner.spec.scenario_file import load_scenarios

        if self.asked.isascii() and self.asked.isdigit():
            return cases_drawn(self._draws(base), base)
        source = read_source(self.asked, None)
        if source.text is None:
            refuse(source.diagnostics)
        loaded = load_scenarios(source.text, source.path)
        try:
            return cases_of_file(loaded, base)
        except DiagnosticError as error:
            refuse(error.diagnostics, loaded)

    def _draws(self, base: Base) -> tuple[Scenario, ...]:
        from planner.sweep.scenario import Definition, DefinitionError, Mode

        settings = settings_of(list(self.drawn), base)
        try:
            return Definition(settings, Mode.SAMPLE, int(self.asked), self.seed).scenarios()
        except DefinitionError as error:
            usage_error(f"--scenarios: {error}")


def scenarios_of(
    asked: str | None, hold_in: str | None, drawn: list[str] | None, executor: str, seed: int, spec: str
) -> Scenarios | None:
    """Return what the flags ask for, None where there are none. Leaves with a usage error where they do not go together."""
    if asked is None:
        for name, value in (("--hold-in", hold_in), ("--set", drawn)):
            if value:
                usage_error(f"{name}: it goes with --scenarios FILE or --scenarios COUNT")
        return None
    is_count = asked.isascii() and asked.isdigit()
    if is_count and int(asked) < 1:
        usage_error("--scenarios: give a file, or at least 1 draw")
    if is_count and not drawn:
        usage_error(
            '--scenarios COUNT: say what is drawn, such as --set "workloads.NAME.traffic.rate~lognormal(12 req/s, 30 %)"'
        )
    if drawn and not is_count:
        usage_error("--set: a file of scenarios says itself what is set; draws are asked for by --scenarios COUNT")
    if asked == STANDARD == spec:
        usage_error("--scenarios: standard input is the spec already; give the scenarios as a file")
    share = quantity("--hold-in", hold_in, "share")
    if share is not None and share <= 0.0:
        usage_error("--hold-in: give more than 0 %")
    return Scenarios(asked, 1.0 if share is None else share, tuple(drawn or ()), seed, executor)
