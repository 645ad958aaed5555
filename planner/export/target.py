"""What a plan can be exported to: each module of the package `targets` is one target, named in its `TARGET`."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

from planner.export.documents import Document
from planner.export.engine import Unsupported
from planner.export.names import LONGEST
from planner.export.placed import PlacedPool, UnsupportedPools
from planner.plan.schema import Plan


@dataclass(frozen=True)
class Written:
    """The documents of a target, with lines for standard error about what they leave out."""

    documents: tuple[Document, ...]
    notes: tuple[str, ...] = field(default=())


@dataclass(frozen=True)
class Target:
    """One kind of files. `write` makes them; `engines` are those that it can start.

    A target without engines writes of the plan alone. `leaves_out` tells whether pools on other engines are left out
    with a note, or refused. `one_each` marks files that the platform takes one by one. `undecided` says what a plan does
    not decide about them; `first_line` comes before the comment, and `has_comment` tells whether the format has any. No
    name of an object has more than `longest_name` characters.
    """

    name: str
    sentence: str
    ending: str
    write: Callable[[Plan, Sequence[PlacedPool]], Written]
    engines: tuple[str, ...] = ()
    leaves_out: bool = False
    one_each: bool = False
    separator: str = ""
    undecided: tuple[str, ...] = ()
    first_line: str = ""
    has_comment: bool = True
    longest_name: int = LONGEST


def for_each(placed: Sequence[PlacedPool], render: Callable[[PlacedPool], Document]) -> tuple[Document, ...]:
    """Return a document for every entry. Raises `UnsupportedPools` with all pools that cannot be expressed."""
    documents: list[Document] = []
    problems: dict[str, Unsupported] = {}
    for entry in placed:
        try:
            documents.append(render(entry))
        except Unsupported as problem:
            problems[entry.pool.name] = problem
    if problems:
        raise UnsupportedPools(problems)
    return tuple(documents)


@cache
def all_targets() -> Mapping[str, Target]:
    """Return every target by name: a new file in `targets` is a new one."""
    package = importlib.import_module("planner.export.targets")
    modules = [importlib.import_module(f"{package.__name__}.{m.name}") for m in pkgutil.iter_modules(package.__path__)]
    return {module.TARGET.name: module.TARGET for module in sorted(modules, key=lambda m: str(m.TARGET.name))}
