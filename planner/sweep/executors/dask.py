"""Workers of a Dask cluster: `dask://HOST:PORT`, the address of its scheduler."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from planner.parallel import Item, Result, alone
from planner.sweep.executor import ExecutorError
from planner.sweep.scenario import Scenario
from planner.sweep.work import Answer, Job, OtherWorkerError, answer, lost

PATIENCE_S = 2
"""How long to wait for a scheduler."""
WORKER_PATIENCE_S = 5
"""How long to wait for its first worker."""
AHEAD = 4
"""Scenarios that the scheduler has per thread of its workers, so that none waits for the next one."""
_EXTRA = "pip install 'llm-fleet-planner[dask]'"


class Dask:
    """A scheduler with its workers, which may come and go."""

    def __init__(self, client: Any, address: str) -> None:
        self._client, self._address = client, address

    def in_order(self, function: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
        """Return `function(item)` of every item, in their order; what workers die of is computed here."""
        from distributed import KilledWorker

        futures = self._client.map(_computed, [function] * len(items), items, pure=False)
        found: list[Result] = []
        for future, item in zip(futures, items, strict=True):
            try:
                found.append(future.result())
            except KilledWorker:
                found.append(function(item))
            except Exception as error:
                raise self._gone(error) from None
        return found

    def _gone(self, error: Exception) -> ExecutorError:
        """Return what to say about whatever the connection or a worker's own installation fails with."""
        what = " ".join(f"{type(error).__name__}: {error}".split())
        return ExecutorError(f"the cluster at {self._address} cannot go on: {what}")

    def answers(self, job: Job, scenarios: Sequence[Scenario]) -> Iterator[Answer]:
        """Yield the answers as scenarios finish. What was on a worker that dies, the scheduler gives to another one."""
        from distributed import KilledWorker, as_completed

        waiting = iter(scenarios)
        running: dict[Any, Scenario] = {}
        finished = as_completed(loop=self._client.loop)

        def send() -> None:
            scenario = next(waiting, None)
            if scenario is not None:
                future = self._client.submit(answer, job, scenario, pure=False)
                running[future] = scenario
                finished.add(future)

        for _ in range(AHEAD * max(1, sum(self._client.nthreads().values()))):
            send()
        for future in finished:
            scenario = running.pop(future)
            try:
                found: Answer = future.result()
            except KilledWorker:
                found = lost(scenario)
            except OtherWorkerError as error:
                raise ExecutorError(str(error)) from None
            except Exception as error:
                raise self._gone(error) from None
            send()
            yield found


def _computed(function: Callable[[Item], Result], item: Item) -> Result:
    """Compute an item in a worker, which shares nothing out itself."""
    with alone():
        return function(item)


@contextmanager
def executor(address: str) -> Iterator[Dask]:
    """Connect to a scheduler; it must answer, and have a worker, soon."""
    _check_answers(address)
    try:
        from distributed import Client
    except ImportError:
        raise ExecutorError(f"dask:// needs dask.distributed: {_EXTRA}") from None
    for name in ("distributed", "distributed.client"):  # they tell the same with a traceback
        logging.getLogger(name).setLevel(logging.CRITICAL)
    try:
        asyncio.run(_greet(f"tcp://{address}"))
        client = Client(f"tcp://{address}", timeout=PATIENCE_S, set_as_default=False)
    except Exception:  # anything may be listening there
        raise ExecutorError(f"what answers at {address} is no scheduler of Dask") from None
    try:
        try:
            client.wait_for_workers(1, timeout=WORKER_PATIENCE_S)
        except TimeoutError:
            message = f"the scheduler at {address} has no workers; start one with: dask worker {address}"
            raise ExecutorError(message) from None
        yield Dask(client, address)
    finally:
        client.close(timeout=PATIENCE_S)


def _check_answers(address: str) -> None:
    """Raise `ExecutorError` where nothing answers at an address: at once where that is certain, which Dask would try again."""
    host, _, port = address.rpartition(":")
    if not host or not (port.isascii() and port.isdigit()):
        raise ExecutorError("give the address of the scheduler: dask://HOST:PORT")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=PATIENCE_S).close()
    except (OSError, OverflowError) as error:
        raise ExecutorError(f"no scheduler answers at {address}: {getattr(error, 'strerror', None) or error}") from None


async def _greet(address: str) -> None:
    """Ask a scheduler who it is. A client that fails to connect would go on about it when it is forgotten."""
    from distributed.core import rpc

    async with rpc(address) as scheduler:
        await asyncio.wait_for(scheduler.identity(), PATIENCE_S)
