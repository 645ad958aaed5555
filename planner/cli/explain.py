"""`planner explain`: say why a plan is as it is: what is scarce, why not another shape, what a change would cost."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from planner.cli.inputs import read_plan, refuse
from planner.cli.options import AnswerFormat, AnswerFormatOption, CatalogOption, Color, ColorOption, flag
from planner.cli.plan_spec import SpecOption, check_fleet, prepared
from planner.cli.streams import answer, note, usage_error, wants_color

if TYPE_CHECKING:
    from planner.explain.answer import Answer
    from planner.explain.sensitivity import Sensitivity
    from planner.explain.trials import Trials
    from planner.plan.schema import Plan
    from planner.spec import FleetSpec


def explain(
    plan: Annotated[str, typer.Argument(metavar="PLAN", help="A saved plan, git:REF:PATH, or - for stdin.")],
    why_not: Annotated[
        str | None, flag("--why-not", "Say why this shape, any of this GPU, or this offer is not used.", metavar="NAME")
    ] = None,
    pool: Annotated[
        str | None, flag("--pool", "With --why-not: ask for the workloads of this pool alone.", metavar="POOL")
    ] = None,
    sensitivities: Annotated[
        bool, flag("--sensitivities", "Plan again with more demand, looser limits, one more node: $/h each.")
    ] = False,
    spec: SpecOption = None,
    catalog: CatalogOption = None,
    format: AnswerFormatOption = AnswerFormat.TABLE,
    color: ColorOption = Color.AUTO,
) -> None:
    """Say why a plan is as it is: what is scarce in each pool, and how far traffic may grow.

    Example: planner explain plan.json --why-not h100-sxm-tp2-fp8 --pool chat

    The spec of the plan is needed for --why-not and --sensitivities only.
    """
    from planner.diagnostics import DiagnosticError
    from planner.report import explain as report
    from planner.report.rows import as_json
    from planner.report.table import print_blocks

    if pool is not None and why_not is None:
        usage_error("--pool: it says whose workloads --why-not is about; give both")
    try:
        saved = read_plan(plan)
        check_fleet(saved, plan, "explain")
        answers = found = None
        if why_not is not None or sensitivities:
            if saved.certificate is not None and saved.certificate.tightened:
                note(
                    "planner: this plan was tightened by replays; what it is compared with is not, and may be cheaper for that"
                )
            wanted, trials = _opened(saved, plan, spec, catalog)
            answers = None if why_not is None else _why_not(saved, wanted, trials, why_not, pool)
            found = _sensitivities(saved, wanted, trials) if sensitivities else None
    except DiagnosticError as error:
        refuse(error.diagnostics)
    if format is AnswerFormat.JSON:
        answer(as_json(report.as_data(saved, answers, found)))
        return
    blocks = [*report.scarcity(saved), *report.growth(saved)] if answers is None else report.why_not(saved, answers)
    blocks += report.sensitivities(found) if found is not None else []
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    answer(print_blocks(blocks, wants_color(color, sys.stdout), width))


def _opened(plan: Plan, path: str, spec: str | None, catalog: Path | None) -> tuple[FleetSpec, Trials]:
    """Return the spec that a plan was made from, with the means to plan variants of it."""
    from planner.pipeline import variants

    return variants(prepared(plan, path, spec, catalog), plan)


def _why_not(plan: Plan, spec: FleetSpec, trials: Trials, name: str, pool: str | None) -> list[Answer]:
    from planner.explain.named import NothingNamed, named
    from planner.explain.why_not import answers_about

    chosen = next((p for p in plan.pools if p.name == pool), None)
    if pool is not None and chosen is None:
        usage_error(f"--pool: the plan has no pool `{pool}`; it has {', '.join(p.name for p in plan.pools)}")
    table = trials.table(spec)
    try:
        wanted = named(name, table, trials.catalog)
    except NothingNamed as error:
        usage_error(f"--why-not: {error}")
    found = answers_about(plan, spec, table, trials, wanted, chosen)
    if not found:
        usage_error(f"--why-not: {wanted.name} was considered for other pools only; leave out --pool")
    return found


def _sensitivities(plan: Plan, spec: FleetSpec, trials: Trials) -> list[Sensitivity]:
    from planner.explain.sensitivity import sensitivities

    return sensitivities(plan, spec, trials)
