"""Plans that are stored with the tests, so that no price and no solver changes what reports of them look like.

`planner solve specs/prod.yaml --out tests/data/plans/prod.json` makes one anew when the schema of a plan changes.
"""

from __future__ import annotations

import os
from pathlib import Path

from planner.plan.io import load
from planner.plan.schema import Plan
from planner.report.content import Origin
from planner.report.places import origin_of
from planner.spec import load_spec

TESTS = Path(__file__).parents[1]
PLANS = TESTS / "data" / "plans"
GOLDENS = TESTS / "golden" / "report"
UPDATE = "PLANNER_UPDATE_GOLDENS"


def stored(name: str) -> Plan:
    """Read a stored plan."""
    return load(PLANS / f"{name}.json")


def infeasible_origin() -> Origin:
    """Return the spec of the stored infeasible plan, as reports need it."""
    return origin_of(load_spec((PLANS / "infeasible.yaml").read_text(encoding="utf-8"), "specs/infeasible.yaml"))


def golden(name: str, text: str) -> str:
    """Return the golden text of a file; first write it anew when that is asked for."""
    path = GOLDENS / name
    if os.environ.get(UPDATE):
        path.write_text(text, encoding="utf-8")
    return path.read_text(encoding="utf-8")
