"""`planner schema`: print the JSON Schema of a spec, or of what commands print as JSON, for editors, hooks and programs."""

from __future__ import annotations

import json
from enum import StrEnum
from importlib import import_module
from typing import Annotated

import typer

from planner.cli.streams import answer


class SchemaOf(StrEnum):
    """What can be described."""

    SPEC = "spec"
    PLAN = "plan"
    DIFF = "diff"
    VERIFICATION = "verification"
    SWEEP = "sweep"
    FRONTIER = "frontier"
    DIAGNOSTICS = "diagnostics"


_DESCRIBED_BY = {
    SchemaOf.SPEC: ("planner.spec.schema", "spec_schema"),
    SchemaOf.PLAN: ("planner.plan.json_schema", "plan_schema"),
    SchemaOf.DIFF: ("planner.review.json_schema", "difference_schema"),
    SchemaOf.VERIFICATION: ("planner.review.json_schema", "verifications_schema"),
    SchemaOf.SWEEP: ("planner.sweep.answer", "sweep_schema"),
    SchemaOf.FRONTIER: ("planner.sweep.answer", "frontier_schema"),
    SchemaOf.DIAGNOSTICS: ("planner.report.findings_schema", "findings_schema"),
}
"""The module and the function that return each schema as plain data."""


def schema(
    what: Annotated[SchemaOf, typer.Argument(help="What to describe.", metavar="WHAT")] = SchemaOf.SPEC,
) -> None:
    """Print the JSON Schema of a spec, or of what solve, diff, verify, sweep, frontier and check print as JSON.

    Example: planner schema spec > specs/fleet.schema.json
    """
    answer(schema_text(what))


def schema_text(what: SchemaOf) -> str:
    """Return a schema as the text of a file."""
    module, function = _DESCRIBED_BY[what]
    described: dict[str, object] = getattr(import_module(module), function)()
    return json.dumps(described, indent=2, ensure_ascii=False) + "\n"
