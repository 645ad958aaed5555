"""Make a HiGHS object without its banner, which its constructor prints to standard output whatever the options say."""

from __future__ import annotations

import contextlib
import ctypes
import os
import threading
from collections.abc import Iterator
from typing import Any

import highspy

STANDARD_OUTPUT = 1
_LOCK = threading.Lock()  # the descriptor belongs to the whole process


def new_solver() -> Any:
    """Return a new HiGHS object; standard output stays untouched, since it belongs to the answer."""
    with _LOCK, _discarded_output():
        return highspy.Highs()  # type: ignore[no-untyped-call]


@contextlib.contextmanager
def _discarded_output() -> Iterator[None]:
    """Point the process's standard output to nowhere, and flush what C code buffered before it comes back."""
    try:
        kept = os.dup(STANDARD_OUTPUT)
    except OSError:  # standard output is closed: there is nothing to protect
        yield
        return
    _flush()
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, STANDARD_OUTPUT)
        yield
        _flush()
    finally:
        os.dup2(kept, STANDARD_OUTPUT)
        os.close(kept)
        os.close(nowhere)


def _flush() -> None:
    with contextlib.suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).fflush(None)
