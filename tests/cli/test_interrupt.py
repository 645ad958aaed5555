"""Ctrl-C during `planner solve`: the best fleet so far, or one line; never a traceback or half a file.

Signals are sent once the run has said where it is. What can only be hit by chance is put there by a stand-in for a stage.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from cli_run import ROOT, TINY, WriteSpec, run

from planner.plan.io import loads

AT_THE_SOLVE = """
import os, signal, sys
from planner import choose, pipeline
from planner.cli import main
from planner.solve import fleet, search

signal.signal(signal.SIGINT, signal.default_int_handler)  # shells have background jobs ignore it
signals = int(sys.argv.pop(1))
stage = sys.argv.pop(1)

def interrupted(function):
    def call(*arguments, **named):
        global signals
        due, signals = signals, 0
        for _ in range(due):
            os.kill(os.getpid(), signal.SIGINT)
        return function(*arguments, **named)
    return call

def announced(function):
    def call(*arguments, **named):
        listening = brake.current_brake()
        brake._BRAKE.set(interrupted(listening))
        return function(*arguments, **named)
    return call

def with_a_fleet(function, wrapped):
    def call(problem, bounds, known, *rest, **named):
        chosen = function if known is None else wrapped(function)
        return chosen(problem, bounds, known, *rest, **named)
    return call

if stage == "candidates":
    pipeline.build_table = interrupted(pipeline.build_table)
elif stage == "search":
    search.Search.run = interrupted(search.Search.run)
elif stage == "whole":
    fleet.solve_whole = with_a_fleet(fleet.solve_whole, interrupted)
elif stage == "inside the solver":
    from planner.solve import brake
    fleet.solve_whole = with_a_fleet(fleet.solve_whole, announced)
elif stage == "pools":
    choose.settle = interrupted(choose.settle)
sys.exit(main(sys.argv[1:]))
"""
STOPPING = "planner: stopping with the best fleet so far; Ctrl-C again ends at once\n"
SEARCHED = (ROOT / "specs" / "examples" / "spot-and-zones.yaml", "--gap", "0 %", "--quiet")
"""A fleet of several pools that the whole program proves, after the search by models has found one."""
HARD = (ROOT / "specs" / "prod.yaml", "--gap", "0 %", "--quiet")
"""A fleet that takes long to prove."""


def started(stage: str, signals: int, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run `planner solve` in a process of its own that gets interrupts at a stage."""
    command = [sys.executable, "-c", AT_THE_SOLVE, str(signals), stage, "solve", *map(str, arguments)]
    clean = {k: v for k, v in os.environ.items() if not k.startswith("PLANNER_")}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=clean)


def test_while_candidates_are_rated(spec_file: WriteSpec, tmp_path: Path) -> None:
    out = tmp_path / "plan.json"
    done = started("candidates", 1, spec_file(TINY), "--out", out)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "planner: interrupted\n")
    assert not out.exists()


def test_before_any_fleet_is_found(tmp_path: Path) -> None:
    out = tmp_path / "plan.json"
    out.write_text("what was there", encoding="utf-8")
    done = started("search", 1, *SEARCHED, "--out", out)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", f"{STOPPING}planner: interrupted\n")
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(("plan", ".plan"))] == ["plan.json"]
    assert out.read_text(encoding="utf-8") == "what was there"


@pytest.mark.parametrize("stage", ["whole", "inside the solver"])
def test_with_a_fleet_at_hand(stage: str, tmp_path: Path) -> None:
    """The fleet is saved with its gap, and has passed its audit as any other."""
    out = tmp_path / "plan.json"
    done = started(stage, 1, *SEARCHED, "--out", out)
    assert done.returncode == 130, done.stderr
    assert done.stderr == f"{STOPPING}planner: interrupted\n"
    assert done.stdout == ""
    plan = loads(out.read_bytes(), "plan.json")
    assert plan.status == "unproven"
    assert plan.pools
    assert plan.objective is not None
    assert plan.objective.gap > 0.0


def test_once_the_fleet_is_proven(spec_file: WriteSpec) -> None:
    """The plan is whole, and scripts still see that they are to stop."""
    done = started("pools", 1, spec_file(TINY), "--quiet")
    assert (done.returncode, done.stderr) == (130, f"{STOPPING}planner: interrupted\n")
    assert "; proven within " in done.stdout


@pytest.mark.parametrize("stage", ["search", "whole"])
def test_a_second_one_ends_at_once(stage: str) -> None:
    done = started(stage, 2, *SEARCHED)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", STOPPING)


def test_from_outside() -> None:
    """While fleets are searched for: whether there is one by then is chance, that the run ends in order is not."""
    listening = "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler)"
    command = [sys.executable, "-c", f"{listening}; from planner.cli import main; sys.exit(main(sys.argv[1:]))"]
    arguments = ["solve", str(HARD[0]), "--gap", "0 %", "--format", "json"]
    with subprocess.Popen([*command, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert process.stdout is not None
        next(line for line in process.stderr if line.startswith("candidates "))
        process.send_signal(signal.SIGINT)
        out, err = process.stdout.read(), process.stderr.read()
    assert process.returncode == 130
    assert err.splitlines()[-1] == "planner: interrupted"
    assert "Traceback" not in err
    assert not out or json.loads(out)["status"] == "unproven"


@pytest.mark.parametrize(("fleet", "limit"), [(SEARCHED, "1 ms"), (SEARCHED, "10 ms"), (HARD, "1 s")])
def test_a_tiny_time_limit(fleet: tuple[str | Path, ...], limit: str) -> None:
    """A fleet with its gap, or none and the reason; a fleet that is printed has passed its audit."""
    done = run("solve", *fleet, "--time-limit", limit, "--format", "json")
    plan = json.loads(done.out)
    assert (done.code, plan["status"]) in ((0, "solved"), (4, "unproven"))  # on a machine of any speed
    assert bool(plan["pools"]) != ("unsolved" in plan)
