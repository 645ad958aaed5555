"""The manual says what the code does: generated parts are current, every error and every link is there.

PLANNER_UPDATE_GOLDENS=1 writes the generated parts anew.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from importlib.resources import files
from pathlib import Path

import pytest
from error_codes import codes_of, listed_codes
from estimate_page import example_parts as estimate_parts
from explain_page import explain_parts
from export_page import export_parts
from growth_page import growth_parts
from pages import bands_part, constraints_part, with_generated_parts
from review_page import review_parts
from robust_page import robust_parts
from simulate_page import simulate_parts
from size_page import example_parts
from spec_page import SECTIONS, keys_of, keys_part, sections_of
from sweep_page import sweep_parts
from validate_page import validate_parts

from planner.candidates.rule import all_rules
from planner.catalog import Catalog
from planner.physics.bands import Bands
from planner.policy.rule import all_rules as all_policy_rules
from planner.program.constraint import all_constraints
from planner.spec.fleet import FleetSpec

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "planner"
MANUAL = PACKAGE / "manual"
UPDATE = "PLANNER_UPDATE_GOLDENS"
PAGES = (
    "changelog",
    "concepts",
    "decisions",
    "errors",
    "estimate",
    "explain",
    "export",
    "growth",
    "physics",
    "pipelines",
    "policies",
    "program",
    "report",
    "review",
    "robust",
    "simulate",
    "size",
    "spec",
    "sweep",
    "validate",
)
PARTS: Mapping[str, Mapping[str, Callable[[], str]]] = {
    "estimate": estimate_parts(),
    "explain": explain_parts(),
    "export": export_parts(),
    "growth": growth_parts(),
    "physics": {"bands": lambda: bands_part(ROOT / "catalog")},
    "program": {"constraints": constraints_part},
    "review": review_parts(),
    "robust": robust_parts(),
    "simulate": simulate_parts(),
    "size": example_parts(),
    "spec": {"keys": keys_part},
    "sweep": sweep_parts(),
    "validate": validate_parts(),
}
LINK = re.compile(r"\]\(([^)#]+)?(#[^)]*)?\)")
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)


def page(name: str) -> str:
    """Return the text of a page."""
    return (MANUAL / f"{name}.md").read_text(encoding="utf-8")


def anchor(heading: str) -> str:
    """Return the anchor that a heading gets on code hosts."""
    kept = "".join(c for c in heading.lower() if c.isalnum() or c in " -_")
    return kept.strip().replace(" ", "-")


def test_the_manual_ships_inside_the_package() -> None:
    assert tuple(sorted(p.stem for p in MANUAL.glob("*.md"))) == PAGES
    assert all((files("planner") / "manual" / f"{name}.md").is_file() for name in PAGES)


@pytest.mark.parametrize("name", sorted(PARTS))
def test_generated_parts_are_current(name: str) -> None:
    made = with_generated_parts(page(name), PARTS[name])
    if os.environ.get(UPDATE):
        (MANUAL / f"{name}.md").write_text(made, encoding="utf-8")

    assert made == page(name), f"set {UPDATE}=1 to write the page anew"


@pytest.mark.parametrize("constraint", all_constraints(), ids=lambda c: c.name)
def test_every_constraint_is_explained(constraint: object) -> None:
    text = page("program")

    assert f"### {constraint.name}\n" in text
    assert constraint.sentence in text
    assert constraint.math in text


def test_every_section_of_the_grammar_has_its_table() -> None:
    assert {section for _, section in SECTIONS} == sections_of(FleetSpec)


@pytest.mark.parametrize(("title", "section"), SECTIONS, ids=[title for title, _ in SECTIONS])
def test_every_key_is_in_the_reference(title: str, section: type) -> None:
    table = page("spec").partition(f"### {title}\n")[2].partition("\n### ")[0]

    assert [key.name for key in keys_of(section)] == re.findall(r"^\| `([^`]+)` \|", table, re.MULTILINE)


def test_every_error_code_is_explained() -> None:
    missing = codes_of(PACKAGE) - listed_codes(page("errors"))

    assert missing == set()


def test_no_error_code_is_explained_that_nothing_reports() -> None:
    stale = listed_codes(page("errors")) - codes_of(PACKAGE)

    assert stale == set()


def test_the_readme_states_the_bands_of_the_calibration() -> None:
    bands = Bands.from_mapping(Catalog.open(ROOT / "catalog").calibration()).by_line
    known, unknown = ([bands[line][metric].p80 for metric in ("throughput", "ttft")] for line in ("published", "D"))
    prose = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())

    assert f"within a factor of {known[0]:g} of the prediction (time to first token: {known[1]:g})" in prose
    assert f"where nothing comparable was, within {unknown[0]:g} ({unknown[1]:g})." in prose


def test_every_rule_of_the_policies_is_explained() -> None:
    table = page("policies").partition("## The rules\n")[2].partition("\n## ")[0]

    assert {row.split(":")[0] for row in re.findall(r"^\| `([^`]+)` \|", table, re.MULTILINE)} == set(
        all_policy_rules()
    )


def test_every_rule_of_the_candidates_is_explained() -> None:
    assert all(f"| `{rule.name}` |" in page("concepts") for rule in all_rules())


@pytest.mark.parametrize("path", [*(MANUAL / f"{n}.md" for n in PAGES), ROOT / "README.md"], ids=lambda p: p.name)
def test_links_lead_somewhere(path: Path) -> None:
    for target, fragment in LINK.findall(path.read_text(encoding="utf-8")):
        if target.startswith("http"):
            continue
        there = (path.parent / target).resolve() if target else path
        assert there.exists(), target
        if fragment:
            anchors = {anchor(h) for h in HEADING.findall(there.read_text(encoding="utf-8"))}
            assert fragment[1:] in anchors, fragment
