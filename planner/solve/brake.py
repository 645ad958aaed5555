"""How searches that run are told to stop: whoever starts one gives the brake, every HiGHS search inside listens to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Brake = Callable[[], bool]
"""Tells whether to stop."""

_BRAKE: ContextVar[Brake | None] = ContextVar("brake", default=None)


@contextmanager
def stopped_by(brake: Brake | None) -> Iterator[None]:
    """Let a brake stop the searches inside, which then return what they have: their callers must bear that."""
    token = _BRAKE.set(brake)
    try:
        yield
    finally:
        _BRAKE.reset(token)


def current_brake() -> Brake | None:
    """Return the brake to listen to, None where a search is to run to its end."""
    return _BRAKE.get()
