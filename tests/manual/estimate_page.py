"""The examples of the page about `planner estimate`: each is run, so that the page shows what the command prints."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from functools import partial

import typer
from typer.testing import CliRunner

from planner.cli.estimate import estimate

EXAMPLES: Mapping[str, str] = {
    "fits": "--model deepseek-ai/DeepSeek-R1 --gpu H200-SXM-141GB --tp 8 --weights fp8",
    "short": "--model openai/gpt-oss-120b --gpu H100-SXM-80GB --tp 1",
    "load": "--model llama-3.3-70b --gpu h100-sxm --tp 4 --weights fp8 --kv fp8 --concurrency 64 --explain",
    "find": "--model llama-3.3-70b --gpu h100-sxm --weights fp8 --max-model-len 131072 --find min-tp",
}


def example(arguments: str) -> str:
    """Return a command with what it prints, as a block of the page."""
    app = typer.Typer(rich_markup_mode=None)
    app.command()(estimate)
    done = CliRunner().invoke(app, shlex.split(arguments))
    assert done.exit_code in (0, 3), done.stderr
    return f"```text\n$ planner estimate {arguments}\n{done.stdout}```"


def example_parts() -> dict[str, Callable[[], str]]:
    """Return the generated parts of the page by name."""
    return {name: partial(example, arguments) for name, arguments in EXAMPLES.items()}
