"""`planner show`: print a saved plan in any format."""

from __future__ import annotations

from typing import Annotated

import typer

from planner.cli.delivery import Delivery
from planner.cli.inputs import read_plan, refuse
from planner.cli.options import CatalogOption, Color, ColorOption, FormatOption, OutOption, QuietOption
from planner.cli.page import SensitivitiesOption, check_sensitivities, saved_origin
from planner.cli.plan_spec import SpecOption


def show(
    plan: Annotated[
        str, typer.Argument(metavar="PLAN", help="A saved plan or HTML report, git:REF:PATH, or - for stdin.")
    ],
    format: FormatOption = None,
    out: OutOption = None,
    spec: SpecOption = None,
    sensitivities: SensitivitiesOption = False,
    catalog: CatalogOption = None,
    color: ColorOption = Color.AUTO,
    quiet: QuietOption = False,
) -> None:
    """Print a plan that `planner solve --out plan.json` saved, in any format. Nothing is solved without --sensitivities.

    Example: planner show plan.json --out report.html

    The spec of the plan is needed for charts of the HTML report only.
    """
    from planner.diagnostics import DiagnosticError

    delivery = Delivery.of(format, out, color, quiet, read=[plan, *([spec] if spec else [])])
    check_sensitivities(sensitivities, delivery)
    try:
        saved = read_plan(plan)
        origin = saved_origin(saved, plan, spec, catalog, sensitivities, quiet) if delivery.is_page else None
    except DiagnosticError as error:
        refuse(error.diagnostics)
    delivery.deliver(saved, origin)
