"""The example of the page about robust plans: it is planned, so that the page shows what a report says."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from planner.candidates.references import open_catalog
from planner.pipeline import Options, prepare
from planner.report.sections.headline import headline
from planner.report.sections.nodes import nodes
from planner.report.sections.robust import robustness
from planner.report.table import print_blocks
from planner.robust.holding import holding_by
from planner.robust.plan import robust_plan
from planner.robust.scenarios import cases_of_file
from planner.spec import load_spec
from planner.spec.scenario_file import load_scenarios
from planner.sweep.base import Base, digest_of
from planner.sweep.executor import executor
from planner.sweep.work import Job

ROOT = Path(__file__).parents[2]
SPEC = ROOT / "specs" / "staging.yaml"
FILE = ROOT / "specs" / "scenarios" / "staging.yaml"


def robust_parts() -> Mapping[str, Callable[[], str]]:
    """Return the generated parts of the page by name."""
    return {"robust": _robust}


def _robust() -> str:
    loaded = load_spec(SPEC.read_text(encoding="utf-8"), SPEC.name)
    base = Base(loaded, open_catalog(loaded, ROOT / "catalog"))
    cases = cases_of_file(load_scenarios(FILE.read_text(encoding="utf-8"), FILE.name), base)
    assert loaded.document is not None
    job = Job(loaded.document.text, loaded.path, SPEC, ROOT / "catalog", digest_of(base.catalog))
    with executor("local:1") as opened:
        plan = robust_plan(prepare(loaded, base.catalog), cases, Options(), 1.0, holding_by(opened, job))
    blocks = [block for block in (headline(plan), nodes(plan), robustness(plan)) if block is not None]
    shown = "$ planner solve specs/staging.yaml --scenarios specs/scenarios/staging.yaml"
    return f"```text\n{shown}\n{print_blocks(blocks, width=120).rstrip()}\n```"
