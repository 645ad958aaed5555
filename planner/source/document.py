"""A parsed YAML document: plain data, and the place of every path into it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from planner.diagnostics import Span
from planner.source.nodes import Mark, Node
from planner.source.text import split_lines

YamlPath = tuple[str | int, ...]
"""Keys and list positions from the top of a document."""


def format_path(path: YamlPath) -> str:
    """Write a path as people do: `workloads.chat.slo`, `supply.offers[1].price`."""
    text = ""
    for segment in path:
        if isinstance(segment, int):
            text += f"[{segment}]"
        else:
            text += f".{segment}" if text else segment
    return text


@dataclass(frozen=True)
class Document:
    """A YAML file whose top level is a mapping. `data` is plain Python and must not be changed."""

    path: str
    text: str
    root: Node

    @property
    def data(self) -> dict[str, Any]:
        """The values: dict, list, str, int, float, bool, None; keys are always text."""
        data: dict[str, Any] = self.root.data
        return data

    @cached_property
    def lines(self) -> tuple[str, ...]:
        """The lines of the file, without line ends."""
        return split_lines(self.text)

    def has(self, path: YamlPath) -> bool:
        """Tell whether the path leads to a value."""
        return len(self.trim(path)) == len(path)

    def trim(self, path: YamlPath) -> YamlPath:
        """Return the longest leading part of the path that leads to a value."""
        return path[: len(self._walk(path)) - 1]

    def text_at(self, path: YamlPath) -> str | None:
        """Return a scalar as it is written, without quotes; None for other values and missing paths."""
        return self._walk(path)[-1].text if self.has(path) else None

    def span(self, path: YamlPath, key: bool = False) -> Span:
        """Return the place of a value, or of its key; of the nearest existing ancestor where the path is missing.

        A value that is empty or spans several lines is shown by its key.
        """
        nodes = self._walk(path)
        node = nodes[-1]
        mark = node.mark
        if len(nodes) > 1 and (key or not node.is_on_one_line):
            mark = nodes[-2].key_mark(path[len(nodes) - 2]) or mark
        return self._to_span(mark)

    def part(self, path: YamlPath, start: int, end: int) -> Span:
        """Return the place of the characters `start` to `end` of a scalar's text; of the scalar where they moved."""
        span = self.span(path)
        text = self.text_at(path)
        if text is None or end <= start:
            return span
        line = self.lines[span.line - 1] if span.line <= len(self.lines) else ""
        for quotes in (0, 1):
            first = span.column - 1 + quotes
            if line[first : first + len(text)] == text:
                return Span(self.path, span.line, first + start + 1, first + end + 1)
        return span

    def _walk(self, path: YamlPath) -> list[Node]:
        nodes = [self.root]
        for segment in path:
            child = nodes[-1].child(segment)
            if child is None:
                break
            nodes.append(child)
        return nodes

    def _to_span(self, mark: Mark) -> Span:
        end = mark.end_column if mark.line == mark.end_line else mark.column + 1
        return Span(self.path, mark.line + 1, mark.column + 1, max(end, mark.column + 1) + 1)
