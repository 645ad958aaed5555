"""The example of the page about `planner simulate`: it is run, so that the page shows what the command prints."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import typer
from typer.testing import CliRunner

from planner.cli.simulate import simulate

ROOT = Path(__file__).parents[2]
FLAGS = "--fail-at 10min --fail-pool reason --duration 30min"
SHOWN = "Before and after the failure"


def failure_example() -> str:
    """Return the command with its first lines and the table of the failure."""
    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    app.command()(simulate)
    plan, spec = ROOT / "tests" / "data" / "plans" / "prod.json", ROOT / "specs" / "prod.yaml"
    done = CliRunner().invoke(app, [str(plan), "--spec", str(spec), *FLAGS.split()])
    assert done.exit_code == 0, done.stderr
    parts = done.stdout.split("\n\n")
    table = next(part for part in parts if part.startswith(SHOWN)).splitlines()
    rows = [line for line in table[:2] + table[2:] if line in table[:2] or line.lstrip().startswith("reason")]
    commands = f"$ planner solve specs/prod.yaml --out plan.json\n$ planner simulate plan.json {FLAGS}"
    return f"```text\n{commands}\n{parts[0]}\n...\n" + "\n".join(rows) + "\n...\n```"


def simulate_parts() -> Mapping[str, Callable[[], str]]:
    """Return the generated parts of the page."""
    return {"failure": failure_example}
