"""Compose located nodes from YAML events: own duplicate check, tags refused, aliases counted, no recursion."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import yaml

from planner.diagnostics import Diagnostic, Span
from planner.source.nodes import Mark, Node
from planner.source.scalars import resolve

MAX_DEPTH = 50
MAX_NODES = 500_000
"""Most values of a document, with every alias written out."""

_MERGE = "<<"
_TEXT_TAGS = ("!", "tag:yaml.org,2002:str")
_PLAIN_TAGS = ("tag:yaml.org,2002:map", "tag:yaml.org,2002:seq")


class Stop(Exception):  # noqa: N818
    """Nothing can be made of the rest of the text; the reason is among the diagnostics."""


@dataclass(slots=True)
class _Open:
    """A collection whose end has not come yet."""

    node: Node
    anchor: str | None
    key: tuple[str, Mark] | None = None
    merged: list[tuple[Mark, Node]] = field(default_factory=list)


class Composer:
    """Takes events in order; `root` and `diagnostics` are the result."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.root: Node | None = None
        self.diagnostics: list[Diagnostic] = []
        self._stack: list[_Open] = []
        self._anchors: dict[str, Node | None] = {}
        self._documents = 0
        self._nodes = 0

    def feed(self, event: yaml.Event) -> None:
        """Take the next event. Raises `Stop` when the text cannot be used at all."""
        self._nodes += 1
        if self._nodes > MAX_NODES:
            raise self._stop(
                "yaml/too-large", f"this file holds more than {MAX_NODES:,} values", event, "split the fleet"
            )
        if isinstance(event, yaml.ScalarEvent):
            self._add(self._scalar(event), event.anchor)
        elif isinstance(event, yaml.MappingStartEvent | yaml.SequenceStartEvent):
            self._open(event)
        elif isinstance(event, yaml.MappingEndEvent | yaml.SequenceEndEvent):
            self._close(event)
        elif isinstance(event, yaml.AliasEvent):
            self._add(self._alias(event), None)
        elif isinstance(event, yaml.DocumentStartEvent):
            self._documents += 1
            if self._documents > 1:
                raise self._stop(
                    "yaml/multiple-documents", "this file holds several documents", event, "one file, one spec"
                )

    def _scalar(self, event: yaml.ScalarEvent) -> Node:
        text = event.value
        plain = event.style is None or event.style == ""
        as_text = not plain or event.tag in _TEXT_TAGS
        if event.tag is not None and event.tag not in _TEXT_TAGS:
            self._refuse_tag(event)
        return Node(text if as_text else resolve(text), _mark(event), text=text)

    def _alias(self, event: yaml.AliasEvent) -> Node:
        name = event.anchor
        if name not in self._anchors:
            raise self._stop(
                "yaml/undefined-alias", f"no anchor `&{name}` comes before `*{name}`", event, f"define `&{name}`"
            )
        node = self._anchors[name]
        if node is None:
            raise self._stop("yaml/alias-expansion", f"`*{name}` stands inside its own anchor", event, "remove it")
        self._nodes += node.size
        if self._nodes > MAX_NODES:
            message = f"aliases expand to more than {MAX_NODES:,} values"
            raise self._stop("yaml/alias-expansion", message, event, "write fewer values, or fewer aliases of aliases")
        return node

    def _open(self, event: yaml.MappingStartEvent | yaml.SequenceStartEvent) -> None:
        if event.tag is not None and event.tag not in (*_PLAIN_TAGS, "!"):
            self._refuse_tag(event)
        if len(self._stack) >= MAX_DEPTH:
            raise self._too_deep(_mark(event))
        node = Node([], _mark(event), items=[])
        if isinstance(event, yaml.MappingStartEvent):
            node = Node({}, _mark(event), entries={})
        if event.anchor is not None:
            self._anchors[event.anchor] = None
        self._stack.append(_Open(node, event.anchor))

    def _close(self, event: yaml.MappingEndEvent | yaml.SequenceEndEvent) -> None:
        open_ = self._stack.pop()
        node, start, end = open_.node, open_.node.mark, _mark(event)
        node.mark = Mark(start.line, start.column, end.end_line, end.end_column)
        for key, source in open_.merged:
            self._merge(node, key, source)
        self._add(node, open_.anchor)

    def _add(self, node: Node, anchor: str | None) -> None:
        if anchor is not None:
            self._anchors[anchor] = node
        if not self._stack:
            self.root = node
            return
        parent = self._stack[-1]
        parent.node.size += node.size
        parent.node.depth = max(parent.node.depth, node.depth + 1)
        if len(self._stack) + node.depth > MAX_DEPTH:
            raise self._too_deep(node.mark)
        if parent.node.items is not None:
            parent.node.items.append(node)
            parent.node.data.append(node.data)
        elif parent.key is None:
            parent.key = (self._key(node), node.mark)
        else:
            self._add_entry(parent, *parent.key, node)
            parent.key = None

    def _key(self, node: Node) -> str:
        if node.text is None:
            self._report("yaml/key", "a key is text, not a list or mapping", node.mark, "name the key")
            return "?"
        return node.text

    def _add_entry(self, parent: _Open, key: str, mark: Mark, node: Node) -> None:
        entries = parent.node.entries
        if entries is None:
            return
        if key == _MERGE:
            parent.merged.append((mark, node))
        elif key in entries:
            self._report_duplicate(key, mark, entries[key][0])
        else:
            entries[key] = (mark, node)
            parent.node.data[key] = node.data

    def _merge(self, node: Node, key: Mark, source: Node) -> None:
        """Add the entries of a merge key (`<<: *anchor`) that the mapping does not give itself."""
        entries = node.entries
        for part in source.items if source.items is not None else [source]:
            if part.entries is None or entries is None:
                self._report("yaml/merge", "`<<` merges mappings only", key, "write `<<: *anchor` of a mapping")
                return
            for name, entry in part.entries.items():
                if name not in entries:
                    entries[name] = entry
                    node.data[name] = entry[1].data

    def _refuse_tag(self, event: Any) -> None:
        mark = _mark(event)
        tag = str(event.tag).replace("tag:yaml.org,2002:", "!!")
        label = "remove the tag; a spec is plain data"
        self._report("yaml/tag", f"tag `{tag[:60]}` is not allowed", mark, label)

    def _report_duplicate(self, key: str, mark: Mark, first: Mark) -> None:
        self.diagnostics.append(
            Diagnostic(
                "yaml/duplicate-key",
                f"`{key[:60]}` is given twice in one mapping",
                self._span(mark),
                label="again here; YAML would silently keep this one",
                related=((self._span(first), "first here"),),
            )
        )

    def _too_deep(self, mark: Mark) -> Stop:
        self._report(
            "yaml/too-deep", f"values are nested more than {MAX_DEPTH} deep", mark, "a spec needs no such depth"
        )
        return Stop()

    def _stop(self, code: str, message: str, event: Any, label: str) -> Stop:
        self._report(code, message, _mark(event), label)
        return Stop()

    def _report(self, code: str, message: str, mark: Mark, label: str) -> None:
        self.diagnostics.append(Diagnostic(code, message, self._span(mark), label=label))

    def _span(self, mark: Mark) -> Span:
        end = mark.end_column if mark.line == mark.end_line else mark.column + 1
        return Span(self.path, mark.line + 1, mark.column + 1, max(end, mark.column + 1) + 1)


def _mark(event: Any) -> Mark:
    start, end = event.start_mark, event.end_mark
    return Mark(start.line, start.column, end.line, end.column)
