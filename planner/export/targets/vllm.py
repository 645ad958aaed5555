"""A shell script with a `vllm serve` command for every pool."""

from __future__ import annotations

from collections.abc import Sequence

from planner.export.documents import Document
from planner.export.placed import PlacedPool
from planner.export.script import BASH, UNDECIDED, pool_script
from planner.export.target import Target, Written
from planner.plan.schema import Plan


def _write(plan: Plan, placed: Sequence[PlacedPool]) -> Written:  # noqa: ARG001
    return Written((Document("serve", pool_script(placed)),))


TARGET = Target(
    name="vllm",
    sentence="a shell script that starts a replica of any pool with `vllm serve`",
    ending=".sh",
    write=_write,
    engines=("vllm",),
    leaves_out=True,
    undecided=UNDECIDED,
    first_line=BASH,
)
