"""A plan as tables of text. Their widths come from the data, so that a terminal and a file show the same rows."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Sequence

from rich.console import Console
from rich.padding import Padding
from rich.table import Table as Grid
from rich.text import Text

from planner.plan.schema import Plan
from planner.report.content import Block, Excerpt, Lines, Origin, Table
from planner.report.diagnostics.full import render_full
from planner.report.sections import blocks

PROSE_WIDTH = 120
UNLIMITED = 10_000
INDENT = 2


def render(plan: Plan, origin: Origin | None = None, color: bool = False, width: int | None = None) -> str:
    """Return a plan as text; see `print_blocks`."""
    return print_blocks(blocks(plan, origin), color, width)


def print_blocks(content: Sequence[Block], color: bool = False, width: int | None = None) -> str:
    """Return parts of a report as text.

    Tables are as wide as their data; prose is folded into `width`, that of the terminal where there is one.
    """
    file = io.StringIO()
    console = Console(
        file=file,
        width=UNLIMITED,
        force_terminal=color,
        color_system="standard" if color else None,
        no_color=not color,
        markup=False,
        highlight=False,
        emoji=False,
        legacy_windows=False,
        _environ={},
    )
    for number, block in enumerate(content):
        if number and not (isinstance(block, Lines) and not block.title):
            console.print()
        _print(console, block, width)
    lines = file.getvalue().splitlines()
    return "".join(f"{line if color else line.rstrip()}\n" for line in lines)


def _print(console: Console, block: Block, width: int | None) -> None:
    if isinstance(block, Excerpt):
        console.print(Text(render_full([block.diagnostic], block.sources).rstrip("\n")))
        return
    if block.title:
        console.print(Text(block.title, style="bold"))
    if isinstance(block, Table):
        console.print(Padding(_grid(block), (0, 0, 0, INDENT), expand=False))
    for line in block.notes if isinstance(block, Table) else block.lines:
        console.print(Text(_wrapped(line, min(width or PROSE_WIDTH, PROSE_WIDTH))))


def _grid(table: Table) -> Grid:
    grid = Grid(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for column in table.columns:
        grid.add_column(column.title, justify="right" if column.is_number else "left", no_wrap=True)
    for row in table.rows:
        grid.add_row(*(Text(cell) for cell in row))
    return grid


def _wrapped(line: str, width: int) -> str:
    indent = " " * INDENT
    return textwrap.fill(
        line, width, initial_indent=indent, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )
