"""Stored plans in every format, word for word, and what must hold for any plan."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stored import PLANS, golden, infeasible_origin, stored

from planner.plan.schema import Plan
from planner.report import json as json_format
from planner.report import markdown, table
from planner.report.content import Table
from planner.report.sections import blocks
from planner.report.sections.pools import BAR_WIDTH, bar

PLAIN_LINE = re.compile(r"[\x20-\x7e]*")
CELL_EDGE = re.compile(r"(?<!\\)\|")


@pytest.mark.parametrize("name", ["prod", "infeasible"])
def test_table(name: str) -> None:
    text = table.render(stored(name))

    assert text == golden(f"{name}.txt", text)


@pytest.mark.parametrize("name", ["prod", "infeasible"])
def test_markdown(name: str) -> None:
    text = markdown.render(stored(name))

    assert text == golden(f"{name}.md", text)


@pytest.mark.parametrize("name", ["prod", "infeasible"])
def test_json(name: str) -> None:
    assert json_format.render(stored(name)) == (PLANS / f"{name}.json").read_text(encoding="utf-8")


def test_infeasible_beside_its_spec() -> None:
    plan, origin = stored("infeasible"), infeasible_origin()
    as_table, as_markdown = table.render(plan, origin), markdown.render(plan, origin)

    assert as_table == golden("infeasible-with-spec.txt", as_table)
    assert as_markdown == golden("infeasible-with-spec.md", as_markdown)


def test_both_formats_say_the_same() -> None:
    """Every cell of every table is in both."""
    plan = stored("prod")
    as_table = table.render(plan)
    as_markdown = markdown.render(plan).replace("\\", "")
    cells = {cell for block in blocks(plan) if isinstance(block, Table) for row in block.rows for cell in row}

    assert len(cells) > 100
    assert [c for c in sorted(cells) if c not in as_table or c not in as_markdown] == []


@pytest.mark.parametrize("name", ["prod", "infeasible"])
def test_tables_are_plain(name: str) -> None:
    """Without a terminal there is nothing but ASCII, no padding at line ends, and no line break inside a row."""
    lines = table.render(stored(name)).splitlines()

    assert all(PLAIN_LINE.fullmatch(line) and line == line.rstrip() for line in lines)


def test_a_narrow_terminal_folds_prose_and_no_row() -> None:
    plan = stored("prod")
    wide, narrow = table.render(plan).splitlines(), table.render(plan, width=60).splitlines()
    rows = [line for line in wide if "  " in line.strip()]

    assert len(narrow) > len(wide)
    assert len(rows) > 30
    assert set(rows) <= set(narrow)
    assert [line for line in narrow if len(line) > 60 and line not in wide] == []


def test_colour_adds_nothing() -> None:
    plan = stored("prod")
    colored = re.sub(r"\x1b\[\d*m", "", table.render(plan, color=True))

    assert [line.rstrip() for line in colored.splitlines()] == table.render(plan).splitlines()


def test_markdown_tables_keep_their_columns() -> None:
    """Names with bars, backticks and tags neither break a row nor become markup."""
    name = "a|b`c<img src=x>*d*[e](f)$g$"
    plan = _renamed(stored("prod"), "assistant", name)
    text = markdown.render(plan)
    widths = [
        [len(CELL_EDGE.findall(line)) for line in part.splitlines()] for part in text.split("\n\n") if part[0] == "|"
    ]

    assert r"a\|b\`c\<img src=x\>\*d\*\[e\](f)\$g\$" in text
    assert "<img" not in text.replace(r"\<img", "")
    assert all(len(set(counts)) == 1 for counts in widths)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("@org/team", "@<!-- -->org/team"),
        ("a@example.com", "a@<!-- -->example.com"),
        ("org/repo#12, #3", r"org/repo\#<!-- -->12, \#<!-- -->3"),
        ("see GH-7", "see GH-<!-- -->7"),
        ("https://example.com/a_b", r"https:<!-- -->//example.com/a\_b"),
        ("WWW.example.com", "WWW<!-- -->.example.com"),
        ("0 @ 5, # 1, 12:30", r"0 @ 5, \# 1, 12:30"),
    ],
)
def test_markdown_calls_nobody_and_links_nowhere(text: str, shown: str) -> None:
    """Platforms make mentions and links of text after Markdown is read, so that a backslash does not help."""
    assert markdown.escaped(text) == shown
    assert shown in markdown.render(_renamed(stored("prod"), "assistant", text))


@pytest.mark.parametrize("text", ["line\nbreak", "\x1b[31mred", "\u202egnp.exe", "tab\there", "\x9b0m", "a\u2028b"])
def test_names_cannot_move_the_cursor(text: str) -> None:
    plan = _renamed(stored("prod"), "assistant", text)
    for rendered in (table.render(plan), markdown.render(plan)):
        assert text not in rendered
        assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e\u2028]", rendered)


def _renamed(plan: Plan, old: str, new: str) -> Plan:
    """Replace a name everywhere in a plan."""
    text = (
        plan.model_dump_json(by_alias=True)
        .replace(json.dumps(old), json.dumps(new))
        .replace(f".{old}.", f".{json.dumps(new)[1:-1]}.")
    )
    return Plan.model_validate_json(text)


LEAVES = st.one_of(
    st.just(0), st.just(-1.5), st.just(1e300), st.just(5e-324), st.just(10**30), st.just(None), st.just(""),
    st.just([]), st.just({}), st.text(max_size=20),
)  # fmt: skip


@settings(max_examples=150, derandomize=True, deadline=None)
@given(choice=st.randoms(use_true_random=False), leaf=LEAVES)
def test_no_plan_that_can_be_read_breaks_a_report(choice: st.DataObject, leaf: object) -> None:
    """Whatever stands in one place of a plan: if the schema takes it, every format prints it."""
    data = json.loads((PLANS / f"{choice.choice(['prod', 'infeasible'])}.json").read_text(encoding="utf-8"))
    _replace_one(data, leaf, choice)
    try:
        plan = Plan.model_validate(data)
    except ValueError:
        return

    for rendered in (table.render(plan), markdown.render(plan), table.render(plan, color=True, width=40)):
        assert rendered.endswith("\n")


def _replace_one(node: object, leaf: object, choice: object) -> None:
    """Walk to a random place and put the leaf there."""
    while True:
        keys = list(node) if isinstance(node, dict) else list(range(len(node)))  # type: ignore[arg-type]
        if not keys:
            return
        key = choice.choice(keys)  # type: ignore[attr-defined]
        if not isinstance(node[key], dict | list) or choice.random() < 0.15:  # type: ignore[index,attr-defined]
            node[key] = leaf  # type: ignore[index]
            return
        node = node[key]  # type: ignore[index]


@given(sizes=st.lists(st.floats(0, 1e12), min_size=6, max_size=6))
@settings(max_examples=100, derandomize=True, deadline=None)
def test_bars_are_always_full(sizes: list[float]) -> None:
    hbm = stored("prod").pools[0].hbm_bytes_per_gpu
    names = ("weights", "kv_pool", "activations", "runtime", "graphs", "free")
    drawn = bar(hbm.model_copy(update=dict(zip(names, sizes, strict=True))))

    assert len(drawn) == (BAR_WIDTH if sum(sizes) > 0 else 0)
    assert list(drawn) == sorted(drawn, key="WKARG.".index)
    for letter, size in zip("WKARG.", sizes, strict=True):
        assert abs(drawn.count(letter) - BAR_WIDTH * size / (sum(sizes) or 1.0)) <= 1.0
