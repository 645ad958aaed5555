"""Worker processes on this machine: `local`, or `local:COUNT`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial

from planner.parallel import Item, Result, as_finished, in_order, workers_allowed
from planner.sweep.executor import ExecutorError
from planner.sweep.scenario import Scenario
from planner.sweep.work import Answer, Job, answer, bench, lost

MOST_WORKERS = 1024


class Local:
    """So many worker processes, which inherit what is loaded here."""

    def __init__(self, workers: int) -> None:
        self._workers = workers

    def in_order(self, function: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
        """Return `function(item)` of every item, in their order."""
        return in_order(function, items, self._workers)

    def answers(self, job: Job, scenarios: Sequence[Scenario]) -> Iterator[Answer]:
        """Yield the answers as scenarios finish."""
        bench(job)  # read here, it is there in every worker
        for number, found in as_finished(partial(answer, job), scenarios, self._workers):
            yield lost(scenarios[number]) if found is None else found


@contextmanager
def executor(address: str) -> Iterator[Local]:
    """Open worker processes: as many as `address` says, or as this process may use."""
    if address and not (address.isascii() and address.isdigit() and 1 <= int(address) <= MOST_WORKERS):
        raise ExecutorError(f"`{address}` is no number of processes; write `local:2`, at most {MOST_WORKERS}")
    yield Local(int(address) if address else workers_allowed())
