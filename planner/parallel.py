"""Map a function over independent items with worker processes; the results never depend on how many there are."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkProcess
from typing import Generic, TypeVar

from planner.diagnostics import Diagnostic, DiagnosticError

WORKERS_VARIABLE = "PLANNER_WORKERS"
LEAST_MODELS_SHARED_OUT = 8  # fewer are rated sooner in this process than workers start
_CAN_FORK = (
    "fork" in multiprocessing.get_all_start_methods() and sys.platform != "darwin"
)  # Apple's libraries forbid it

Item = TypeVar("Item")
Result = TypeVar("Result")


def workers_allowed() -> int:
    """Return how many processes may compute at once: `PLANNER_WORKERS`, else the processors this process may use.

    Raises `DiagnosticError` when the variable is no whole number from 1 on.
    """
    given = os.environ.get(WORKERS_VARIABLE, "").strip()
    if not given:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if not (given.isascii() and given.isdigit() and int(given) > 0):
        message = f"{WORKERS_VARIABLE} is `{given}`, which is no number of processes"
        raise DiagnosticError(
            [Diagnostic("usage/workers", message, help=("set it to a whole number from 1 on, or unset it",))]
        )
    return int(given)


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
    if count < 2 or len(items) < least_items or not _CAN_FORK or multiprocessing.parent_process() is not None:
        return [function(item) for item in items]
    results = _Crew(function, items, count).run()
    return [results[i] if i in results else function(item) for i, item in enumerate(items)]


class _Crew(Generic[Item, Result]):
    """Worker processes, each with a pipe of its own: item numbers go in, results come back.

    A worker stops when its pipe ends, so that none outlives this process, however that ends.
    """

    def __init__(self, function: Callable[[Item], Result], items: Sequence[Item], count: int) -> None:
        self._function, self._items, self._count = function, items, count
        self._processes: list[ForkProcess] = []
        self._pipes: list[Connection] = []

    def run(self) -> dict[int, Result]:
        """Return results by item number; after one that failed, later ones are missing."""
        results: dict[int, Result] = {}
        waiting = iter(range(len(self._items)))
        busy: dict[Connection, int] = {}
        try:
            for _ in range(self._count):
                self._start()
            for pipe in self._pipes:
                _hand_out(pipe, waiting, busy)
            while busy:
                ready = wait(list(busy))
                for pipe in [each for each in busy if each in ready]:
                    number = busy.pop(pipe)
                    try:
                        done, result = pipe.recv()
                    except (EOFError, OSError):
                        continue
                    if done:
                        results[number] = result
                    else:
                        waiting = iter(())
                    _hand_out(pipe, waiting, busy)
        finally:
            self._stop()
        return results

    def _start(self) -> None:
        ours, theirs = multiprocessing.Pipe()
        process = multiprocessing.get_context("fork").Process(target=self._work, args=(theirs, ours), daemon=True)
        with _interrupts_held_back():  # a worker must not see one before it ignores them
            process.start()
        theirs.close()
        self._processes.append(process)
        self._pipes.append(ours)

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


def _hand_out(pipe: Connection, waiting: Iterator[int], busy: dict[Connection, int]) -> None:
    """Give a worker the next item; one that is gone cannot take it, which leaves the item to the caller."""
    number = next(waiting, None)
    if number is not None:
        with suppress(OSError):
            pipe.send(number)
            busy[pipe] = number
