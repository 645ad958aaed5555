"""`planner verify`: say whether a fleet that runs still satisfies its spec, without planning another."""

from __future__ import annotations

import shutil
import sys
from datetime import date
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from planner.cli.exits import ExitCode, first_of
from planner.cli.inputs import catalog_for, read_plan, read_spec, refuse
from planner.cli.options import AsOfOption, CatalogOption, Color, ColorOption, QuietOption, day, flag, is_file
from planner.cli.plan_spec import check_fleet, spec_today
from planner.cli.streams import STANDARD, answer, check_writable, note, save, usage_error, wants_color

if TYPE_CHECKING:
    from planner.plan.schema import Plan
    from planner.review.verification import Verification


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
    if out is not None and is_file(out):
        check_writable(Path(out))
    on = day("--as-of", as_of)
    try:
        subjects: list[str | None] = [*plans] if plans else [None]
        found = [_verified(path, spec, catalog, on, repair) for path in subjects]
    except DiagnosticError as error:
        refuse(error.diagnostics)
    _deliver(found, format, out, color, quiet)
    raise typer.Exit(first_of(code for each in found for code in _codes(each)))


def _codes(found: Verification) -> list[ExitCode]:
    applies = {
        ExitCode.INFEASIBLE: not found.holds,
        ExitCode.DENIED: any(p.outcome == "deny" for p in found.policies),
    }
    return [code for code, is_so in applies.items() if is_so]


def _verified(path: str | None, spec: str | None, folder: Path | None, on: date | None, repairs: bool) -> Verification:
    """Verify one plan, or what a spec says is deployed. Raises `DiagnosticError` for what is wrong with either."""
    from planner.pipeline import Options, prepare
    from planner.prefer.earlier import PreferredPlan
    from planner.review.verify import Subject, verify

    plan: Plan | None = None
    if path is not None:
        if path == spec == STANDARD:
            usage_error("standard input is the plan already; give the spec as a file")
        plan = read_plan(path)
        check_fleet(plan, path, "verify")
    loaded = read_spec(spec, None) if spec is not None else spec_today(plan, path) if plan and path else None
    assert loaded is not None
    if loaded.spec is None:
        refuse(loaded.diagnostics, loaded)
    prepared = prepare(loaded, catalog_for(loaded, folder))
    if plan is None or path is None:
        if not loaded.spec.deployed:
            usage_error(f"{loaded.path} says nothing under `deployed`; give a saved plan to verify")
        return verify(prepared, Subject(None), Options(as_of=on), repairs=repairs)
    options = Options(as_of=on, prefer=PreferredPlan(plan, path))
    return verify(prepared, Subject(plan, path), options, repairs=repairs)


def _deliver(found: list[Verification], format: ReviewFormat, out: str | None, color: Color, quiet: bool) -> None:
    to_terminal = out is None or not is_file(out)
    width = shutil.get_terminal_size().columns if to_terminal and sys.stdout.isatty() else None
    text = _text(found, format, to_terminal and wants_color(color, sys.stdout), width)
    if out is not None and not to_terminal:
        save(Path(out), text)
        if not quiet:
            note(f"wrote {out}")
        return
    answer(text)


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
