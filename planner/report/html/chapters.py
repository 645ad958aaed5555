"""What a page says, chapter by chapter: the sections of every report, with charts and tables that only a page has."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from planner.plan.schema import Plan
from planner.report import explain
from planner.report.content import Block, Origin
from planner.report.html import figures
from planner.report.html.svg import Figure
from planner.report.sections import SECTIONS
from planner.report.sections.api import api
from planner.report.sections.certificate import certificate, certified_latency
from planner.report.sections.commitments import commitments
from planner.report.sections.growth import growth_steps, purchases
from planner.report.sections.headline import headline
from planner.report.sections.infeasible import infeasible
from planner.report.sections.nodes import nodes
from planner.report.sections.notes import assumptions, every_assumption, excluded, rejections
from planner.report.sections.periods import by_period, periods
from planner.report.sections.policies import policies
from planner.report.sections.pools import limits, measurements, memory, pools, predictions
from planner.report.sections.preferred import preferred
from planner.report.sections.robust import robustness
from planner.report.sections.workloads import latency, workloads
from planner.report.study import considered
from planner.study import Study

Section = Callable[[Plan], Block | None]
ELSEWHERE: tuple[Section, ...] = (headline, memory, assumptions)
"""Sections that the page has in another form: its head, a chart with its data, and all assumptions with their sources."""
CHAPTERS: Mapping[str, tuple[str, tuple[Section, ...]]] = {
    "verdict": ("Verdict", (certificate, preferred, policies)),
    "fleet": ("Fleet and cost", (pools, nodes, commitments)),
    "ahead": ("Months ahead and scenarios", (robustness, growth_steps, purchases)),
    "hours": ("Hours of the day", (periods, by_period)),
    "latency": (
        "Traffic and latency",
        (workloads, api, latency, certified_latency, predictions, measurements),
    ),
    "hardware": ("Memory and roofline", ()),
    "binding": ("What is binding", (limits,)),
    "alternatives": ("Alternatives and changes", (rejections,)),
    "assumptions": ("Assumptions", (excluded,)),
}
MORE = ("more", "More")
"""Where sections are shown that no chapter names."""
WITHOUT_SPEC = (
    "The spec of this plan, or the catalog that it was made with, was not at hand: latency against load, rooflines, demand by hour "
    "and the shapes that were considered are left out. `planner show PLAN --spec SPEC --format html` has them."
)
NOT_PLANNED = (
    "What more demand or looser limits would cost was not planned anew for this page: `--sensitivities` does that."
)
TIGHTENED = "This plan was tightened by replays; what changes are compared with is not, and may be cheaper for that."


@dataclass(frozen=True)
class Chapter:
    """A part of a page under one heading; `name` is unique in the page."""

    name: str
    title: str
    notes: tuple[str, ...]
    figures: tuple[Figure, ...]
    blocks: tuple[Block, ...]


def chapters(plan: Plan, origin: Origin | None) -> list[Chapter]:
    """Return everything that a page says about a plan; chapters that would be empty are left out."""
    study = origin.study if origin is not None else None
    named = {section for _, own in CHAPTERS.values() for section in own}
    rest = tuple(s for s in SECTIONS if s not in named and s not in ELSEWHERE)
    parts = {**CHAPTERS, MORE[0]: (MORE[1], rest)}
    found = [
        Chapter(
            name,
            title,
            _notes(name, plan, study),
            _figures(name, plan, study),
            (*_before(name, plan, origin), *_of(own, plan), *_after(name, plan, study)),
        )
        for name, (title, own) in parts.items()
    ]
    return [chapter for chapter in found if chapter.blocks or chapter.figures]


def _of(own: tuple[Section, ...], plan: Plan) -> list[Block]:
    return [block for block in (section(plan) for section in own) if block is not None]


def _before(name: str, plan: Plan, origin: Origin | None) -> list[Block]:
    if name == "verdict" and plan.infeasible is not None:
        return infeasible(plan.infeasible, origin)
    return []


def _after(name: str, plan: Plan, study: Study | None) -> list[Block]:
    if name == "binding":
        return [*explain.scarcity(plan), *explain.growth(plan)]
    if name == "alternatives":
        planned = explain.sensitivities(study.sensitivities) if study is not None and study.sensitivities else []
        return [*([considered(study.considered)] if study is not None else []), *explain.prices(plan), *planned]
    every = every_assumption(plan) if name == "assumptions" else None
    return [] if every is None else [every]


def _figures(name: str, plan: Plan, study: Study | None) -> tuple[Figure, ...]:
    if name == "fleet":
        return tuple(figures.cost(plan))
    if name == "ahead":
        return tuple(figures.ahead(plan))
    if name == "hardware":
        return (*figures.memory(plan), *(figures.roofline(study) if study is not None else ()))
    if study is not None and name == "latency":
        return tuple(figures.latency(plan, study))
    return tuple(figures.hours(plan, study)) if study is not None and name == "hours" else ()


def _notes(name: str, plan: Plan, study: Study | None) -> tuple[str, ...]:
    if name == "verdict" and study is None:
        return (WITHOUT_SPEC,)
    if name == "alternatives" and plan.pools:
        asked = study is not None and bool(study.sensitivities)
        tightened = asked and plan.certificate is not None and bool(plan.certificate.tightened)
        return (*(() if asked else (NOT_PLANNED,)), *((TIGHTENED,) if tightened else ()))
    if name == "latency" and study is not None and figures.not_drawn(study):
        return (f"Charts are those of the costliest pools; {figures.not_drawn(study)} more have none.",)
    return ()
