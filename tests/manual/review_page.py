"""The examples of the page about reviews: they are run, so that the page shows what the commands print."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import chdir
from pathlib import Path
from tempfile import TemporaryDirectory

import typer
from typer.testing import CliRunner

from planner.cli.diff import diff
from planner.cli.solve import solve
from planner.cli.verify import verify

STAGING = Path(__file__).parents[2] / "specs" / "staging.yaml"
DIFF = ("old/staging.yaml", "specs/staging.yaml")
VERIFY = ("old/staging.plan.json", "--spec", "specs/staging.yaml")


def printed(command: Callable[..., None], name: str, *arguments: str) -> str:
    """Return a command with what it prints."""
    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    app.command()(command)
    done = CliRunner().invoke(app, [*arguments, "--quiet"])
    assert done.exit_code in (0, 3), done.stderr
    return f"```text\n$ planner {name} {' '.join(arguments)}\n{done.stdout.rstrip()}\n```"


def in_a_folder(command: Callable[..., None], name: str, *arguments: str) -> str:
    """Return what a command prints about the fleet of staging and four times the traffic of one workload."""
    text = STAGING.read_text(encoding="utf-8")
    with TemporaryDirectory() as folder, chdir(folder):
        for place in ("old", "specs"):
            os.mkdir(place)
        Path("old/staging.yaml").write_text(text, encoding="utf-8")
        if any(argument.endswith(".json") for argument in arguments):
            printed(solve, "solve", "old/staging.yaml", "--out", "old/staging.plan.json")
        Path("specs/staging.yaml").write_text(text.replace("rate: 2 req/s", "rate: 8 req/s"), encoding="utf-8")
        return printed(command, name, *arguments)


def review_parts() -> Mapping[str, Callable[[], str]]:
    """Return the generated parts of the page."""
    return {
        "diff": lambda: in_a_folder(diff, "diff", *DIFF),
        "verify": lambda: in_a_folder(verify, "verify", *VERIFY),
    }
