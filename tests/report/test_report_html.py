"""The HTML report: everything the other formats say is in it, nothing is fetched, no name breaks out, and plans are read back."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
from base64 import b64encode
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from matplotlib.axes import Axes
from report_pages import DEARER, Page, prod_origin, prod_page
from stored import PLANS, TESTS, infeasible_origin, stored

from planner.diagnostics import DiagnosticError
from planner.plan.io import dump, loads, with_digest
from planner.plan.page import ELEMENT_ID, START_TAG, plans_in
from planner.plan.schema import Plan
from planner.report import html
from planner.report.content import Lines, Origin, Table
from planner.report.html.chapters import CHAPTERS, ELSEWHERE, chapters
from planner.report.html.figures import latency
from planner.report.html.maths import formulas, note
from planner.report.html.svg import draw, legend, named
from planner.report.sections import SECTIONS
from planner.study import LimitCurve, PoolCurves

LARGEST_BYTES = 1_000_000
HOSTILE = f"</script>{START_TAG}<img src=x onerror=alert(1)>'\"`{{{{ 7*7 }}}}$x$\u202egnp"
HARMLESS = HOSTILE.replace("\u202e", "\ufffd")
ROOT = TESTS.parent


@pytest.fixture(scope="module")
def page() -> Page:
    return Page(prod_page())


def test_everything_that_other_formats_say_is_in_it(page: Page) -> None:
    plan = stored("prod")
    shown = [block for s in SECTIONS if s not in ELSEWHERE if (block := s(plan)) is not None]
    cells = {cell for block in shown if isinstance(block, Table) for row in block.rows for cell in row}
    titles = {block.title for block in shown if block.title}
    whole = " ".join(page.texts)
    lines = {line for block in shown if isinstance(block, Lines) for line in block.lines if "`" not in line}

    assert len(cells) > 80
    assert {text for text in cells | titles if text not in page.texts} == set()
    assert {line for line in lines if line not in whole} == set()
    assert {a.source for a in plan.assumptions} <= set(page.texts)


def test_a_section_that_no_chapter_names_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    more = (*SECTIONS, lambda _: Lines("New", ()))
    monkeypatch.setattr("planner.report.html.chapters.SECTIONS", more)
    last = chapters(stored("infeasible"), None)[-1]

    assert (last.title, last.blocks) == ("More", (Lines("New", ()),))
    assert {s for _, own in CHAPTERS.values() for s in own} | set(ELSEWHERE) == set(SECTIONS)


def test_what_the_spec_adds(page: Page) -> None:
    study = prod_origin().study
    assert study is not None
    charts = [given["aria-labelledby"] for tag, given in page.elements if tag == "svg"]
    names = [str(name).removesuffix("-title") for name in charts]

    assert {n.partition("-")[0] for n in names} == {"cost", "hbm", "hours", "latency", "roofline"}
    assert sum(n.startswith("latency") for n in names) == sum(len({c.metric for c in p.curves}) for p in study.curves)
    assert sum(n.startswith("roofline") for n in names) == len({p.gpu for p in study.points})
    assert DEARER.name in page.texts
    assert {row.shape for row in study.considered} <= set(page.texts)
    assert any(t.endswith("; 191 rows.") for t in page.texts)


def test_it_is_one_small_page_that_fetches_nothing(page: Page) -> None:
    text = prod_page()
    links = [*page.values("href"), *page.values("src"), *re.findall(r"url\(([^)]*)\)", text)]
    addresses = set(re.findall(r"\bhttps?://[^\s\"<]*", text)) - {
        "http://www.w3.org/2000/svg",
        "http://www.w3.org/1998/Math/MathML",
    }

    assert len(text.encode()) < LARGEST_BYTES
    assert {link for link in links if not link.startswith(("#", "data:,"))} == set()
    assert addresses == set()
    assert page.open == []


def test_its_own_script_is_the_only_one_that_may_run(page: Page) -> None:
    policy = next(str(g["content"]) for _, g in page.elements if g.get("http-equiv") == "Content-Security-Policy")
    digest = b64encode(hashlib.sha256(page.scripts[-1].encode()).digest()).decode()

    assert f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; " in policy
    assert len(page.scripts[-1].splitlines()) < 45
    assert not re.search(r" on[a-z]+=", prod_page())


def test_ids_and_references(page: Page) -> None:
    ids = page.values("id")
    wanted = [link.removeprefix("#") for link in page.values("href") if link.startswith("#")]
    wanted += [name for value in page.values("aria-labelledby") for name in value.split()]
    wanted += re.findall(r"url\(#([^)]*)\)", prod_page())

    assert len(ids) == len(set(ids))
    assert set(wanted) <= set(ids)
    assert "L53" in wanted  # a policy, by its line of the spec


def test_it_can_be_read_aloud(page: Page) -> None:
    levels = [int(tag[1]) for tag, _ in page.elements if re.fullmatch(r"h\d", tag)]
    tags = [tag for tag, _ in page.elements]
    heads = [given for tag, given in page.elements if tag == "th"]

    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    assert tags.count("table") == tags.count("caption")
    assert all(head.get("scope") in ("col", "row") for head in heads)
    assert (
        tags.count("svg") == sum(g.get("role") == "img" for t, g in page.elements if t == "svg") == tags.count("figure")
    )
    assert page.values("lang") == ["en"]
    assert all(g.get("alttext") for t, g in page.elements if t == "math")
    assert {"header", "nav", "main", "footer"} <= set(tags)


def test_a_legend_has_every_name_that_was_given() -> None:
    """Also those that start with `_`, as matplotlib calls the series that were given none."""
    names = ["_chat", "_child3", "plain", " spaced"]

    def paint(axes: Axes) -> None:
        axes.plot([0.0, 1.0], [0.0, 1.0])
        for name in names:
            axes.plot([0.0, 1.0], [0.0, 2.0], label=named(name))
        legend(axes, 2)

    shown = re.findall(r"<text[^>]*>([^<]*)</text>", draw("c", "title", paint))

    assert [text for text in shown if not re.fullmatch(r"[\d.]+", text)] == names


def test_charts_take_their_colours_from_the_page() -> None:
    charts = re.findall(r"<svg.*?</svg>", prod_page(), re.DOTALL)

    assert charts
    assert {color for chart in charts for color in re.findall(r"#[0-9a-f]{6}\b", chart)} == set()


@pytest.mark.parametrize("name", ["prod", "infeasible"])
def test_plans_are_read_back(name: str) -> None:
    plan, saved = stored(name), (PLANS / f"{name}.json").read_bytes()
    text = prod_page() if name == "prod" else html.render(plan, infeasible_origin())
    back = loads(text.encode(), "report.html")

    assert dump(back).encode() == saved
    assert dump(loads(b"\xef\xbb\xbf\n" + text.encode(), "report.html")).encode() == saved


def test_an_infeasible_plan_points_at_its_lines() -> None:
    page = Page(html.render(stored("infeasible"), infeasible_origin()))

    assert "Infeasible" in page.texts
    assert page.texts["Line 14 of the spec"] == 1
    assert {"#L13", "#L14"} <= set(page.values("href"))


def test_without_its_spec_a_page_says_what_is_left_out() -> None:
    page = Page(html.render(stored("infeasible")))

    assert any("was not at hand" in text for text in page.texts)
    assert "spec" not in page.values("id")
    assert len(page.scripts) == 2


def test_numbers_of_rows_are_shown_or_missed() -> None:
    prod = stored("prod")

    assert "Those without rows" in note({"demand": 1}, prod)
    assert "known only with the spec" in note({}, prod)
    assert "3 periods together" in note(
        {}, prod.model_copy(update={"demand_by_period": {}, "periods": 3 * prod.periods})
    )


def test_a_percentile_without_end_is_neither_drawn_nor_listed() -> None:
    """Neither is a bound of the load where a pool is planned beyond it, as one that was kept may be."""
    curve = LimitCurve("chat", "ttft_p95", 2.0, (1.0, 1.5, None))
    study = prod_origin().study
    assert study is not None
    pool = PoolCurves("chat-2", 3.0, (1.0, 2.0, 3.0), (curve,))
    (figure,) = latency(stored("prod"), replace(study, curves=(pool,)))

    assert [row[-1] for row in figure.data.rows] == ["1 s", "1.5 s", "-"]
    assert "nan" not in figure.svg.lower()


def test_hostile_names_stay_text() -> None:
    text = html.render(_renamed(stored("prod"), HOSTILE), Origin(lambda _: None, {HOSTILE: [HOSTILE]}))
    page = Page(text)
    plan = loads(text.encode(), "report.html")

    assert [tag for tag, _ in page.elements if tag == "img"] == []
    assert len(page.scripts) == 2
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e\u2028]", text)
    assert HARMLESS in page.texts
    assert plan.fleet == HOSTILE
    assert {w.name for w in plan.workloads} >= {HOSTILE}


def test_pages_are_the_same_bytes_in_every_process(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    program = (
        "from pathlib import Path; from planner.plan.io import load; from planner.report import html; "
        f"Path({str(path)!r}).write_text(html.render(load(Path({str(PLANS / 'prod.json')!r}))), newline='\\n')"
    )
    seeded = {**os.environ, "PYTHONHASHSEED": "7"}
    subprocess.run([sys.executable, "-c", program], check=True, cwd=ROOT, env=seeded)

    assert path.read_text(encoding="utf-8") == html.render(stored("prod"))


def test_every_constraint_has_its_formula() -> None:
    found = formulas({})

    assert len(found) > 30
    assert all("<mtext>\\" not in f.math and "\\" not in re.sub(r'alttext="[^"]*"', "", f.math) for f in found)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"<!DOCTYPE html><p>nothing", "this page holds no plan"),
        (b'<script id="plan">{}</script>', "this page holds no plan"),
        (b'<script type="application/json" id="plan">{}</script>' * 2, "this page holds 2 plans"),
        (b'<script type="application/json" id="plan">{"a": </script>', "this is not JSON"),
        (b'<script type="application/json" id="plan">{"schema_version": 2}</script>', "not a plan of schema_version 1"),
        (b'<script type="application/json" id="plan">{"a": 1', "this is not JSON"),
        (b'<script type="application/json" id="plan">' * 100_000, "this page holds 100000 plans"),
        (b"<" * 10_000, "this page holds no plan"),
        (b"<a " * 1_000_000, "this page holds no plan"),
        (b"<![a<![a", "this page holds no plan"),
        (b"<!--" * 100_000 + b"<!DOCTYPE [" * 100_000 + b"</script" * 100_000, "this page holds no plan"),
    ],
    ids=["no plan", "no data", "two", "cut", "newer", "no end", "many", "no page", "tags", "sections", "openings"],
)
def test_pages_that_hold_no_plan(content: bytes, words: str) -> None:
    with pytest.raises(DiagnosticError, match=re.escape(words)):
        loads(content, "report.html")


def test_a_changed_page_is_refused() -> None:
    text = html.render(stored("infeasible")).replace('"fleet": "too-small"', '"fleet": "small"')

    with pytest.raises(DiagnosticError, match="its digest does not match"):
        loads(text.encode(), "report.html")


def test_the_element_is_what_the_manual_says() -> None:
    data = json.loads(plans_in(prod_page().encode())[0])

    assert ELEMENT_ID == "plan"
    assert data["fleet"] == "prod"


def _renamed(plan: Plan, name: str) -> Plan:
    """Return a plan whose fleet, pools, models, workloads and offers have a name, with the digest that goes with it."""
    data = json.loads(plan.model_dump_json(by_alias=True))
    data["fleet"] = name
    for pool in data["pools"][:1]:
        pool.update(name=name, model=name, workloads={name: 1.0}, gpu=name)
    for part in (*data["workloads"][:1], *data["policies"][:1]):
        part.update(name=name) if "name" in part else part.update(id=name)
    data["nodes"][0].update(offer=name, provider=name)
    return with_digest(Plan.model_validate(data))
