"""Help pages, word for word. PLANNER_UPDATE_GOLDENS=1 writes them anew: look at the difference before you keep it."""

from __future__ import annotations

import os

import pytest
from cli_run import ROOT, run

from planner.cli.commands import NOT_BUILT_YET, listed_commands

CALCULATORS = ("kv", "decode", "intensity", "hbm", "concurrency", "training", "offload")
GOLDENS = ROOT / "tests" / "golden" / "help"
PAGES = [
    [],
    *([name] for name in listed_commands()),
    ["catalog", "list"],
    ["catalog", "show"],
    ["catalog", "check"],
    *(["size", name] for name in CALCULATORS),
]


@pytest.mark.parametrize("command", PAGES, ids=lambda command: "-".join(command) or "planner")
def test_help_page(command: list[str]) -> None:
    path = GOLDENS / f"{'-'.join(['planner', *command])}.txt"
    done = run(*command, "--help")
    if os.environ.get("PLANNER_UPDATE_GOLDENS"):
        path.write_text(done.out, encoding="utf-8")

    assert done.code == 0
    assert done.out == path.read_text(encoding="utf-8")
    assert run(*command, "-h").out == done.out


def test_commands_are_listed_in_the_order_of_their_use() -> None:
    assert list(listed_commands()) == [
        "init",
        "check",
        "solve",
        "show",
        "calibrate",
        "catalog",
        "estimate",
        "explain",
        "schema",
        "simulate",
        "size",
        "validate",
    ]
    assert not set(NOT_BUILT_YET) & set(listed_commands())
