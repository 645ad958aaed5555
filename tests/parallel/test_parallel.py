"""Mapping over worker processes: order, faults, interrupts, and how many workers there are."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from planner.diagnostics import Diagnostic, DiagnosticError
from planner.parallel import alone, as_finished, in_order, workers_allowed

ITEMS = list(range(7))

INTERRUPTED = """
import os, sys, time
from pathlib import Path
from planner.parallel import in_order

def work(item):
    Path(sys.argv[1], str(os.getpid())).touch()
    time.sleep(60)

in_order(work, range(2), workers=2)
"""


def in_worker() -> bool:
    return multiprocessing.parent_process() is not None


@pytest.mark.parametrize("workers", [1, 2, 3, 20])
def test_results_come_in_order(workers: int) -> None:
    def slower_at_first(item: int) -> int:
        time.sleep(0.02 * (len(ITEMS) - item))
        return item * item

    assert in_order(slower_at_first, ITEMS, workers) == [item * item for item in ITEMS]


def test_workers_are_other_processes() -> None:
    found = set(in_order(lambda _: os.getpid(), ITEMS, workers=2))
    assert os.getpid() not in found
    assert 1 <= len(found) <= 2


@pytest.mark.parametrize(("items", "workers", "least"), [(ITEMS, 1, 2), (ITEMS, 2, 8), ([1], 2, 2), ([], 2, 2)])
def test_little_work_stays_here(items: list[int], workers: int, least: int) -> None:
    assert in_order(lambda _: os.getpid(), items, workers, least) == [os.getpid()] * len(items)


def test_workers_start_no_workers() -> None:
    nested = in_order(lambda _: (os.getpid(), in_order(lambda _: os.getpid(), ITEMS, workers=2)), ITEMS, workers=2)
    assert all(set(inner) == {outer} for outer, inner in nested)


@pytest.mark.parametrize("workers", [1, 2])
def test_the_first_exception_reaches_the_caller_unchanged(workers: int) -> None:
    def fails_late(item: int) -> int:
        if item == 2:
            time.sleep(0.2)
        if item >= 2:
            raise DiagnosticError([Diagnostic("spec/unknown-key", f"item {item}", help=("correct it",))])
        return item

    with pytest.raises(DiagnosticError) as caught:
        in_order(fails_late, ITEMS, workers)
    assert caught.value.diagnostics == (Diagnostic("spec/unknown-key", "item 2", help=("correct it",)),)


def test_what_falls_with_a_worker_is_computed_here() -> None:
    def deadly(item: int) -> int:
        if in_worker() and item in (1, 2):
            os.kill(os.getpid(), signal.SIGKILL)
        return item

    assert in_order(deadly, ITEMS, workers=2) == ITEMS


def test_a_result_that_does_not_travel_is_computed_here() -> None:
    found = in_order(lambda item: lambda: item, ITEMS, workers=2)
    assert [each() for each in found] == ITEMS


def test_results_come_as_they_are_finished() -> None:
    def slowest_first(item: int) -> int:
        time.sleep(0.5 if item == 0 else 0.0)
        return item * item

    found = list(as_finished(slowest_first, ITEMS, workers=2))
    assert found[-1] == (0, 0)
    assert sorted(found) == [(item, item * item) for item in ITEMS]


def test_a_worker_that_dies_is_replaced_and_its_item_tried_again(tmp_path: Path) -> None:
    def dies_once(item: int) -> int:
        if item in (1, 2, 5) and not (tmp_path / str(item)).exists():
            (tmp_path / str(item)).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return item

    assert sorted(as_finished(dies_once, ITEMS, workers=2)) == [(item, item) for item in ITEMS]


def test_an_item_that_no_worker_survives_has_no_result() -> None:
    def deadly(item: int) -> int:
        if item == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        return item

    found = dict(as_finished(deadly, ITEMS, workers=2))
    assert found == {**{item: item for item in ITEMS}, 3: None}


def test_nothing_is_shared_out_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLANNER_WORKERS", "3")
    with alone():
        assert workers_allowed() == 1
        assert in_order(lambda _: os.getpid(), ITEMS) == [os.getpid()] * len(ITEMS)
    assert workers_allowed() == 3


def test_an_interrupt_leaves_no_workers(tmp_path: Path) -> None:
    command = [sys.executable, "-c", INTERRUPTED, str(tmp_path)]
    with subprocess.Popen(command, start_new_session=True, stderr=subprocess.PIPE, text=True) as process:
        deadline = time.monotonic() + 30.0
        while len(list(tmp_path.iterdir())) < 2 and time.monotonic() < deadline:
            time.sleep(0.05)
        workers = [int(path.name) for path in tmp_path.iterdir()]
        assert len(workers) == 2
        os.killpg(process.pid, signal.SIGINT)  # as Ctrl-C does: to all processes of the terminal
        _, errors = process.communicate(timeout=30.0)
    assert process.returncode != 0
    assert errors.count("KeyboardInterrupt") == 1
    for worker in workers:
        with pytest.raises(ProcessLookupError):
            os.kill(worker, 0)


def test_the_environment_says_how_many_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLANNER_WORKERS", " 3 ")
    assert workers_allowed() == 3
    monkeypatch.delenv("PLANNER_WORKERS")
    assert 1 <= workers_allowed() <= (os.cpu_count() or 1)


@pytest.mark.parametrize("given", ["0", "-1", "two", "1.5", "²"])
def test_a_number_of_workers_that_is_none_is_refused(given: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLANNER_WORKERS", given)
    with pytest.raises(DiagnosticError, match=f"PLANNER_WORKERS is `{given}`") as caught:
        workers_allowed()
    assert caught.value.diagnostics[0].code == "usage/workers"
