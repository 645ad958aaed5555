"""What happens on a bug: one line for the user, and a file with what is needed to find it."""

from __future__ import annotations

import os
import platform
import tempfile
import traceback
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PACKAGES = ("llm-fleet-planner", "pydantic", "pyyaml", "numpy", "scipy", "pyomo", "highspy", "typer", "rich")
LONGEST_MESSAGE = 2000


def write_report(error: BaseException, arguments: Sequence[str]) -> Path | None:
    """Write a report about an error into the working folder, or the temporary one. None when neither can be written.

    It holds the command line, versions and the traceback; no values of variables and no text of the spec.
    """
    text = report_text(error, arguments)
    for folder in (Path.cwd(), Path(tempfile.gettempdir())):
        try:
            handle, name = tempfile.mkstemp(prefix="planner-bug-", suffix=".txt", dir=folder, text=True)
            with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
                file.write(text)
        except OSError:
            continue
        return Path(name)
    return None


def report_text(error: BaseException, arguments: Sequence[str]) -> str:
    """Return the text of a report."""
    frames = traceback.format_list(traceback.extract_tb(error.__traceback__))
    lines = [
        "planner failed. This is a bug. Read this file before you send it: paths may tell more than you want.",
        "",
        f"arguments: {' '.join(arguments)}",
        f"python: {platform.python_version()} on {platform.platform()}",
        *(f"{name}: {_version(name)}" for name in PACKAGES),
        "",
        *(frame.rstrip() for frame in frames),
        f"{type(error).__name__}: {_message(error)}",
    ]
    cause = error.__cause__ or error.__context__
    if cause is not None:
        lines += ["", f"after {type(cause).__name__}: {_message(cause)}"]
    return "\n".join(lines) + "\n"


def _message(error: BaseException) -> str:
    """Return what an error says. A failed validation repeats its input, so only its size is told."""
    count = getattr(error, "error_count", None)
    return f"{count()} values refused" if callable(count) else str(error)[:LONGEST_MESSAGE]


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"
