"""The example of the page about sweeps: it is run, so that the page shows what the command prints."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import chdir
from pathlib import Path

import typer
from typer.testing import CliRunner

from planner.cli.sweep import sweep

ROOT = Path(__file__).parents[2]
GRID = ("workloads.editor.traffic.rate=2..8/2 req/s", "workloads.assistant.slo.tpot_p95=60 ms,100 ms")


def sweep_parts() -> Mapping[str, Callable[[], str]]:
    """Return the generated parts of the page by name."""
    return {"grid": _grid}


def _grid() -> str:
    """Return a command as people type it, with what it prints about the fleet of staging."""
    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    app.command()(sweep)
    arguments = [part for text in GRID for part in ("--set", text)]
    with chdir(ROOT):
        done = CliRunner().invoke(app, ["specs/staging.yaml", *arguments, "--quiet"])
    assert done.exit_code == 0, done.stderr
    shown = " \\\n    ".join(f'--set "{text}"' for text in GRID)
    return f"```text\n$ planner sweep specs/staging.yaml \\\n    {shown}\n{done.stdout.rstrip()}\n```"
