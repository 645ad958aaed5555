"""The examples of the page about `planner explain`: each is run, so that the page shows what the command prints."""

from __future__ import annotations

import re
import shlex
import tempfile
from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path

import typer
from typer.testing import CliRunner

from planner.cli.explain import explain
from planner.cli.solve import solve

ROOT = Path(__file__).parents[2]
OWNED, STAGING = "specs/examples/owned-hardware.yaml", "specs/staging.yaml"
INFEASIBLE = "tests/data/infeasible/memory.yaml"
EXAMPLES: Mapping[str, tuple[str, str]] = {
    "scarce": (OWNED, ""),
    "why-not": (STAGING, "--why-not l40s-tp1 --pool chat"),
    "sensitivities": (OWNED, "--sensitivities"),
}
WAYS = "What would make it feasible\n"


def _run(command: Callable[..., None], *arguments: str) -> str:
    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    app.command()(command)
    done = CliRunner().invoke(app, [*arguments])
    assert done.exit_code in (0, 3), done.stderr
    return done.stdout


@cache
def _plan(spec: str) -> str:
    path = Path(tempfile.mkdtemp()) / "plan.json"
    _run(solve, str(ROOT / spec), "--quiet", "--format", "json", "--out", str(path))
    return str(path)


def example(spec: str, flags: str) -> str:
    """Return the commands with what the last one prints, as a block of the page."""
    printed = _run(explain, _plan(spec), "--spec", str(ROOT / spec), *shlex.split(flags))
    if flags == "--sensitivities":
        printed = printed[printed.index("What a change would cost") :]
    commands = f"$ planner solve {spec} --out plan.json\n$ planner explain plan.json {flags}".rstrip()
    return f"```text\n{commands}\n{printed.rstrip()}\n```"


def infeasible() -> str:
    """Return what the first part of an answer without a fleet looks like."""
    printed = _run(solve, str(ROOT / INFEASIBLE), "--quiet").replace(str(ROOT / INFEASIBLE), INFEASIBLE)
    head, _, rest = printed.partition(WAYS)
    ways = re.split(r"\n\n", rest)[0]
    return f"```text\n$ planner solve {INFEASIBLE}\n{head}{WAYS}{ways}\n```"


def explain_parts() -> dict[str, Callable[[], str]]:
    """Return the generated parts of the page by name."""
    return {**{name: partial(example, *asked) for name, asked in EXAMPLES.items()}, "infeasible": infeasible}
