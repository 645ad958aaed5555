"""JSON Schema of records that are printed as JSON: every field with its sentence."""

from __future__ import annotations

from typing import Any

from planner.plan.record import Record
from planner.plan.schema import Plan

_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def plan_schema() -> dict[str, Any]:
    """Return the JSON Schema of a plan as plain data."""
    return schema_of(Plan, "Plan of planner, schema version 1")


def schema_of(record: type[Record], title: str) -> dict[str, Any]:
    """Return the JSON Schema of a kind of record as plain data."""
    return {"$schema": _DIALECT} | record.model_json_schema() | {"title": title}
