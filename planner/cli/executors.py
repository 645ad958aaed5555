"""Where variants of a spec are planned, scenarios tried, or the models of a large fleet solved: processes here, or a cluster."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from planner.cli.streams import usage_error

if TYPE_CHECKING:
    from planner.sweep.executor import Executor


@contextmanager
def working_at(where: str) -> Iterator[Executor]:
    """Open an executor, which also solves models of a large fleet. Leaves with a usage error where it cannot be had, or is gone."""
    from planner.parallel import elsewhere
    from planner.sweep.executor import ExecutorError, executor

    try:
        with executor(where) as opened, elsewhere(opened):
            yield opened
    except ExecutorError as error:
        usage_error(f"--executor: {error}")
