"""Checks of `engines/` and `calibration/`: every range of versions must give a usable profile."""

from __future__ import annotations

from planner.catalog.calibration import SHIPPED
from planner.catalog.checks.findings import Findings, guarded, place
from planner.catalog.engine import version_key
from planner.catalog.store import Catalog
from planner.diagnostics import Diagnostic


def findings(catalog: Catalog, name: str) -> Findings:
    """Yield what is wrong about one engine."""
    path = catalog.root / "engines" / f"{name}.yaml"
    file = catalog.engine_file(name)
    for section, ranges in (("ranges", file.ranges), ("memory", file.memory)):
        keys = [version_key(r.since) for r in ranges]
        if keys != sorted(set(keys)) or () in keys:
            message = f"{name}: `{section}` must be versions with a number, oldest first"
            yield Diagnostic("catalog/invalid-value", message, place(path, section))
            continue
        for entry in ranges:
            yield from guarded(_profile, catalog, name, entry.since)


def calibration_findings(catalog: Catalog, name: str) -> Findings:
    """Yield what keeps a calibration file from being read."""
    if name == SHIPPED:
        catalog.shipped_calibration()
    else:
        catalog.own_calibration(name)
    yield from ()


def _profile(catalog: Catalog, name: str, version: str) -> Findings:
    catalog.engine(name, version)
    yield from ()
