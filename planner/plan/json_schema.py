"""JSON Schema of a saved plan: every field with its sentence."""

from __future__ import annotations

from typing import Any

from planner.plan.schema import Plan

_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def plan_schema() -> dict[str, Any]:
    """Return the JSON Schema of a plan as plain data."""
    return {"$schema": _DIALECT} | Plan.model_json_schema() | {"title": "Plan of planner, schema version 1"}
