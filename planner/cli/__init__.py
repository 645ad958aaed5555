"""The command line: parse, call the pipeline, render. Commands do no work of their own."""

from __future__ import annotations

import gc
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from planner import __version__
from planner.cli.commands import CONTEXT_SETTINGS, LazyCommands, help_when_alone
from planner.cli.exits import ExitCode
from planner.cli.streams import note, note_lines, prepare_streams

PROGRAM = "planner"
OBJECTS_PER_COLLECTION = 100_000  # a process this short spends 5 % of its time looking for cycles at the default of 700

app = typer.Typer(
    name=PROGRAM,
    cls=LazyCommands,
    context_settings=CONTEXT_SETTINGS,
    invoke_without_command=True,
    rich_markup_mode=None,
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code. `arguments` are those of the process when they are not given."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    prepare_streams()
    gc.set_threshold(OBJECTS_PER_COLLECTION)
    try:
        code = typer.main.get_command(app)(given, prog_name=PROGRAM, standalone_mode=False)
    except (KeyboardInterrupt, typer.Abort):
        code = ExitCode.INTERRUPTED
    except typer.TyperException as error:
        return _usage(error)
    except Exception as error:
        return _failure(error, given)
    if code == ExitCode.INTERRUPTED:
        note(f"{PROGRAM}: interrupted")
    return code if isinstance(code, int) else ExitCode.DONE


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"{PROGRAM} {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    context: typer.Context,
    version: Annotated[  # noqa: ARG001
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Plan LLM serving fleets: a YAML spec in; a priced, proven and explained deployment out.

    Example: planner init, then planner solve fleet.yaml

    Flags have twins in the environment: --time-limit is PLANNER_TIME_LIMIT. Exit codes: 0 done, 1 wrong input,
    3 infeasible, 4 unproven, 5 denied by a policy, 64 wrong usage, 70 a bug, 130 interrupted.
    """
    help_when_alone(context)


def _usage(error: typer.TyperException) -> int:
    """Print a mistake in the flags as one line."""
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else PROGRAM
    text = " ".join(error.format_message().replace("Value error, ", "").split()).rstrip(".")
    note(f"{PROGRAM}: {text[:1].lower()}{text[1:]}; see {command} --help")
    return ExitCode.USAGE


def _failure(error: Exception, arguments: Sequence[str]) -> int:
    """Print what no command expected: mistakes in files as such, anything else as a bug, with a report file."""
    from planner.diagnostics import DiagnosticError

    if isinstance(error, DiagnosticError):
        from planner.report.diagnostics.full import render_full

        note_lines(render_full(error.diagnostics, {}).rstrip())
        return ExitCode.WRONG_INPUT
    from planner.cli.bugs import write_report

    path = write_report(error, arguments)
    where = f"a report is in {path}" if path is not None else "no report could be written"
    note(f"{PROGRAM}: this is a bug ({type(error).__name__}); {where}")
    return ExitCode.BUG
