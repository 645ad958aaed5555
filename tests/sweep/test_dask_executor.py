"""A real scheduler with two workers on this machine: the bytes of local workers, and none lost when a worker dies."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from swept import PRICE, defined, job

import planner
from planner.sweep.executor import ExecutorError, executor
from planner.sweep.results import Results, opened_results
from planner.sweep.run import run, sweep_header, sweep_of

distributed = pytest.importorskip("distributed")
DEFINITION = defined(f"{PRICE}=0.5..3/12 USD/node/h")
WAIT_S = 60.0
Cluster = tuple[str, list[subprocess.Popen[bytes]]]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """The address of a scheduler, and the processes of its two workers."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    scheduler = ["dask_scheduler", "--host", "127.0.0.1", "--port", address.rpartition(":")[2], "--no-dashboard"]
    worker = ["dask_worker", f"tcp://{address}", "--nthreads", "1", "--no-nanny", "--no-dashboard"]
    environment = {**os.environ, "PYTHONPATH": str(Path(planner.__file__).parents[1])}
    running = [
        subprocess.Popen([sys.executable, "-m", f"distributed.cli.{name}", *rest], stderr=-3, env=environment)
        for name, *rest in (scheduler, worker, worker)
    ]
    try:
        with distributed.Client(f"tcp://{address}", timeout=WAIT_S, set_as_default=False) as client:
            client.wait_for_workers(2, timeout=WAIT_S)
        yield f"dask://{address}", running[1:]
    finally:
        for process in running:
            process.kill()
            process.wait()


def answered(where: str, finished: Results | None = None) -> str:
    scenarios = DEFINITION.scenarios()
    rows = run(job(), scenarios, where, finished or Results())
    return sweep_of(job(), DEFINITION, rows).model_dump_json()


def test_local_and_dask_workers_give_the_same_bytes_also_when_a_worker_dies(cluster: Cluster, tmp_path: Path) -> None:
    address, workers = cluster
    local = answered("local:2")

    assert answered(address) == local

    counted = 0

    def killing() -> None:
        nonlocal counted
        counted += 1
        if counted == 3:
            os.kill(workers[0].pid, signal.SIGKILL)

    scenarios = DEFINITION.scenarios()
    path = tmp_path / "results.jsonl"
    with opened_results(path, sweep_header(job(), DEFINITION), scenarios) as results:
        rows = run(job(), scenarios, address, results, finished=killing)

    assert counted == len(scenarios) == len(path.read_bytes().splitlines()) - 1
    assert sweep_of(job(), DEFINITION, rows).model_dump_json() == local


def test_what_is_no_scheduler_is_said() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        with (
            pytest.raises(ExecutorError, match="is no scheduler of Dask"),
            executor(f"dask://127.0.0.1:{silent.getsockname()[1]}"),
        ):
            pass
