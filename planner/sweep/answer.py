"""What `planner sweep` answers as JSON, and the schemas of this package's answers."""

from __future__ import annotations

from typing import Any, Literal

from planner.plan.json_schema import schema_of
from planner.plan.record import Record
from planner.sweep.frontier import Frontier
from planner.sweep.row import Row


class Sweep(Record):
    """All scenarios of a sweep with their answers."""

    schema_version: Literal[1] = 1
    fleet: str
    spec: str
    """Digest of the spec that scenarios are variants of."""
    catalog: str
    """Digest of its catalog."""
    planner: str
    mode: Literal["grid", "zip", "sample"]
    seed: int | None
    """What draws depend on; null where nothing is drawn."""
    keys: tuple[str, ...]
    """Keys that are set, in their order."""
    scenarios: tuple[Row, ...]


def sweep_schema() -> dict[str, Any]:
    """Return the JSON Schema of a sweep as plain data."""
    return schema_of(Sweep, "Sweep of planner sweep, schema version 1")


def frontier_schema() -> dict[str, Any]:
    """Return the JSON Schema of a frontier as plain data."""
    return schema_of(Frontier, "Frontier of planner frontier, schema version 1")
