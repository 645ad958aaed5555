"""Plan generated fleets of growing size as whole processes, beside the whole program under the same time; print one table.

usage: bench_fleets.py [--only 5x30 20x30 ...] [--make-fleet PATH] [--first-seed 1] [--most-seconds 900] [--no-whole]

Fleets come from `make_fleet.py` beside this file, or from another program that takes the same flags. Where the limits of a
fleet make it infeasible, the next seed is taken, and the table says so. Seconds are those of the whole process on the
clock, memory is that of its largest process. A plan that is printed has passed its audit: `planner solve` refuses others.

The columns of the whole program are what HiGHS does with all models in one program, candidates as they were first rated,
until the same time is over: its best fleet and its gap.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PLANNER = (sys.executable, "-c", "import sys; from planner.cli import main; sys.exit(main())")
MOST_SEEDS = 5
INFEASIBLE = 3


@dataclass(frozen=True)
class Case:
    """A fleet of the table, and the seconds that it should take."""

    models: int
    offers: int
    gap: str
    target_s: float
    flags: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """How the table calls it."""
        return " ".join((f"{self.models}x{self.offers}", *self.flags))


CASES = (
    Case(5, 30, "0.5 %", 6.0),
    Case(20, 30, "0.5 %", 15.0),
    Case(50, 30, "1 %", 45.0, ("--limit-per-gpu", "256")),
    Case(200, 30, "0.5 %", 90.0, ("--limit-per-gpu", "512")),
    Case(200, 30, "2 %", 300.0, ("--hourly",)),
    Case(1000, 60, "0.5 %", 480.0, ("--limit-per-gpu", "3000")),
)
"""Targets are for two cores at 2.8 GHz."""


@dataclass(frozen=True)
class Ran:
    """One process: seconds on the clock, memory of the largest process in it, exit code, and what it printed."""

    wall_s: float
    peak_bytes: float
    code: int
    output: bytes


def ran(command: Sequence[str], most_s: float) -> Ran:
    """Run a process to its end, or stop it after `most_s` seconds with one interrupt, as a user would."""
    with tempfile.TemporaryFile() as out:
        started = time.perf_counter()
        child = subprocess.Popen(
            command, stdout=out, stderr=subprocess.DEVNULL, cwd=ROOT, start_new_session=True, preexec_fn=_listening
        )
        while True:
            pid, status, used = os.wait4(child.pid, os.WNOHANG)
            elapsed_s = time.perf_counter() - started
            if pid:
                break
            if elapsed_s > most_s:
                os.kill(child.pid, signal.SIGINT)
                pid, status, used = os.wait4(child.pid, 0)
                elapsed_s = time.perf_counter() - started
                break
            time.sleep(0.01)
        child.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        return Ran(elapsed_s, used.ru_maxrss * 1024.0, child.returncode, out.read())


def _listening() -> None:
    """Let a process stop at interrupts, which jobs in the background ignore."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def specs(case: Case, program: Path, first: int, folder: Path) -> Iterator[tuple[int, Path]]:
    """Yield the specs of a case, seed by seed."""
    for seed in range(first, first + MOST_SEEDS):
        size = ("--models", str(case.models), "--offers", str(case.offers), "--seed", str(seed), "--gap", case.gap)
        command = [sys.executable, str(program), *size, *case.flags]
        file = folder / f"{case.models}-{seed}.yaml"
        file.write_bytes(subprocess.run(command, capture_output=True, check=True, cwd=ROOT).stdout)
        yield seed, file


def planned(case: Case, program: Path, first: int, most_s: float, folder: Path) -> tuple[int, Path, Ran]:
    """Plan a case with the first seed that is feasible; return it with its spec."""
    for seed, file in specs(case, program, first, folder):
        done = ran([*PLANNER, "solve", str(file), "--format", "json", "--quiet"], most_s)
        if done.code != INFEASIBLE:
            return seed, file, done
    raise SystemExit(f"{case.name}: infeasible with {MOST_SEEDS} seeds")


