"""Run independent solves side by side.

HiGHS lets go of the interpreter while it works, so threads do for few of them. Where there are many, what is done in Python
about them takes longer than HiGHS, and workers do better.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import TypeVar

from planner.parallel import LEAST_MODELS_SHARED_OUT, by_others, workers_allowed

Item = TypeVar("Item")
Result = TypeVar("Result")


def in_threads(function: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    """Return `function` of every item, in the order of the items: how many cores there are changes no answer.

    Threads see the context of the caller: its brake is theirs.
    """
    workers = min(workers_allowed(), len(items))
    if workers <= 1:
        return [function(item) for item in items]
    contexts = [copy_context() for _ in items]
    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(lambda context, item: context.run(function, item), contexts, items))


def in_workers(function: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    """Return `function` of every item, in the order of the items; what it changes is lost, only what it returns is not.

    The function is one of a module, and items pickle, so that workers on other machines may do it.
    """
    if len(items) < LEAST_MODELS_SHARED_OUT:
        return in_threads(function, items)
    return by_others(function, items)
