"""A change of a spec on its way through git: on a branch, beside the plan that `main` keeps.

Every command runs twice and must print the same bytes, since its output is compared and commented on in reviews.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_run import TINY, Run, run
from git_repository import NEEDS_GIT, Repository

pytestmark = NEEDS_GIT

SPEC, PLAN = "specs/fleet.yaml", "plans/fleet.json"
MAIN_SPEC, MAIN_PLAN = f"git:main:{SPEC}", f"git:main:{PLAN}"

GROWN = TINY.replace("rate: 2 req/s", "rate: 20 req/s")
CAPPED = GROWN + "policies: [{max_monthly_cost: 2000 USD, id: cap}]\n"


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory, tiny_json: Path) -> Repository:
    """`main` has a spec and its plan; `growth` asks for ten times the traffic, `capped` sets a limit on its cost too."""
    made = Repository.made(tmp_path_factory.mktemp("history"))
    made.write(SPEC, TINY)
    made.write(PLAN, tiny_json.read_bytes())
    made.commit()
    for branch, text in {"growth": GROWN, "capped": CAPPED, "typo": GROWN.replace("rate:", "rat:")}.items():
        made.git("switch", "--quiet", "--create", branch, "main")
        made.write(SPEC, text)
        made.commit()
    return made


@pytest.fixture
def on(history: Repository, monkeypatch: pytest.MonkeyPatch) -> Repository:
    """The repository as working folder, for `switch` to bring to a branch."""
    monkeypatch.chdir(history.folder)
    return history


def switch(repository: Repository, branch: str) -> None:
    """Check a branch out, without what an earlier test may have left."""
    repository.git("switch", "--quiet", "--discard-changes", branch)


def twice(*arguments: str) -> Run:
    """Run a command again and again: the answer is the same to the byte."""
    first, second = run(*arguments), run(*arguments)
    assert (first.code, first.out) == (second.code, second.out)
    return first


@pytest.mark.parametrize(("branch", "code"), [("main", 0), ("growth", 0), ("typo", 1)])
def test_check_says_whether_a_branch_can_be_planned(branch: str, code: int, on: Repository) -> None:
    """In the work tree and, from any other branch, at the revision."""
    switch(on, branch)
    assert twice("check", SPEC).code == code

    switch(on, "main")
    assert twice("check", f"git:{branch}:{SPEC}").code == code


def test_the_plan_of_main_is_made_again_from_any_branch(on: Repository) -> None:
    switch(on, "growth")

    again = run("solve", MAIN_SPEC, "--quiet", "--format", "json")

    assert again.code == 0
    assert again.out.encode() == (on.folder / PLAN).read_bytes()


def test_show_prints_the_plan_of_main(on: Repository) -> None:
    switch(on, "growth")
    (on.folder / PLAN).write_text("changed since")

    shown = twice("show", MAIN_PLAN, "--format", "markdown")

    assert shown.code == 0
    assert shown.out.startswith("## tiny: 1 workload")


def test_solve_starts_from_the_plan_of_main(on: Repository) -> None:
    switch(on, "growth")

    done = twice("solve", SPEC, "--quiet", "--prefer", MAIN_PLAN, "--format", "markdown")

    assert done.code == 0
    assert done.out.startswith("## tiny: 1 workload")


def test_a_policy_of_the_branch_denies_its_plan(on: Repository) -> None:
    switch(on, "main")

    done = run("solve", f"git:capped:{SPEC}", "--quiet", "--format", "markdown")

    assert done.code == 5
    assert "cap" in done.out
