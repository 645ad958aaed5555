"""A plan as tables for the terminal. Widths come from the data, or from the terminal where there is one."""

from __future__ import annotations

import io
import textwrap

from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from planner.plan.schema import Plan
from planner.report.content import Block, Excerpt, Lines, Origin, Table
from planner.report.diagnostics import render_full
from planner.report.sections import blocks

PROSE_WIDTH = 120
UNLIMITED = 10_000
INDENT = 2


def render(plan: Plan, origin: Origin | None = None, color: bool = False, width: int | None = None) -> str:
    """Return a plan as text. `width` is that of the terminal; without one, nothing is folded but prose."""
    file = io.StringIO()
    console = Console(
        file=file,
        width=width or UNLIMITED,
        force_terminal=color,
        color_system="standard" if color else None,
        no_color=not color,
        markup=False,
        highlight=False,
        emoji=False,
        legacy_windows=False,
        _environ={},
    )
    for number, block in enumerate(blocks(plan, origin)):
        if number and not (isinstance(block, Lines) and not block.title):
            console.print()
        _print(console, block, min(width or PROSE_WIDTH, PROSE_WIDTH))
    lines = file.getvalue().splitlines()
    return "".join(f"{line if color else line.rstrip()}\n" for line in lines)


def _print(console: Console, block: Block, width: int) -> None:
    if isinstance(block, Excerpt):
        console.print(Text(render_full([block.diagnostic], block.sources).rstrip("\n")), soft_wrap=True)
        return
    if block.title:
        console.print(Text(block.title, style="bold"), soft_wrap=True)
    if isinstance(block, Table):
        console.print(_grid(block))
    for line in block.notes if isinstance(block, Table) else block.lines:
        console.print(Text(_wrapped(line, width)), soft_wrap=True)


def _grid(table: Table) -> Grid:
    grid = Grid(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    grid.add_column("", width=INDENT - 2, no_wrap=True)
    for column in table.columns:
        grid.add_column(column.title, justify="right" if column.is_number else "left", overflow="fold")
    for row in table.rows:
        grid.add_row("", *(Text(cell) for cell in row))
    return grid


def _wrapped(line: str, width: int) -> str:
    indent = " " * INDENT
    return textwrap.fill(
        line, width, initial_indent=indent, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )
