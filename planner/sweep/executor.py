"""What runs scenarios: each module of the package `executors` is one kind, which has a function `executor`."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from planner.parallel import Item, Result
from planner.source import nearest
from planner.sweep.scenario import Scenario
from planner.sweep.work import Answer, Job

SEPARATORS = ("://", ":")


class ExecutorError(RuntimeError):
    """An executor that cannot be had, or that is gone: why, in one line."""


class Executor(Protocol):
    """Runs scenarios side by side."""

    def in_order(self, function: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
        """Return `function(item)` of every item, in their order; see `planner.parallel.Elsewhere`. Raises `ExecutorError`."""

    def answers(self, job: Job, scenarios: Sequence[Scenario]) -> Iterator[Answer]:
        """Yield the answers as scenarios finish, each once. Workers that die are replaced or done without.

        Raises `ExecutorError` where nothing can be run any more.
        """


def executor(text: str) -> AbstractContextManager[Executor]:
    """Return the executor that a text such as `local:2` or `dask://host:8786` names. Raises `ExecutorError`, also when entered."""
    package = importlib.import_module("planner.sweep.executors")
    names = [module.name for module in pkgutil.iter_modules(package.__path__)]
    name, address = _split(text)
    if name not in names:
        close = nearest(name, names)
        hint = f"did you mean `{close}`?" if close else f"there are {', '.join(names)}"
        raise ExecutorError(f"there is no executor `{name}`; {hint}")
    found: AbstractContextManager[Executor] = importlib.import_module(f"{package.__name__}.{name}").executor(address)
    return found


def _split(text: str) -> tuple[str, str]:
    for separator in SEPARATORS:
        name, found, address = text.partition(separator)
        if found:
            return name, address
    return text, ""
