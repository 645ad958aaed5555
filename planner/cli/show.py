"""`planner show`: print a saved plan in any format."""

from __future__ import annotations

from typing import Annotated

import typer

from planner.cli.delivery import Delivery
from planner.cli.inputs import read_plan, refuse
from planner.cli.options import Color, ColorOption, FormatOption, OutOption, QuietOption


def show(
    plan: Annotated[str, typer.Argument(metavar="PLAN", help="A saved plan, git:REF:PATH, or - for stdin.")],
    format: FormatOption = None,
    out: OutOption = None,
    color: ColorOption = Color.AUTO,
    quiet: QuietOption = False,
) -> None:
    """Print a plan that `planner solve --out plan.json` saved, in any format. Nothing is solved.

    Example: planner show plan.json --format markdown
    """
    from planner.diagnostics import DiagnosticError

    delivery = Delivery.of(format, out, color, quiet)
    try:
        saved = read_plan(plan)
    except DiagnosticError as error:
        refuse(error.diagnostics)
    delivery.deliver(saved)
