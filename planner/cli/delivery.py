"""Bring a plan to where it was asked for: standard output, a file, or both."""

from __future__ import annotations

import importlib
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from planner.cli.options import Color, PlanFormat, format_of, is_file
from planner.cli.streams import answer, check_writable, note, save, usage_error, wants_color

if TYPE_CHECKING:
    from planner.plan.schema import Plan
    from planner.report.content import Origin

F = TypeVar("F", bound=StrEnum)


@dataclass(frozen=True)
class Delivery:
    """Where a plan goes. `file` is None for standard output alone; `shown` is None when only the file was asked for."""

    shown: PlanFormat | None
    file: Path | None
    saved: PlanFormat
    color: Color
    quiet: bool = False

    @classmethod
    def of(
        cls, chosen: PlanFormat | None, out: str | None, color: Color, quiet: bool = False, read: Iterable[str] = ()
    ) -> Delivery:
        """Decide where a plan goes, and leave with a usage error now if it cannot be written there, or is `read` there.

        Beside a file the table is printed, unless a format is chosen, which is that of the file, or little is to be said.
        """
        if out is None or not is_file(out):
            return cls(chosen or PlanFormat.TABLE, None, PlanFormat.TABLE, color, quiet)
        saved, file = format_of(out, chosen), Path(out)
        check_writable(file, read)
        return cls(PlanFormat.TABLE if chosen is None and not quiet else None, file, saved, color, quiet)

    @property
    def is_page(self) -> bool:
        """Tell whether a page is written, which shows more than a plan holds."""
        return PlanFormat.HTML in (self.shown, self.saved)

    def deliver(self, plan: Plan, origin: Origin | None = None, after: str = "") -> None:
        """Save and print a plan; `after` is a last line below the table."""
        if self.file is not None:
            save(self.file, render(plan, self.saved, origin))
            if not self.quiet:
                note(f"wrote {self.file}")
        if self.shown is PlanFormat.TABLE:
            colored = wants_color(self.color, sys.stdout)
            width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
            answer(render(plan, self.shown, origin, colored, width) + (f"\n{after}\n" if after else ""))
        elif self.shown is not None:
            answer(render(plan, self.shown, origin))


def check_out(out: str | None, read: Iterable[str] = ()) -> None:
    """Leave with a usage error, before any work is done, when the answer cannot be saved where it is asked for.

    Files that are `read` are not overwritten.
    """
    if out is not None and is_file(out):
        check_writable(Path(out), read)


def format_by_ending(
    out: str | None, chosen: F | None, endings: Mapping[str, F], default: F, only_files: Mapping[F, str]
) -> F:
    """Return the format of an answer: the chosen one, else by the ending of `out`, else the default.

    Leaves with a usage error for other endings, and for formats of `only_files`, each with what it is, without a file.
    """
    file = Path(out) if out is not None and is_file(out) else None
    if chosen is None and file is not None:
        chosen = endings.get(file.suffix.lower())
        if chosen is None:
            usage_error(f"cannot tell the format of {out}: end it in {', '.join(endings)}, or give --format")
    if chosen is None:
        return default
    if chosen in only_files and file is None:
        usage_error(f"--format {chosen}: it is {only_files[chosen]}; give a file with --out")
    return chosen


def save_answer(out: str, content: str | bytes, quiet: bool) -> None:
    """Save an answer in a file, and say so."""
    save(Path(out), content)
    if not quiet:
        note(f"wrote {out}")


def hand_over(out: str | None, color: Color, quiet: bool, text: Callable[[bool, int | None], str]) -> None:
    """Print an answer, or save it in a file; `text` returns it, in colour or not, for a width or for any (None)."""
    if out is not None and is_file(out):
        save_answer(out, text(False, None), quiet)
        return
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    answer(text(wants_color(color, sys.stdout), width))


def render(
    plan: Plan, format: PlanFormat, origin: Origin | None = None, color: bool = False, width: int | None = None
) -> str:
    """Return a plan in a format. Each format is the module of that name in `planner.report`."""
    module = importlib.import_module(f"planner.report.{format}")
    text: str = module.render(plan, origin, color=color, width=width)
    return text
