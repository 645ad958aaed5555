"""Benchmark of `planner sweep`: scenarios of specs/staging.yaml on two local processes and on a Dask cluster of two workers.

    python tests/benchmarks/bench_sweep.py [--scenarios 1000]

Prints wall and CPU time per scenario beside those of a cold `planner solve`, and whether both executors gave the same bytes;
then kills a worker and the client in the middle of sweeps, resumes, and says whether anything was lost or done twice. Without
dask.distributed only the local part runs.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).parents[2]
SPEC = ROOT / "specs" / "staging.yaml"
OFFER = "aws-us-east-1/us-east-1/g6.xlarge/on-demand"
SOLVES = 3
LEAST = 80
"""Fewest scenarios of a grid."""


def settings(scenarios: int) -> list[str]:
    """Return a grid of four latency limits, ten rates, and prices for the rest; prices change first."""
    axes = (
        "workloads.assistant.slo.tpot_p95=60 ms,80 ms,100 ms,150 ms",
        "workloads.editor.traffic.rate=0.5..5/10 req/s",
        f"price.{OFFER}=0.5..1.5/{scenarios // 40} USD/node/h",
    )
    return [part for axis in axes for part in ("--set", axis)]


def planner(*arguments: str | Path) -> list[str]:
    return [sys.executable, "-m", "planner", *map(str, arguments)]


def sweep(scenarios: int, executor: str, out: Path, results: Path) -> list[str]:
    return planner(
        "sweep", SPEC, *settings(scenarios), "--executor", executor, "--out", out, "--results", results, "--quiet"
    )


def measured(command: Sequence[str]) -> tuple[float, float]:
    """Return wall and CPU seconds of a command with its children."""
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wall_s, after = time.monotonic() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall_s, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


@contextmanager
def cluster() -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """Start a scheduler and two workers on this machine, each a process of its own."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = f"127.0.0.1:{port}"
    dask = [sys.executable, "-m", "distributed.cli"]
    scheduler = [
        *dask[:2],
        "distributed.cli.dask_scheduler",
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
        "--no-dashboard",
    ]
    worker = [
        *dask[:2],
        "distributed.cli.dask_worker",
        f"tcp://{address}",
        "--nthreads",
        "1",
        "--no-nanny",
        "--no-dashboard",
    ]
    running = [subprocess.Popen(c, stderr=subprocess.DEVNULL) for c in (scheduler, worker, worker)]
    try:
        time.sleep(5.0)
        yield f"dask://{address}", running
    finally:
        for process in reversed(running):  # a worker whose scheduler goes first may wait for it
            process.terminate()
            try:
                process.wait(timeout=20.0)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def finished(results: Path) -> list[int]:
    """Return the numbers of the scenarios in a results file, those of lines that were cut off aside."""
    lines = results.read_bytes().split(b"\n")[1:-1] if results.exists() else []
    return [json.loads(line)["scenario"] for line in lines]


def wait_for(results: Path, scenarios: int) -> None:
    while len(finished(results)) < scenarios:
        time.sleep(0.1)


def report(name: str, wall_s: float, cpu_s: float, scenarios: int, cold: tuple[float, float]) -> None:
    each = wall_s / scenarios, cpu_s / scenarios
    print(
        f"{name:<22}{wall_s:9.1f}{1e3 * each[0]:13.0f}{1e3 * each[1]:13.0f}{cold[0] / each[0]:10.1f}{cold[1] / each[1]:9.1f}",
        flush=True,
    )


def interrupted(scenarios: int, executor: str, folder: Path, expected: bytes, workers: list[int]) -> None:
    """Kill a worker in the middle of a sweep, then its client, and resume it."""
    out, results = folder / "killed.json", folder / "killed.jsonl"
    command = sweep(scenarios, executor, out, results)
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as client:
        wait_for(results, scenarios // 4)
        children = Path(f"/proc/{client.pid}/task/{client.pid}/children").read_text().split()
        os.kill(workers[0] if workers else int(children[0]), signal.SIGKILL)
        wait_for(results, scenarios // 2)
        client.kill()
    before = len(finished(results))
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
    numbers = finished(results)
    twice, lost = len(numbers) - len(set(numbers)), scenarios - len(set(numbers))
    same = "same bytes" if out.read_bytes() == expected else "OTHER BYTES"
    print(
        f"{executor.partition(':')[0]}: worker killed, client killed at {before} of {scenarios}, resumed: {lost} lost, "
        f"{twice} twice, {same}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--scenarios", type=int, default=1000, help="a multiple of 40, from 80 on")
    scenarios = max(LEAST, parser.parse_args().scenarios // 40 * 40)
    few = max(LEAST, scenarios // 4 // 40 * 40)
    os.environ["PYTHONPATH"] = str(ROOT)
    print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    print(f"{'':<22}{'wall s':>9}{'wall ms each':>13}{'CPU ms each':>13}{'cold/wall':>10}{'cold/CPU':>9}")
    solves = [measured(planner("solve", SPEC)) for _ in range(SOLVES)]
    cold = sum(w for w, _ in solves) / SOLVES, sum(c for _, c in solves) / SOLVES
    report("planner solve, cold", sum(w for w, _ in solves), sum(c for _, c in solves), SOLVES, cold)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        out = folder / "local.json"
        report("local:2", *measured(sweep(scenarios, "local:2", out, folder / "local.jsonl")), scenarios, cold)
        expected = out.read_bytes()
        interrupted(few, "local:2", folder, planned(few, folder), [])
        if find_spec("distributed") is None:
            return
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        with cluster() as (address, _):
            wall_s, _ = measured(sweep(scenarios, address, folder / "dask.json", folder / "dask.jsonl"))
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        report("dask, 2 workers", wall_s, cpu_s, scenarios, cold)
        same = (folder / "dask.json").read_bytes() == expected
        print(f"dask and local: {'same bytes' if same else 'OTHER BYTES'}")
        (folder / "killed.jsonl").unlink()
        with cluster() as (address, running):
            interrupted(few, address, folder, planned(few, folder), [running[1].pid])


def planned(scenarios: int, folder: Path) -> bytes:
    """Return the answer of a sweep that nothing interrupts."""
    out = folder / "calm.json"
    (folder / "calm.jsonl").unlink(missing_ok=True)
    subprocess.run(sweep(scenarios, "local:2", out, folder / "calm.jsonl"), check=True, stderr=subprocess.DEVNULL)
    return out.read_bytes()


if __name__ == "__main__":
    main()
