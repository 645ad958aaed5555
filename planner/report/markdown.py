"""A plan as GitHub Markdown: for comments on changes and for pages. Names from a spec are always escaped."""

from __future__ import annotations

import re
from collections.abc import Sequence

from planner.plan.schema import Plan
from planner.report.content import Block, Excerpt, Origin, Table
from planner.report.diagnostics.full import render_full
from planner.report.sections import blocks

_SPECIAL = re.compile(r"([\\`*_\[\]<>|~$&#])")
_ACTIVE = re.compile(r"@(?=\w)|#(?=\d)|\bGH-(?=\d)|:(?=//)|\bwww(?=\.)", re.IGNORECASE)
"""What platforms turn into mentions, references and links even after a backslash: they look at the text that is shown."""
_INERT = "<!-- -->"
_BULLET = re.compile(r"^[+-](?=\s)")
"""What would make an item of a list of a line."""
_BACKTICKS = re.compile(r"`+")
_SHORTEST_FENCE = 3


def render(plan: Plan, origin: Origin | None = None, color: bool = False, width: int | None = None) -> str:  # noqa: ARG001
    """Return a plan as Markdown, which has neither colour nor width."""
    return render_blocks(blocks(plan, origin))


def render_blocks(content: Sequence[Block]) -> str:
    """Return parts of a report as Markdown, the first under a heading of its own level."""
    first, *rest = content
    parts = [_block(first, "##"), *(_block(block, "###") for block in rest)]
    return "\n\n".join(parts) + "\n"


def escaped(text: str) -> str:
    """Return text that Markdown shows as it is, and that calls nobody: a comment, which is not shown, parts what would."""
    return _ACTIVE.sub(rf"\g<0>{_INERT}", _SPECIAL.sub(r"\\\1", text))


def _block(block: Block, heading: str) -> str:
    if isinstance(block, Excerpt):
        return _fenced(render_full([block.diagnostic], block.sources).rstrip("\n"))
    title = [f"{heading} {escaped(block.title)}"] if block.title else []
    body = [_table(block)] if isinstance(block, Table) else []
    lines = block.notes if isinstance(block, Table) else block.lines
    return "\n\n".join([*title, *body, *([_list(lines)] if lines else [])])


def _list(lines: tuple[str, ...]) -> str:
    if len(lines) == 1:
        return _BULLET.sub(r"\\\g<0>", escaped(lines[0]))
    return "\n".join(f"- {escaped(line)}" for line in lines)


def _table(table: Table) -> str:
    rows = [
        _row([escaped(c.title) for c in table.columns]),
        _row(["---:" if c.is_number else "---" for c in table.columns]),
    ]
    rows += [_row([escaped(cell) for cell in row]) for row in table.rows]
    return "\n".join(rows)


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _fenced(text: str) -> str:
    """Put text into a fence that is longer than any run of backticks in it."""
    longest = max((len(run) for run in _BACKTICKS.findall(text)), default=0)
    fence = "`" * max(_SHORTEST_FENCE, longest + 1)
    return f"{fence}text\n{text}\n{fence}"
