"""A line on the terminal that says how far something is, and how long it will take."""

from __future__ import annotations

import sys
import time
from typing import Self

LEAST_S_BETWEEN = 0.5
_CLEAR = "\r\x1b[K"


class Progress:
    """Counts what is finished of `total`, None where nobody knows; on standard error, and only where that is a terminal."""

    def __init__(self, noun: str, total: int | None, done: int, quiet: bool) -> None:
        self._noun, self._total, self._before, self._done = noun, total, done, done
        self._started = time.monotonic()
        self._shown_at = 0.0
        self._is_shown = not quiet and sys.stderr.isatty()

    def finished(self) -> None:
        """Count one more."""
        self._done += 1
        now = time.monotonic()
        if self._is_shown and (now - self._shown_at >= LEAST_S_BETWEEN or self._done == self._total):
            self._shown_at = now
            sys.stderr.write(f"{_CLEAR}{self._text(now - self._started)}")
            sys.stderr.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_raised: object) -> None:
        """Take the line away."""
        if self._is_shown:
            sys.stderr.write(_CLEAR)
            sys.stderr.flush()

    def _text(self, passed_s: float) -> str:
        from planner.report.figures import seconds

        each_s = passed_s / max(1, self._done - self._before)
        if self._total is None:
            return f"{self._done:,} {self._noun}, {seconds(each_s)} each"
        left_s = each_s * (self._total - self._done)
        return f"{self._done:,} of {self._total:,} {self._noun}, {seconds(each_s)} each, {seconds(left_s)} left"
