"""What Ctrl-C does while a fleet is planned: the first one asks to stop, the second ends the process."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Iterator

from planner.cli.exits import ExitCode

STOPPING = b"planner: stopping with the best fleet so far; Ctrl-C again ends at once\n"


@contextlib.contextmanager
def asking_to_stop(asked: threading.Event) -> Iterator[threading.Event]:
    """Let the first interrupt inside set `asked` instead of raising, and a second one end the process at once.

    Does nothing outside of the main thread, which alone receives signals, and where interrupts are ignored, as in jobs in
    the background.
    """
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield asked
        return

    def on_interrupt(_signal: int, _frame: object) -> None:
        if asked.is_set():
            os._exit(ExitCode.INTERRUPTED)
        asked.set()
        with contextlib.suppress(OSError, ValueError, AttributeError):
            os.write(sys.stderr.fileno(), STOPPING)  # a buffered stream may be in the middle of a write

    before = signal.signal(signal.SIGINT, on_interrupt)
    try:
        yield asked
    finally:
        signal.signal(signal.SIGINT, before)
