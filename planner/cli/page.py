"""What the HTML report shows beyond its plan: computed from the spec and the catalog, planned anew where that is asked for."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from planner.cli.delivery import Delivery
from planner.cli.options import flag
from planner.cli.plan_spec import prepared, prepared_with, spec_of
from planner.cli.streams import note, usage_error

if TYPE_CHECKING:
    from planner.explain.sensitivity import Sensitivity
    from planner.pipeline import Prepared
    from planner.plan.schema import Plan
    from planner.report.content import Origin

SensitivitiesOption = Annotated[
    bool,
    flag("--sensitivities", "Plan again with more demand, looser limits, one more node, for the HTML report."),
]
_LEFT_OUT = "its report leaves out what needs it"


def check_sensitivities(wanted: bool, delivery: Delivery) -> None:
    """Leave with a usage error where changes are to be planned and no HTML report is made that has them."""
    if wanted and not delivery.is_page:
        usage_error("--sensitivities: only the HTML report has them; add --format html or --out report.html")


def page_origin(prepared: Prepared, plan: Plan, wants_sensitivities: bool, quiet: bool) -> Origin:
    """Return the spec of a plan with what it adds to the plan."""
    from planner.report.places import origin_of
    from planner.study import study_of

    found = _planned(prepared, plan, quiet) if wants_sensitivities and plan.pools else []
    started = time.perf_counter()
    study = study_of(prepared, plan, found)
    if not quiet:
        note(f"report {time.perf_counter() - started:.2f} s")
    return replace(origin_of(prepared.loaded), study=study)


def saved_origin(
    plan: Plan, path: str, spec: str | None, folder: Path | None, wants_sensitivities: bool, quiet: bool
) -> Origin | None:
    """Return the same for the saved plan at `path`; None, with a note, where its spec is not at hand and was not asked for.

    Raises `DiagnosticError` where the spec given is not that of the plan, or the catalog is another one.
    """
    from planner.diagnostics import DiagnosticError
    from planner.report.places import origin_of

    if spec is not None or wants_sensitivities:
        return page_origin(prepared(plan, path, spec, folder), plan, wants_sensitivities, quiet)
    loaded = spec_of(plan, path)
    if loaded is None:
        note(f"planner: the spec of this plan is not beside it, here or in specs/: {_LEFT_OUT}; give it with --spec")
        return None
    try:
        return page_origin(prepared_with(loaded, plan, path, folder), plan, False, quiet)
    except DiagnosticError as error:
        note(f"planner: {error.diagnostics[0].message}: {_LEFT_OUT}")
        return origin_of(loaded)


def _planned(prepared: Prepared, plan: Plan, quiet: bool) -> list[Sensitivity]:
    from planner.explain.sensitivity import sensitivities
    from planner.pipeline import variants

    def starting(what: str) -> None:
        if not quiet:
            note(f"planning with {what}")

    return sensitivities(plan, *variants(prepared, plan), starting)
