"""`planner frontier`: what it prints, draws and refuses."""

from __future__ import annotations

import json

import pytest
from cli_run import TINY, WriteSpec, run


def test_the_steps_of_a_trade(spec_file: WriteSpec) -> None:
    spec = spec_file(TINY.replace("rate: 2 req/s", "rate: 20 req/s"))
    done = run("frontier", spec, "--trade", "cost:gpus", "--between", "1..4", "--format", "json")

    found = json.loads(done.out)
    assert (done.code, done.err) == (0, "")
    assert (found["unit"], found["planned"]) == ("GPUs", 4)
    (step,) = found["steps"]
    assert step["next"] == "no-fleet"
    assert step["dearer_at"] == step["limit"] - 1
    assert step["row"]["gpus"] == step["limit"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--trade", "cost:tpot_p59@assistant"], "did you mean cost:tpot_p95@assistant?"),
        (["--trade", "cost:gpus", "--executor", "lcal"], "did you mean `local`?"),
        (["--trade", "cost:gpus", "--format", "svg"], "--out"),
        (["--trade", "cost:gpus", "--out", "f.gif"], "cannot tell the format"),
    ],
)
def test_wrong_usage_is_one_line(arguments: list[str], message: str, spec_file: WriteSpec) -> None:
    done = run("frontier", spec_file(TINY), *arguments)

    assert (done.code, done.out) == (64, "")
    assert len(done.err.splitlines()) == 1
    assert message in done.err
