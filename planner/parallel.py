"""Map a function over independent items with worker processes; the results never depend on how many there are."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import sys
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from enum import Enum, auto
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkProcess
from typing import Generic, Protocol, TypeVar

from planner.diagnostics import Diagnostic, DiagnosticError

WORKERS_VARIABLE = "PLANNER_WORKERS"
LEAST_MODELS_SHARED_OUT = 8  # fewer are rated sooner in this process than workers start
_CAN_FORK = (
    "fork" in multiprocessing.get_all_start_methods() and sys.platform != "darwin"
)  # Apple's libraries forbid it

_ALONE: ContextVar[bool] = ContextVar("_ALONE", default=False)
_ELSEWHERE: ContextVar[Elsewhere | None] = ContextVar("_ELSEWHERE", default=None)

Item = TypeVar("Item")
Result = TypeVar("Result")


class Elsewhere(Protocol):
    """Computes independent items on other workers than those of this module."""

    def in_order(self, function: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
        """Return `function(item)` of every item, in their order. Function, items and results travel, so that they must pickle."""


@contextmanager
def elsewhere(workers: Elsewhere) -> Iterator[None]:
    """Let what travels well be computed by other workers, while this process waits for them."""
    token = _ELSEWHERE.set(workers)
    try:
        yield
    finally:
        _ELSEWHERE.reset(token)


def by_others(
    function: Callable[[Item], Result], items: Sequence[Item], least_items: int = LEAST_MODELS_SHARED_OUT
) -> list[Result]:
    """Return what `in_order` does, from workers `elsewhere` where there are any and enough to do."""
    workers = _ELSEWHERE.get()
    if workers is None or _ALONE.get() or len(items) < least_items:
        return in_order(function, items, least_items=least_items)
    return workers.in_order(function, items)


def workers_allowed() -> int:
    """Return how many processes may compute at once: `PLANNER_WORKERS`, else the processors this process may use.

    One while `alone`. Raises `DiagnosticError` when the variable is no whole number from 1 on.
    """
    if _ALONE.get():
        return 1
    given = os.environ.get(WORKERS_VARIABLE, "").strip()
    if not given:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if not (given.isascii() and given.isdigit() and int(given) > 0):
        message = f"{WORKERS_VARIABLE} is `{given}`, which is no number of processes"
        raise DiagnosticError(
            [Diagnostic("usage/workers", message, help=("set it to a whole number from 1 on, or unset it",))]
        )
    return int(given)


@contextmanager
def alone() -> Iterator[None]:
    """Let nothing inside be shared out: this process is one of several that compute side by side."""
    token = _ALONE.set(True)
    try:
        yield
    finally:
        _ALONE.reset(token)


def in_order(
    function: Callable[[Item], Result], items: Sequence[Item], workers: int | None = None, least_items: int = 2
) -> list[Result]:
    """Return `function(item)` of every item, in their order.

    With fewer than `least_items`, one worker, inside of a worker, or where processes cannot be forked, all is computed
    here. Else `workers` processes (default: `workers_allowed`) inherit function and items as they are, and only results,
    which must pickle, travel back. What fails in a worker, or falls with it, is computed again here, so that exceptions
    reach the caller unchanged: the one of the first item that fails.
    """
    count = min(workers_allowed() if workers is None else workers, len(items))
    if count < 2 or len(items) < least_items or not _may_fork():
        return [function(item) for item in items]
    crew = _Crew(function, items, count)
    results: dict[int, Result] = {}
    for number, fate, result in crew.run():
        if fate is _Fate.DONE and result is not None:
            results[number] = result[0]
        elif fate is _Fate.FAILED:
            crew.waiting.clear()  # its exception is the answer: later items are not needed
    return [results[i] if i in results else function(item) for i, item in enumerate(items)]


def as_finished(
    function: Callable[[Item], Result], items: Sequence[Item], workers: int, tries: int = 3
) -> Iterator[tuple[int, Result | None]]:
    """Yield the number of every item with `function(item)`, as workers finish, which are as those of `in_order`.

    Inside of a worker, and where processes cannot be forked, all is computed here. A worker that dies is replaced, and its
    item tried again, `tries` times in all: then its result is None.
    """
    if not _may_fork():
        yield from enumerate(map(function, items))
        return
    crew = _Crew(function, items, min(workers, len(items)))
    deaths: Counter[int] = Counter()
    for number, fate, result in crew.run():
        if fate is _Fate.LOST:
            deaths[number] += 1
            if deaths[number] < tries:
                crew.waiting.append(number)
                continue
        yield number, function(items[number]) if fate is _Fate.FAILED else None if result is None else result[0]


def _may_fork() -> bool:
    return _CAN_FORK and multiprocessing.parent_process() is None


class _Fate(Enum):
    """What became of an item: computed, failed in its worker, or lost with it."""

    DONE = auto()
    FAILED = auto()
    LOST = auto()


class _Crew(Generic[Item, Result]):
    """Worker processes, each with a pipe of its own: item numbers go in, results come back.

    A worker stops when its pipe ends, so that none outlives this process, however that ends. One that dies is replaced while
    there are items `waiting`, which may be changed between two results.
    """

    def __init__(self, function: Callable[[Item], Result], items: Sequence[Item], count: int) -> None:
        self._function, self._items, self._count = function, items, count
        self.waiting = deque(range(len(items)))
        self._busy: dict[Connection, int] = {}
        self._processes: list[ForkProcess] = []
        self._pipes: list[Connection] = []

    def run(self) -> Iterator[tuple[int, _Fate, tuple[Result] | None]]:
        """Yield what becomes of items; results that are there come in a tuple of their own."""
        try:
            self._employ()
            while self._busy:
                ready = wait(list(self._busy))
                for pipe in [each for each in self._busy if each in ready]:
                    number = self._busy.pop(pipe)
                    try:
                        done, result = pipe.recv()
                    except (EOFError, OSError):
                        self._retire(pipe)
                        yield number, _Fate.LOST, None
                    else:
                        yield number, _Fate.DONE if done else _Fate.FAILED, (result,) if done else None
                        self._hand_out(pipe)
                self._employ()
        finally:
            self._stop()

    def _employ(self) -> None:
        """Start workers as long as there are items for them."""
        while self.waiting and len(self._pipes) < self._count:
            self._hand_out(self._start())

    def _retire(self, pipe: Connection) -> None:
        """Let go of a worker that is gone."""
        number = self._pipes.index(pipe)
        self._pipes.pop(number).close()
        self._processes.pop(number).join()

    def _hand_out(self, pipe: Connection) -> None:
        """Give a worker the next item; that of one which is gone counts as lost with it."""
        if self.waiting:
            self._busy[pipe] = self.waiting.popleft()
            with suppress(OSError):
                pipe.send(self._busy[pipe])

    def _start(self) -> Connection:
        ours, theirs = multiprocessing.Pipe()
        process = multiprocessing.get_context("fork").Process(target=self._work, args=(theirs, ours), daemon=True)
        with _interrupts_held_back():  # a worker must not see one before it ignores them
            process.start()
        theirs.close()
        self._processes.append(process)
        self._pipes.append(ours)
        return ours

    def _work(self, pipe: Connection, ours: Connection) -> None:
        """Compute the items asked for, in a worker; only its own end of its own pipe may stay open there."""
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        for inherited in (ours, *self._pipes):
            inherited.close()
        with suppress(EOFError, OSError):  # the caller is gone
            while True:
                pipe.send_bytes(self._answer(pipe.recv()))

    def _answer(self, number: int) -> bytes:
        try:
            return pickle.dumps((True, self._function(self._items[number])))
        except Exception:
            return pickle.dumps((False, None))

    def _stop(self) -> None:
        for pipe in self._pipes:
            pipe.close()
        for process in self._processes:
            process.terminate()
        for process in self._processes:
            process.join()


@contextmanager
def _interrupts_held_back() -> Iterator[None]:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
