"""The examples of the page about sweeps: they are run, so that the page shows what the commands print."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import chdir
from pathlib import Path

import typer
from typer.testing import CliRunner

from planner.cli.frontier import frontier
from planner.cli.sweep import sweep

ROOT = Path(__file__).parents[2]
GRID = ("workloads.editor.traffic.rate=2..8/2 req/s", "workloads.assistant.slo.tpot_p95=60 ms,100 ms")


TRADE = "cost:tpot_p95@assistant"


def sweep_parts() -> Mapping[str, Callable[[], str]]:
    """Return the generated parts of the page by name."""
    shown = " \\\n    ".join(f'--set "{text}"' for text in GRID)
    settings = [part for text in GRID for part in ("--set", text)]
    return {
        "grid": lambda: _printed(sweep, f"sweep specs/staging.yaml \\\n    {shown}", settings),
        "frontier": lambda: _printed(frontier, f"frontier specs/staging.yaml --trade {TRADE}", ["--trade", TRADE]),
    }


def _printed(command: Callable[..., None], shown: str, arguments: Sequence[str]) -> str:
    """Return a command as people type it, with what it prints about the fleet of staging."""
    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    app.command()(command)
    with chdir(ROOT):
        done = CliRunner().invoke(app, ["specs/staging.yaml", *arguments, "--quiet"])
    assert done.exit_code == 0, done.stderr
    return f"```text\n$ planner {shown}\n{done.stdout.rstrip()}\n```"
