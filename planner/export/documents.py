"""The text of an export: one or several documents under a comment that says where they come from."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import yaml

from planner import __version__
from planner.plan.schema import Plan
from planner.report.figures import visible

NOT_DECIDED = "Not decided by the plan"


@dataclass(frozen=True)
class Document:
    """One file of an export: its name without ending, and its text below the comment."""

    name: str
    text: str


@dataclass(frozen=True)
class Exported:
    """All documents of an export, and what there is to say about them on standard error.

    `header` is the comment that every file starts with; `separator` stands between documents of one stream.
    """

    header: str
    documents: tuple[Document, ...]
    ending: str
    separator: str = ""
    notes: tuple[str, ...] = field(default=())

    @property
    def text(self) -> str:
        """All documents as one stream."""
        return self.header + self.separator.join(d.text for d in self.documents)

    def file(self, document: Document) -> tuple[str, str]:
        """Return the name and the text of the file of one document."""
        return f"{document.name}{self.ending}", self.header + document.text


class _Dumper(yaml.SafeDumper):
    """The safe dumper, with scripts as blocks and without anchors: people read and edit what it writes."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002
        return True


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|" if value.endswith("\n") else None)


_Dumper.add_representer(str, _text)


def as_yaml(data: Any) -> str:
    """Return data as YAML, keys in their order."""
    return yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=10_000)


def header(plan: Plan, target: str, undecided: Iterable[str]) -> str:
    """Return the comment that every file starts with: fleet, plan, planner, and what is left to decide."""
    lines = [
        f"Fleet {plan.fleet}, exported for {target} by planner {__version__}.",
        f"Plan {plan.digests.plan}, made by planner {plan.versions.planner}.",
    ]
    return comment([*lines, f"{NOT_DECIDED}: {'; '.join(undecided)}."])


def comment(lines: Iterable[str]) -> str:
    """Return lines of a comment; what users wrote cannot leave it."""
    return "".join(f"# {visible(line)}\n" for line in lines)
