"""`planner schema`: print the JSON Schema of a spec, for editors and hooks."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from planner.cli.streams import answer


class SchemaOf(StrEnum):
    """What can be described."""

    SPEC = "spec"


def schema(
    what: Annotated[SchemaOf, typer.Argument(help="What to describe.", metavar="WHAT")] = SchemaOf.SPEC,
) -> None:
    """Print the JSON Schema of a spec.

    Example: planner schema > specs/fleet.schema.json
    """
    from planner.spec.schema import spec_schema_text

    texts = {SchemaOf.SPEC: spec_schema_text}
    answer(texts[what]())
