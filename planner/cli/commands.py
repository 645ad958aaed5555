"""The commands of `planner`, found by listing this package and imported only when they run.

A module is a command when its docstring starts with the command's name; the sentence after it is the line in the help.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, cast

import typer
from typer.core import TyperGroup

from planner.cli.exits import ExitCode
from planner.cli.streams import usage_error

FIRST = ("init", "check", "solve", "show", "diff", "verify", "explain")
"""Commands that the help lists before all others."""

MANUAL_PAGES = "concepts.md to start with, spec.md for every key, errors.md for every code"
CONTEXT_SETTINGS = {"help_option_names": ["-h", "--help"]}

_PACKAGE = "planner.cli"
_DOCSTRING = re.compile(r'"""`planner (?P<name>[a-z-]+)`: (?P<sentence>.*?)\.?(?:"""|\n|$)')


@cache
def listed_commands() -> dict[str, str]:
    """Return the sentence of every command, by name, in the order of the help."""
    package = importlib.import_module(_PACKAGE)
    found: dict[str, str] = {}
    for module in pkgutil.iter_modules(package.__path__):
        source = pkgutil.get_data(_PACKAGE, f"{module.name}.py") or b""
        if docstring := _DOCSTRING.match(source.decode()):
            found[docstring["name"]] = docstring["sentence"]
    order = [name for name in FIRST if name in found] + sorted(found.keys() - set(FIRST))
    return {name: found[name][:1].upper() + found[name][1:] + "." for name in order}


class LazyCommands(TyperGroup):
    """A group whose commands are modules of this package."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002
        """Return the names of all commands."""
        return list(listed_commands())

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002
        """Import a command, None when there is none of this name."""
        return _load(cmd_name) if cmd_name in listed_commands() else None

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command to run. Leaves with a usage error that names the nearest command."""
        name = args[0]
        if name not in listed_commands() and not name.startswith("-") and not ctx.resilient_parsing:
            _refuse(name)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002
        """List the commands in the help without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(listed_commands().items()))

    def format_epilog(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002
        """Say where the manual lies, on lines that are not wrapped: a path is to be copied."""
        with formatter.section("Manual"):
            formatter.write(f"  {MANUAL_PAGES}:\n  {manual_folder()}\n")


def manual_folder() -> Path:
    """Return the folder of the pages of the manual that ship inside the package."""
    return Path(str(files("planner"))) / "manual"


def help_when_alone(context: typer.Context) -> None:
    """Print the help of a group that is called without a command, and leave with the exit code of wrong usage."""
    if context.invoked_subcommand is None and not context.resilient_parsing:
        typer.echo(context.get_help(), err=True)
        raise typer.Exit(ExitCode.USAGE)


def _refuse(name: str) -> None:
    close = get_close_matches(name, listed_commands(), n=1)
    usage_error(
        f"there is no command `{name}`" + (f"; did you mean `{close[0]}`?" if close else "; see planner --help")
    )


@cache
def _load(name: str) -> Any:
    module = importlib.import_module(f"{_PACKAGE}.{name}")
    app = getattr(module, "app", None)
    if app is None:
        app = typer.Typer(add_completion=False, rich_markup_mode=None)
        app.command(name, context_settings=CONTEXT_SETTINGS)(getattr(module, name))
    command = typer.main.get_command(cast(typer.Typer, app))
    command.name = name
    return command
