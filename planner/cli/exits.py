"""Exit codes of all commands, and which one wins when several apply."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum


class ExitCode(IntEnum):
    """What a run ended in, as scripts see it."""

    DONE = 0
    WRONG_INPUT = 1
    """A spec, catalog, plan or table cannot be used."""
    DIFFERS = 2
    """Plans differ, when asked to say so."""
    INFEASIBLE = 3
    UNPROVEN = 4
    """A plan is printed, but its gap is above the one asked for."""
    DENIED = 5
    """A policy denies the plan."""
    USAGE = 64
    """Wrong flags, or a path that is not there."""
    BUG = 70
    INTERRUPTED = 130


PRECEDENCE = (
    ExitCode.BUG,
    ExitCode.USAGE,
    ExitCode.WRONG_INPUT,
    ExitCode.INFEASIBLE,
    ExitCode.UNPROVEN,
    ExitCode.DENIED,
    ExitCode.DIFFERS,
    ExitCode.DONE,
)
"""When several apply, the first of these is returned."""


def first_of(codes: Iterable[ExitCode]) -> ExitCode:
    """Return the code that wins among those that apply; `DONE` when there are none."""
    return min(codes, key=PRECEDENCE.index, default=ExitCode.DONE)
