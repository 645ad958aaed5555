"""The example of the page about growth: it is planned, so that the page shows what a report says."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from planner.candidates.references import open_catalog
from planner.pipeline import Options, make_plan, prepare
from planner.report.sections.growth import growth_steps, purchases
from planner.report.sections.headline import headline
from planner.report.table import print_blocks
from planner.spec import load_spec

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "specs" / "examples" / "growing-demand.yaml"


def growth_parts() -> Mapping[str, Callable[[], str]]:
    """Return the generated parts of the page by name."""
    return {"growth": _growth}


def _growth() -> str:
    loaded = load_spec(EXAMPLE.read_text(encoding="utf-8"), EXAMPLE.name)
    plan = make_plan(prepare(loaded, open_catalog(loaded, ROOT / "catalog")), Options())
    blocks = [block for block in (headline(plan), growth_steps(plan), purchases(plan)) if block is not None]
    return f"```text\n{print_blocks(blocks, width=120).rstrip()}\n```"
