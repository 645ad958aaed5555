"""JSON Schema of comparisons and verifications."""

from __future__ import annotations

from typing import Any

from planner.plan.json_schema import schema_of
from planner.review.difference import Difference
from planner.review.verification import Verifications


def difference_schema() -> dict[str, Any]:
    """Return the JSON Schema of a comparison of two plans as plain data."""
    return schema_of(Difference, "Comparison of planner diff, schema version 1")


def verifications_schema() -> dict[str, Any]:
    """Return the JSON Schema of the answer of `planner verify` as plain data."""
    return schema_of(Verifications, "Verifications of planner verify, schema version 1")
