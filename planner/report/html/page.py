"""Put a page together: head, chapters, maths, the spec with its lines, and the plan itself as data."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Callable
from dataclasses import asdict, dataclass
from hashlib import sha256
from importlib.resources import files

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup, escape

from planner.plan.io import dump
from planner.plan.page import MEDIA_TYPE, START_TAG, script_text
from planner.plan.schema import Plan
from planner.report import figures
from planner.report.content import Excerpt, Lines, Origin
from planner.report.diagnostics.full import render_full
from planner.report.html.chapters import chapters
from planner.report.html.maths import formulas, note
from planner.report.rows import as_json
from planner.report.sections.headline import headline
from planner.study import Study

_INDEX = re.compile(r"\[(\d+)\]")
_CODE = re.compile(r"`([^`]+)`")
_DIGEST_DIGITS = 19


@dataclass(frozen=True)
class Chip:
    """A verdict in a few words; `tone` (good, fair, bad) colours what the words say."""

    words: str
    tone: str


def page(plan: Plan, origin: Origin | None) -> str:
    """Return a plan as an HTML page."""
    study = origin.study if origin is not None else None
    rows = study.rows if study is not None else {}
    first = headline(plan)
    assert isinstance(first, Lines)
    script = _read("sort.js")
    content = chapters(plan, origin)
    return (
        _environment()
        .get_template("page.html.j2")
        .render(
            fleet=figures.visible(plan.fleet),
            first=first,
            chips=chips(plan),
            money=_money(plan),
            facts=_facts(plan, origin),
            chapters=content,
            formulas=formulas(rows),
            formulas_note=note(rows, plan),
            sources=_sources(origin),
            place=_finder(origin),
            kind_of=lambda block: type(block).__name__,
            excerpt=_excerpt,
            style=Markup(_read("style.css")),
            script=Markup(script),
            script_hash=b64encode(sha256(script.encode()).digest()).decode(),
            media_type=MEDIA_TYPE,
            plan_tag=Markup(START_TAG),
            plan_json=Markup(script_text(dump(plan))),
            study_json=_study_json(study) if study is not None else None,
        )
    )


def chips(plan: Plan) -> list[Chip]:
    """Return the verdicts that are read first: the proof, the policies, the replay."""
    found = [_proof(plan)]
    denied = sum(p.outcome == "deny" for p in plan.policies)
    if denied:
        found.append(Chip(f"Denied by {denied} {'policy' if denied == 1 else 'policies'}", "bad"))
    elif plan.policies:
        found.append(Chip("No policy denies it", "good"))
    if plan.pools:
        held = plan.certificate is not None and plan.certificate.replayed.verdict == "pass"
        found.append(Chip("Certified by replay", "good") if held else Chip("Not certified", "fair"))
    return found


def _proof(plan: Plan) -> Chip:
    if plan.objective is None:
        return Chip("Infeasible" if plan.status == "infeasible" else "No plan found", "bad")
    distance = figures.gap(plan.objective.gap)
    if plan.status == "unproven":
        return Chip(f"Not proven: at most {distance} from the best", "bad")
    return Chip(f"Proven within {distance}", "good")


def _money(plan: Plan) -> tuple[str, str] | None:
    if plan.objective is None:
        return None
    return figures.usd(plan.objective.usd_per_month), figures.usd(plan.objective.usd_per_hour)


def _facts(plan: Plan, origin: Origin | None) -> list[tuple[str, str]]:
    """Return what a reviewer needs to find the inputs again."""
    digests, study = plan.digests, origin.study if origin is not None else None
    catalog = f"prices up to {study.catalog_date}, {_brief(digests.catalog)}" if study else _brief(digests.catalog)
    spec = ", ".join([*(figures.visible(path) for path in (origin.sources if origin else {})), _brief(digests.spec)])
    return [
        ("As of", figures.visible(plan.as_of)),
        ("Spec", spec),
        ("Catalog", catalog),
        ("Calibration", _brief(digests.calibration)),
        ("Plan", _brief(digests.plan)),
        (
            "Made by",
            figures.visible(
                f"planner {plan.versions.planner}, pyomo {plan.versions.pyomo}, HiGHS {plan.versions.highs}"
            ),
        ),
    ]


def _brief(digest: str) -> str:
    return figures.visible(digest[:_DIGEST_DIGITS])


def _sources(origin: Origin | None) -> list[tuple[str, list[str]]]:
    """Return the lines of the spec by the path of its file."""
    sources = origin.sources if origin is not None else {}
    return [(figures.visible(path), [figures.visible(line) for line in lines]) for path, lines in sources.items()]


def _finder(origin: Origin | None) -> Callable[[str], int | None]:
    """Return a function from a key of the spec to its line, None where it has none."""

    def place(key: str) -> int | None:
        if " " in key:  # a place in another file, which is named before it
            return None
        span = origin.locate(_INDEX.sub(r".\1", key)) if origin is not None else None
        return span.line if span is not None and origin is not None and span.path in origin.sources else None

    return place


def _excerpt(block: Excerpt) -> tuple[str, int | None]:
    """Return a finding as text, and the line of the spec that it is about."""
    span = block.diagnostic.span
    line = span.line if span is not None and span.path in block.sources else None
    return render_full([block.diagnostic], block.sources), line


def _study_json(study: Study) -> Markup:
    """Return the data of the charts as JSON without a space."""
    return Markup(script_text(json.dumps(json.loads(as_json(asdict(study))), separators=(",", ":"))))


def prose(text: str) -> Markup:
    """Return text with what stands between backticks as code."""
    return Markup(_CODE.sub(r"<code>\1</code>", str(escape(text))))


def _environment() -> Environment:
    found = Environment(
        loader=FunctionLoader(_read),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    found.filters["prose"] = prose
    return found


def _read(name: str) -> str:
    return (files("planner.report.html") / "templates" / name).read_text(encoding="utf-8")
