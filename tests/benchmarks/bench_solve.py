"""Time whole processes of `planner`, and print one table.

usage: bench_solve.py [--runs 3] [--fleets 3x20 5x30] [--seeds 1 2] [--make-fleet PATH]

Commands: `--help`, `check` and `solve` of specs/prod.yaml, and `solve` of generated fleets, which `make_fleet.py` beside
this file writes, or another program that takes `--models M --offers N --seed S`. Times are those of the whole process:
the best wall-clock time of all runs, and the CPU time of that run. Look at the load of the machine before you compare.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PROD = "specs/prod.yaml"
PLANNER = (sys.executable, "-c", "import sys; from planner.cli import main; sys.exit(main())")


@dataclass(frozen=True)
class Timed:
    """One process: its name in the table, seconds, exit code, and what it printed."""

    name: str
    wall_s: float
    cpu_s: float
    code: int
    output: bytes


def run(name: str, arguments: Sequence[str], text: bytes = b"") -> Timed:
    """Run `planner` once with `text` on standard input."""
    before, started = children_cpu_s(), time.perf_counter()
    done = subprocess.run([*PLANNER, *arguments], input=text, capture_output=True, cwd=ROOT, check=False)
    return Timed(name, time.perf_counter() - started, children_cpu_s() - before, done.returncode, done.stdout)


def children_cpu_s() -> float:
    """Return the CPU seconds of all finished child processes."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def best(name: str, arguments: Sequence[str], runs: int, text: bytes = b"") -> Timed:
    """Run a command several times and return the fastest run. Raises when two runs differ in what they print."""
    timed = [run(name, arguments, text) for _ in range(runs)]
    if len({t.output for t in timed}) > 1:
        raise SystemExit(f"{name}: two runs gave different answers")
    return min(timed, key=lambda t: t.wall_s)


def generated(program: Path, models: int, offers: int, seed: int) -> bytes:
    """Return the spec that a generator writes."""
    command = [sys.executable, str(program), "--models", str(models), "--offers", str(offers), "--seed", str(seed)]
    return subprocess.run(command, capture_output=True, check=True, cwd=ROOT).stdout


def row(timed: Timed) -> str:
    """Return a line of the table: name, seconds, and for a plan its status, cost and gap."""
    cells = [f"{timed.name:<24}", f"{timed.wall_s:7.2f}", f"{timed.cpu_s:7.2f}", f"{timed.code:4d}"]
    plan = json.loads(timed.output) if timed.output.startswith(b"{") else {}
    if "objective" in plan:
        objective = plan["objective"] or {}
        gap = f"{100 * objective['gap']:.3f} %" if objective else "-"
        cost = f"{objective['usd_per_hour']:,.2f}" if objective else "-"
        cells += [f"{plan['status']:<10}", f"{cost:>12}", f"{gap:>9}"]
    return "  ".join(cells).rstrip()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--fleets", nargs="*", default=["3x20", "5x30"], metavar="MODELSxOFFERS")
    parser.add_argument("--seeds", nargs="*", type=int, default=[1])
    parser.add_argument("--make-fleet", type=Path, default=HERE / "make_fleet.py", metavar="PATH")
    asked = parser.parse_args()

    print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores; best of {asked.runs}")
    print(f"{'command':<24}  {'wall s':>7}  {'CPU s':>7}  {'exit':>4}  {'status':<10}  {'USD/h':>12}  {'gap':>9}")
    print(row(best("--help", ["--help"], asked.runs)))
    print(row(best("check prod", ["check", PROD], asked.runs)))
    print(row(best("solve prod", ["solve", PROD, "--format", "json"], asked.runs)), flush=True)
    for size in asked.fleets:
        models, offers = (int(part) for part in size.split("x"))
        for seed in asked.seeds:
            text = generated(asked.make_fleet.resolve(), models, offers, seed)
            name = f"solve {size}, seed {seed}"
            print(row(best(name, ["solve", "-", "--format", "json"], asked.runs, text)), flush=True)


if __name__ == "__main__":
    main()
