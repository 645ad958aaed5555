"""What a report says, without any layout: titles, tables of text and lines. Formats only decide how it looks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from planner.diagnostics import Diagnostic, Span

if TYPE_CHECKING:  # it loads the solver, which a plan alone does not need
    from planner.study import Study


@dataclass(frozen=True)
class Column:
    """A column of a table; numbers stand to the right. `is_key` marks cells that are keys of the spec."""

    title: str
    is_number: bool = False
    is_key: bool = False


@dataclass(frozen=True)
class Table:
    """Rows of text under column titles, with lines of explanation below."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Lines:
    """Lines of prose under a title; an empty title continues what stands above."""

    title: str
    lines: tuple[str, ...]


@dataclass(frozen=True)
class Excerpt:
    """A finding about the spec, shown with the lines that it is about."""

    diagnostic: Diagnostic
    sources: Mapping[str, Sequence[str]]


Block = Table | Lines | Excerpt


@dataclass(frozen=True)
class Origin:
    """The spec that a plan was made from: where its keys stand, its lines by path, and what it adds to the plan, if asked for."""

    locate: Callable[[str], Span | None]
    sources: Mapping[str, Sequence[str]] = field(default_factory=dict)
    study: Study | None = None


def texts(*titles: str) -> tuple[Column, ...]:
    """Return columns of text."""
    return tuple(Column(title) for title in titles)


def numbers(*titles: str) -> tuple[Column, ...]:
    """Return columns of numbers."""
    return tuple(Column(title, is_number=True) for title in titles)


def keys(*titles: str) -> tuple[Column, ...]:
    """Return columns of keys of the spec."""
    return tuple(Column(title, is_key=True) for title in titles)
