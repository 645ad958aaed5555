"""Flags that several commands share, and the reading of their values. Every flag has a twin `PLANNER_<FLAG>`."""

from __future__ import annotations

from datetime import date
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from planner.cli.streams import STANDARD, usage_error
from planner.units import UnitError, parse_quantity


class PlanFormat(StrEnum):
    """How a plan is printed: each is a module of `planner.report`."""

    TABLE = "table"
    JSON = "json"
    MARKDOWN = "markdown"
    HTML = "html"


class AnswerFormat(StrEnum):
    """How an answer other than a plan is printed."""

    TABLE = "table"
    JSON = "json"


class Color(StrEnum):
    """Whether to print colour."""

    AUTO = "auto"
    ALWAYS = "always"
    NEVER = "never"


FORMAT_BY_ENDING = {
    ".json": PlanFormat.JSON,
    ".md": PlanFormat.MARKDOWN,
    ".html": PlanFormat.HTML,
    ".txt": PlanFormat.TABLE,
}


def flag(name: str, help: str, *more: str, **settings: Any) -> Any:
    """Return an option with its environment variable: `--time-limit` is also `PLANNER_TIME_LIMIT`."""
    variable = f"PLANNER_{name.removeprefix('--').replace('-', '_').upper()}"
    return typer.Option(name, *more, help=help, envvar=variable, show_envvar=False, **settings)


AsOfOption = Annotated[str | None, flag("--as-of", "Day that ages prices, waivers and ends.", metavar="DATE")]
CatalogOption = Annotated[Path | None, flag("--catalog", "Folder of the catalog.", metavar="DIR")]
FormatOption = Annotated[
    PlanFormat | None, flag("--format", "How to print the plan; default: by the ending of --out, else table.")
]
AnswerFormatOption = Annotated[AnswerFormat, typer.Option("--format", help="How to print the answer.")]
GapOption = Annotated[
    str | None, flag("--gap", "Distance from the proven bound to stop at, such as '0.1 %'.", metavar="SHARE")
]
OutOption = Annotated[
    str | None, flag("--out", "Save the plan: .json, .md, .html or .txt; - is standard output.", "-o", metavar="FILE")
]
PoliciesOption = Annotated[
    list[str] | None,
    flag("--policies", "A file of policies beside those of the spec; may be given several times.", metavar="FILE"),
]
ColorOption = Annotated[Color, flag("--color", "Whether to print colour.")]
QuietOption = Annotated[bool, flag("--quiet", "Print the answer and errors only.", "-q")]
StdinNameOption = Annotated[str | None, flag("--stdin-filename", "Name of standard input in messages.", metavar="NAME")]


def quantity(name: str, text: str | None, dimension: str) -> float | None:
    """Read the value of a flag in base units, such as `60s` or `0.1 %`. Leaves with a usage error."""
    if text is None:
        return None
    try:
        return parse_quantity(text, dimension)
    except UnitError as error:
        usage_error(f"{name}: {error.message}; {error.hint}")


def day(name: str, text: str | None) -> date | None:
    """Read a date such as `2026-12-01`. Leaves with a usage error."""
    if text is None:
        return None
    try:
        return date.fromisoformat(text)
    except ValueError:
        usage_error(f"{name}: `{text}` is not a date; write it as `2026-12-01`")


def format_of(out: str, chosen: PlanFormat | None) -> PlanFormat:
    """Return the format of a file: the chosen one, else by its ending. Leaves with a usage error for other endings."""
    known = FORMAT_BY_ENDING.get(Path(out).suffix.lower())
    if chosen is None and known is None:
        usage_error(f"cannot tell the format of {out}: end it in {', '.join(FORMAT_BY_ENDING)}, or give --format")
    return chosen or known or PlanFormat.TABLE


def is_file(out: str | None) -> bool:
    """Tell whether `--out` names a file."""
    return out is not None and out != STANDARD
