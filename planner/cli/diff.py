"""`planner diff`: compare two specs or plans: cost, hardware, margins, policies, and which change caused what."""

from __future__ import annotations

import os
import time
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from planner.cli.delivery import check_out, hand_over
from planner.cli.exits import ExitCode, first_of
from planner.cli.inputs import catalog_for, policies_at, read_either, read_policies, refuse, report
from planner.cli.options import (
    AsOfOption,
    CatalogOption,
    Color,
    ColorOption,
    GapOption,
    PoliciesOption,
    QuietOption,
    day,
    flag,
    quantity,
)
from planner.cli.plan_spec import spec_of_plan, spec_today
from planner.cli.solve import StayWithinOption, TimeLimitOption, time_limit_s
from planner.cli.streams import STANDARD, check_writable, note, save, usage_error
from planner.plan.schema import Plan
from planner.revision.reference import RevisionError, is_reference, parse_reference

if TYPE_CHECKING:
    from planner.pipeline import Options, Prepared
    from planner.policy.edits import PolicyEdit
    from planner.review.diff import Side
    from planner.review.difference import Difference
    from planner.spec import LoadedSpec


class DiffFormat(StrEnum):
    """How a comparison is printed."""

    TABLE = "table"
    JSON = "json"
    MARKDOWN = "markdown"
    GITHUB = "github"


ENDINGS = {".json": DiffFormat.JSON, ".md": DiffFormat.MARKDOWN, ".txt": DiffFormat.TABLE}


def diff(
    old: Annotated[str, typer.Argument(metavar="OLD", help="A spec or a saved plan; git:REF or git:REF:PATH too.")],
    new: Annotated[
        str | None,
        typer.Argument(metavar="NEW", help="The same; default: the work tree's file of git:REF:PATH, a plan's spec."),
    ] = None,
    detailed_exitcode: Annotated[bool, flag("--detailed-exitcode", "Exit with 2 when the plans differ.")] = False,
    explain: Annotated[
        bool, flag("--explain/--no-explain", "Take the changes one by one, to say what each of them does.")
    ] = True,
    policies: PoliciesOption = None,
    stay_within: StayWithinOption = None,
    gap: GapOption = None,
    time_limit: TimeLimitOption = None,
    as_of: AsOfOption = None,
    catalog: CatalogOption = None,
    format: Annotated[DiffFormat, typer.Option("--format", help="How to print the comparison.")] = DiffFormat.TABLE,
    out: Annotated[str | None, flag("--out", "Save what is printed in this file.", "-o", metavar="FILE")] = None,
    save_as: Annotated[
        list[str] | None,
        flag("--save", "Also save the comparison in this file: .json, .md or .txt; repeatable.", metavar="FILE"),
    ] = None,
    color: ColorOption = Color.AUTO,
    quiet: QuietOption = False,
) -> None:
    """Compare two specs or plans: what it costs, which hardware, which margins, and which change caused what.

    Example: planner diff git:main specs/prod.yaml

    A spec is planned first, the new one with the old fleet preferred. Exits with 3 when no fleet meets the new spec, with 5
    when a policy of either side denies it, and with --detailed-exitcode with 2 when the plans differ.
    """
    from planner.diagnostics import DiagnosticError
    from planner.pipeline import Options
    from planner.review.diff import compare, policy_edits

    given = [path for path in (old, new, *(policies or [])) if path is not None]
    check_out(out, given)
    files = {Path(path): _format_of(path, given) for path in save_as or []}
    after = new if new is not None else _work_tree(old)
    options = Options(
        as_of=day("--as-of", as_of),
        gap=quantity("--gap", gap, "share"),
        time_limit_s=time_limit_s(time_limit),
        stay_within=quantity("--stay-within", stay_within, "share"),
    )
    try:
        sides = _Sides(catalog, policies or [], quiet)
        before, now, options = sides.of(old, after, options)
        earlier = policies_at(old, policies or [], beside=after)
        found = compare(before, now, options, earlier, explains=explain, tell=sides.tell)
        edits = policy_edits(before, now, options, earlier)
    except DiagnosticError as error:
        refuse(error.diagnostics)
    hand_over(out, color, quiet, lambda colored, width: _text(found, edits, format, colored, width))
    for path, chosen in files.items():
        save(path, _text(found, edits, chosen, False, None))
    raise typer.Exit(first_of(_codes(found, detailed_exitcode)))