def row(case: Case, program: Path, first: int, most_s: float, with_whole: bool) -> str:
    """Plan a case and return its line of the table."""
    with tempfile.TemporaryDirectory() as folder:
        seed, file, done = planned(case, program, first, most_s, Path(folder))
        whole = run_whole(file, done.wall_s) if with_whole else {}
    plan = json.loads(done.output) if done.output.startswith(b"{") else {}
    objective = plan.get("objective") or {}
    cells = [
        f"{case.name:<30}",
        f"{seed:4d}",
        f"{done.wall_s:7.1f}",
        f"{case.target_s:6.0f}",
        f"{done.peak_bytes / 2**30:8.2f}",
        f"{plan.get('status', f'exit {done.code}'):<10}",
        *money(objective.get("usd_per_hour"), objective.get("bound_usd_per_hour"), objective.get("gap")),
        *money(whole.get("cost"), whole.get("bound"), whole.get("gap")),
    ]
    return "  ".join(cells).rstrip()


def money(cost: float | None, bound: float | None, gap: float | None) -> list[str]:
    """Return the cells of cost, bound and gap."""
    dollars = [f"{value:10,.2f}" if value is not None else f"{'-':>10}" for value in (cost, bound)]
    return [*dollars, f"{100 * gap:7.3f} %" if gap is not None else f"{'-':>9}"]


def run_whole(file: Path, most_s: float) -> dict[str, float]:
    """Minimise the whole program of a spec in a process of its own; what it found when `most_s` seconds were over."""
    command = [sys.executable, __file__, "--whole", str(file), "--most-seconds", str(most_s)]
    try:
        done = subprocess.run(command, capture_output=True, check=False, cwd=ROOT, timeout=1.5 * most_s + 10.0)
    except subprocess.TimeoutExpired:
        return {}
    return json.loads(done.stdout) if done.returncode == 0 and done.stdout else {}


def whole(file: Path, most_s: float) -> dict[str, float]:
    """State all models of a spec in one program, and minimise it for what is left of `most_s` seconds."""
    started = time.perf_counter()
    from planner.candidates.knowledge import Knowledge
    from planner.candidates.table import build_table
    from planner.catalog import Catalog
    from planner.program.compile import compile_problem
    from planner.program.problem import fleet_problem, gpu_limits
    from planner.solve.highs import Effort, minimise
    from planner.spec import load_spec

    spec = load_spec(file.read_text(encoding="utf-8"), str(file)).spec
    assert spec is not None
    catalog = Catalog.open()
    table = build_table(spec, catalog, Knowledge.of(catalog, spec.planning.confidence))
    program = compile_problem(fleet_problem(spec, table, gpu_limits(spec, catalog)))
    left_s = most_s - (time.perf_counter() - started)
    if left_s <= 0.0:
        return {}
    answer = minimise(program, Effort(spec.planning.gap, time_limit_s=left_s))
    found = {"bound": answer.bound}
    if answer.point is not None:
        found |= {"cost": answer.objective, "gap": 1.0 - answer.bound / answer.objective}
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", default=[], metavar="MODELSxOFFERS")
    parser.add_argument("--make-fleet", type=Path, default=HERE / "make_fleet.py", metavar="PATH")
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--most-seconds", type=float, default=900.0)
    parser.add_argument("--no-whole", action="store_true", help="leave out the columns of the whole program")
    parser.add_argument("--whole", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.whole is not None:
        print(json.dumps(whole(asked.whole, asked.most_seconds)))
        return
    print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    print(
        f"{'':<30}  {'':>4}  {'':>7}  {'':>6}  {'':>8}  {'planner solve':<44}  {'whole program, same time':<33}".rstrip()
    )
    head = f"{'status':<10}  {'USD/h':>10}  {'bound':>10}  {'gap':>9}  {'USD/h':>10}  {'bound':>10}  {'gap':>9}"
    print(f"{'fleet':<30}  {'seed':>4}  {'wall s':>7}  {'target':>6}  {'peak GiB':>8}  {head}")
    program = asked.make_fleet.resolve()
    for case in CASES:
        sizes = {f"{case.models}x{case.offers}", case.name}
        if not asked.only or sizes & set(asked.only):
            print(row(case, program, asked.first_seed, asked.most_seconds, not asked.no_whole), flush=True)


if __name__ == "__main__":
    main()
