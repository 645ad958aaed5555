"""The examples of the page about `planner validate`: run on the logs of the suite."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import typer
from typer.testing import CliRunner

from planner.cli.calibrate import calibrate
from planner.cli.validate import validate

LOGS = "tests/data/memory/start_up_logs.csv"
ROOT = Path(__file__).parents[2]


def _shown(command: Callable[..., None], *options: str) -> str:
    app = typer.Typer(add_completion=False)
    app.command()(command)
    done = CliRunner().invoke(app, [str(ROOT / LOGS), *options])
    assert done.exit_code == 0, done.stderr
    return f"```text\n$ planner {' '.join([command.__name__, LOGS, *options])}\n{done.stdout}```"


def validate_parts() -> Mapping[str, Callable[[], str]]:
    """Return the generated parts of the page by name."""
    return {"validate": partial(_shown, validate, "--cross-validate"), "calibrate": partial(_shown, calibrate)}
