"""Run independent solves side by side: HiGHS lets go of the interpreter while it works, so threads do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import TypeVar

from planner.parallel import workers_allowed

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
