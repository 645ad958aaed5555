"""Help pages, word for word. PLANNER_UPDATE_GOLDENS=1 writes them anew: look at the difference before you keep it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from cli_run import ROOT, run

import planner
from planner.cli.commands import listed_commands

CALCULATORS = ("kv", "decode", "intensity", "hbm", "concurrency", "training", "offload")
PACKAGE = Path(planner.__file__).parent
GOLDENS = ROOT / "tests" / "golden" / "help"
PAGES = [
    [],
    *([name] for name in listed_commands()),
    ["catalog", "list"],
    ["catalog", "show"],
    ["catalog", "check"],
    *(["size", name] for name in CALCULATORS),
]


@pytest.mark.parametrize("command", PAGES, ids=lambda command: "-".join(command) or "planner")
def test_help_page(command: list[str]) -> None:
    path = GOLDENS / f"{'-'.join(['planner', *command])}.txt"
    done = run(*command, "--help")
    shown = done.out.replace(str(PACKAGE), "<package>")
    if os.environ.get("PLANNER_UPDATE_GOLDENS"):
        path.write_text(shown, encoding="utf-8")

    assert done.code == 0
    assert shown == path.read_text(encoding="utf-8")
    assert run(*command, "-h").out == done.out


def test_the_help_says_where_the_manual_lies() -> None:
    lines = run("--help").out.splitlines()
    folder = Path(lines[-1].strip())
    named = [word for word in lines[-2].replace(":", " ").split() if word.endswith(".md")]

    assert folder == PACKAGE / "manual"
    assert len(named) == 3
    assert all((folder / name).is_file() for name in named)


def test_the_package_runs_as_the_command() -> None:
    done = subprocess.run([sys.executable, "-m", "planner", "--version"], capture_output=True, text=True, check=False)
    wrong = subprocess.run([sys.executable, "-m", "planner", "no-such"], capture_output=True, text=True, check=False)

    assert (done.returncode, done.stdout) == (0, f"planner {planner.__version__}\n")
    assert wrong.returncode == 64
    assert wrong.stderr.startswith("planner: ")


def test_commands_are_listed_in_the_order_of_their_use() -> None:
    assert list(listed_commands()) == [
        "init",
        "check",
        "solve",
        "show",
        "diff",
        "verify",
        "explain",
        "calibrate",
        "catalog",
        "estimate",
        "export",
        "frontier",
        "schema",
        "simulate",
        "size",
        "sweep",
        "validate",
    ]
