"""`planner verify`: say whether a fleet that runs still satisfies its spec, without planning another."""

from __future__ import annotations

from datetime import date
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from planner.cli.delivery import check_out, hand_over
from planner.cli.exits import ExitCode, first_of
from planner.cli.inputs import catalog_for, files_meant, read_plan, read_policies, read_spec, refuse, report
from planner.cli.options import AsOfOption, CatalogOption, Color, ColorOption, PoliciesOption, QuietOption, day, flag
from planner.cli.plan_spec import check_fleet, spec_today
from planner.cli.streams import STANDARD, usage_error

if TYPE_CHECKING:
    from planner.plan.schema import Plan
    from planner.review.verification import Verification
    from planner.source import FilePath


PLAN_ENDINGS = (".plan.json",)
"""How files end that are taken for saved plans in a folder."""


class ReviewFormat(StrEnum):
    """How a review is printed."""

    TABLE = "table"
    JSON = "json"
    MARKDOWN = "markdown"


def verify(
    plans: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PLAN...", help="Saved plans, or - for standard input; without any, what is `deployed`."
        ),
    ] = None,
    spec: Annotated[
        str | None,
        flag("--spec", "The spec to hold them against; default: by digest or name, nearby.", metavar="SPEC"),
    ] = None,
    repair: Annotated[bool, flag("--repair/--no-repair", "Plan the cheapest repair of what no longer holds.")] = True,
    policies: PoliciesOption = None,
    as_of: AsOfOption = None,
    format: Annotated[ReviewFormat, typer.Option("--format", help="How to print the answer.")] = ReviewFormat.TABLE,
    out: Annotated[str | None, flag("--out", "Save the answer in this file.", "-o", metavar="FILE")] = None,
    catalog: CatalogOption = None,
    color: ColorOption = Color.AUTO,
    quiet: QuietOption = False,
) -> None:
    """Hold saved plans against the spec and the catalog as they are today, every limit anew. No other fleet is searched for.

    Example: planner verify plan.json --spec specs/prod.yaml

    Exits with 3 when a fleet no longer satisfies its spec, with 5 when a policy denies it.
    """
    from planner.diagnostics import DiagnosticError

    if not plans and spec is None:
        usage_error("what is to be verified? Give plans, or with --spec a spec that says what is deployed")
    on = day("--as-of", as_of)
    subjects: list[str | FilePath | None] = (
        [*files_meant(plans, PLAN_ENDINGS, "saved plan (*.plan.json)")] if plans else [None]
    )
    check_out(out, [*(str(path) for path in (*subjects, spec) if path is not None), *(policies or [])])
    found: list[Verification] = []
    failed: list[ExitCode] = []
    for path in subjects:  # one that cannot be read keeps the others from nothing
        try:
            found.append(_verified(path, spec, catalog, policies or [], on, repair, quiet))
        except DiagnosticError as error:
            report(error.diagnostics)
            failed.append(ExitCode.WRONG_INPUT)
        except typer.Exit as left:
            failed.append(ExitCode(left.exit_code))
    if not found:
        raise typer.Exit(first_of(failed))
    hand_over(out, color, quiet, lambda colored, width: _text(found, format, colored, width))
    raise typer.Exit(first_of([*failed, *(code for each in found for code in _codes(each))]))


def _codes(found: Verification) -> list[ExitCode]:
    applies = {
        ExitCode.INFEASIBLE: not found.holds,
        ExitCode.DENIED: any(p.outcome == "deny" for p in found.policies),
    }
    return [code for code, is_so in applies.items() if is_so]


def _verified(
    given: str | FilePath | None,
    spec: str | None,
    folder: Path | None,
    policies: list[str],
    on: date | None,
    repairs: bool,
    quiet: bool,
) -> Verification:
    """Verify one plan, or what a spec says is deployed. Raises `DiagnosticError` for what is wrong with either."""
    from planner.pipeline import Options, prepare
    from planner.prefer.earlier import PreferredPlan
    from planner.review.verify import Subject, verify

    plan: Plan | None = None
    path = None if given is None else str(given)
    if given is not None and path is not None:
        if path == spec == STANDARD:
            usage_error("standard input is the plan already; give the spec as a file")
        plan = read_plan(given)
        check_fleet(plan, path, "verify")
    loaded = read_spec(spec, None) if spec is not None else spec_today(plan, path) if plan and path else None
    assert loaded is not None
    if loaded.spec is None:
        refuse(loaded.diagnostics, loaded)
    prepared = prepare(loaded, catalog_for(loaded, folder))
    judged = read_policies(policies, prepared.catalog, quiet)
    if plan is None or path is None:
        if not loaded.spec.deployed:
            usage_error(f"{loaded.path} says nothing under `deployed`; give a saved plan to verify")
        return verify(prepared, Subject(None), Options(as_of=on, policies=judged), repairs=repairs)
    options = Options(as_of=on, prefer=PreferredPlan(plan, path), policies=judged)
    return verify(prepared, Subject(plan, path), options, repairs=repairs)


def _text(found: list[Verification], format: ReviewFormat, color: bool, width: int | None) -> str:
    from planner.plan.io import text_of
    from planner.report.markdown import render_blocks
    from planner.report.table import print_blocks
    from planner.report.verify import blocks
    from planner.review.verification import Verifications

    if format is ReviewFormat.JSON:
        return text_of(Verifications(verified=tuple(found)))
    if format is ReviewFormat.MARKDOWN:
        return "\n".join(render_blocks(blocks(each)) for each in found)
    return "\n".join(print_blocks(blocks(each), color, width) for each in found)
