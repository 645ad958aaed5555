"""The type of a named constraint: what it says in words, in maths and in Pyomo."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from planner.program.index import ProgramIndex

Key = tuple[Any, ...]
Rule = Callable[[Any, ProgramIndex, Key], Any]


@dataclass(frozen=True)
class Constraint:
    """One family of rows. `index` lists its keys for a problem; `rule` states the row of one key, or None to leave it out.

    `unit` is that of both sides; `sentence` and `math` (LaTeX, with `symbols`) are shown to users; `key_names` name the parts of
    a key; `strengthens` marks rows that other rows imply for whole replicas and that only tighten the relaxation; `couples` marks rows that tie models together through the supply.
    """

    name: str
    unit: str
    sentence: str
    math: str
    symbols: Mapping[str, str]
    index: Callable[[ProgramIndex], Iterable[Key]]
    rule: Rule
    key_names: tuple[str, ...] = ()
    strengthens: bool = False
    couples: bool = False


def all_constraints() -> tuple[Constraint, ...]:
    """Return every constraint of the package `constraints`, sorted by name: a new file there is a new constraint."""
    package = importlib.import_module("planner.program.constraints")
    modules = sorted(info.name for info in pkgutil.iter_modules(package.__path__))
    return tuple(importlib.import_module(f"{package.__name__}.{name}").CONSTRAINT for name in modules)