def _format_of(path: str, read: list[str]) -> DiffFormat:
    """Return the format of a file by its ending. Leaves with a usage error where it cannot be written, or is `read`."""
    known = ENDINGS.get(Path(path).suffix.lower())
    if known is None:
        usage_error(f"--save: cannot tell the format of {path}: end it in {', '.join(ENDINGS)}")
    check_writable(Path(path), read)
    return known


def _codes(found: Difference, detailed: bool) -> list[ExitCode]:
    applies = {
        ExitCode.INFEASIBLE: found.new.status == "infeasible",
        ExitCode.UNPROVEN: found.new.status == "unproven",
        ExitCode.DENIED: any(p.outcome == "deny" for p in found.policies),
        ExitCode.DIFFERS: detailed and found.changed,
    }
    return [code for code, is_so in applies.items() if is_so]


def _work_tree(old: str) -> str | None:
    """Return the file of the work tree that `git:REF:PATH` is compared with, None where OLD is on disk."""
    if not is_reference(old):
        return None
    from planner.revision.repository import Repository

    try:
        path = parse_reference(old).path
        if path is None:
            usage_error(f"{old}: say with what it is to be compared, as in `planner diff {old} specs/prod.yaml`")
        return os.path.relpath(path, Repository.holding(Path()).prefix or os.curdir)
    except RevisionError as error:
        usage_error(f"{old}: {error}")


class _Sides:
    """Reads both sides, and plans those that are specs."""

    def __init__(self, folder: Path | None, policies: list[str], quiet: bool) -> None:
        self._folder, self._policies, self._quiet = folder, policies, quiet

    def tell(self, text: str) -> None:
        """Say what is planned next."""
        if not self._quiet:
            note(text)

    def of(self, old: str, new: str | None, options: Options) -> tuple[Side, Side, Options]:
        """Return both sides, and the options with the policies of files."""
        from dataclasses import replace

        if old == new == STANDARD:
            usage_error("standard input is read once; give one of the two as a file")
        first = read_either(old, beside=new)
        second = self._second(old, first, new)
        new_name = new if new is not None else _name(second)
        prepared = self._prepared(second, new_name, other=old)
        if self._policies and prepared is not None:
            options = replace(options, policies=read_policies(self._policies, prepared.catalog, self._quiet))
        elif self._policies:
            usage_error("--policies: the spec of the new plan is not at hand to judge it by; give a spec")
        before = self._side(old, first, self._prepared(first, old, other=new_name), options, None)
        return before, self._side(new_name, second, prepared, options, before), options

    def _second(self, old: str, first: Plan | LoadedSpec, new: str | None) -> Plan | LoadedSpec:
        if new is not None:
            return read_either(new, beside=old)
        if isinstance(first, Plan):
            return spec_today(first, old)
        if old == STANDARD:
            usage_error("with what is standard input to be compared? Give OLD and NEW, one of them as `-`")
        return usage_error(f"with what is {old} to be compared? For its last commit: planner diff git:HEAD {old}")

    def _prepared(self, given: Plan | LoadedSpec, name: str, other: str) -> Prepared | None:
        """Return a spec with its catalog, that of a plan where it is at hand. Leaves with what is wrong with a given one."""
        from planner.pipeline import prepare

        loaded = spec_of_plan(given, name, other) if isinstance(given, Plan) else given
        if loaded is None:
            return None
        if loaded.spec is None:
            refuse(loaded.diagnostics, loaded)
        if not isinstance(given, Plan) and not self._quiet:
            report(loaded.diagnostics, loaded)
        return prepare(loaded, catalog_for(loaded, self._folder))

    def _side(
        self, name: str, given: Plan | LoadedSpec, prepared: Prepared | None, options: Options, old: Side | None
    ) -> Side:
        from planner.review.diff import Side, planned_side

        if isinstance(given, Plan):
            return Side(name, given, prepared)
        assert prepared is not None
        started = time.perf_counter()
        side = planned_side(given.path, prepared, options, old)
        self.tell(f"{given.path}: planned in {time.perf_counter() - started:.2f} s")
        return side


def _name(given: Plan | LoadedSpec) -> str:
    return given.fleet if isinstance(given, Plan) else given.path


def _text(found: Difference, edits: tuple[PolicyEdit, ...], format: DiffFormat, color: bool, width: int | None) -> str:
    from planner.plan.io import text_of
    from planner.report import diff as report
    from planner.report.table import print_blocks

    if format is DiffFormat.JSON:
        return text_of(found)
    if format is DiffFormat.MARKDOWN:
        return report.markdown(found, edits)
    if format is DiffFormat.GITHUB:
        return report.github(found)
    return print_blocks(report.blocks(found, edits), color, width)
