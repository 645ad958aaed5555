"""The two streams: the answer goes to standard output, everything else to standard error, and files are written whole."""

from __future__ import annotations

import contextlib
import io
import os
import stat
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import NoReturn, TextIO

import typer

from planner.cli.exits import ExitCode

STANDARD = "-"
"""File name that stands for standard input or output."""
_READABLE = stat.S_IRUSR | stat.S_IRGRP | stat.S_IROTH


def prepare_streams() -> None:
    """Let streams write characters that their encoding lacks as escapes, instead of failing in the middle."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def answer(text: str) -> None:
    """Print the answer of a command. A reader that stops reading early, such as `head`, is no failure."""
    if sys.stdout is None:
        usage_error("standard output is closed")
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        _discard(sys.stdout)
    except OSError as error:
        _discard(sys.stdout)
        usage_error(f"cannot write to standard output: {error.strerror or error}")


def note(line: str) -> None:
    """Print one line about the run to standard error. Names in it may be anybody's: they stay on the line."""
    from planner.report.figures import visible

    with contextlib.suppress(OSError):
        sys.stderr.write(f"{visible(line)}\n")
        sys.stderr.flush()


def note_lines(text: str) -> None:
    """Print text of several lines to standard error."""
    for line in text.split("\n"):
        note(line)


def usage_error(message: str) -> NoReturn:
    """Print one line and leave with the exit code of wrong usage."""
    note(f"planner: {' '.join(message.split())}")
    raise typer.Exit(ExitCode.USAGE)


def check_writable(path: Path, read: Iterable[str] = ()) -> None:
    """Leave with a usage error, before any work is done, when a file cannot be written at `path`, or is one that is `read`."""
    if path.is_dir():
        usage_error(f"cannot write {path}: it is a folder")
    if not path.parent.is_dir():
        usage_error(f"cannot write {path}: there is no folder {path.parent}")
    if any(_is_same(path, other) for other in read):
        usage_error(f"cannot write {path}: it is one of the files that are read")


def _is_same(path: Path, read: str) -> bool:
    """Tell whether both name one file, links followed."""
    try:
        return read != STANDARD and (path.resolve() == Path(read).resolve() or path.samefile(read))
    except OSError:
        return False


def save(path: Path, content: str | bytes) -> None:
    """Write a file whole or not at all, the same bytes on every system. Leaves with a usage error when that fails.

    What is no regular file, such as `/dev/stdout`, and files in folders that take no new ones, are written in place. A
    script may be run by all who may read it.
    """
    data = content if isinstance(content, bytes) else content.encode("utf-8", "backslashreplace")
    try:
        if not _replaced(path, data):
            path.write_bytes(data)
        if data.startswith(b"#!") and path.is_file():
            mode = path.stat().st_mode
            path.chmod(mode | (mode & _READABLE) >> 2)
    except OSError as error:
        usage_error(f"cannot write {path}: {error.strerror or error}")


def _replaced(path: Path, data: bytes) -> bool:
    """Write a file beside `path` and put it there; False where none can be put there."""
    target = path.resolve()
    if target.exists() and (not target.is_file() or not os.access(target, os.W_OK)):
        return False
    beside = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        file = beside.open("xb")
    except OSError:
        return False
    try:
        with file:
            if target.exists():
                beside.chmod(target.stat().st_mode)
            file.write(data)
        beside.replace(target)
    finally:
        beside.unlink(missing_ok=True)
    return True


def wants_color(choice: str, stream: TextIO) -> bool:
    """Tell whether to print colour: as chosen, else NO_COLOR, else FORCE_COLOR, else on a terminal."""
    if choice != "auto":
        return choice == "always"
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def _discard(stream: TextIO) -> None:
    """Point a stream that cannot be written to nowhere, so that nothing fails again when it is closed."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
