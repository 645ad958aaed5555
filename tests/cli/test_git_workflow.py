"""A change of a spec on its way through git: on a branch, beside the plan that `main` keeps.

Every command runs twice and must print the same bytes, since its output is compared and commented on in reviews.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_run import TINY, Run, run
from git_repository import NEEDS_GIT, Repository

pytestmark = NEEDS_GIT

SPEC, PLAN = "specs/fleet.yaml", "plans/fleet.json"
MAIN_SPEC, MAIN_PLAN = f"git:main:{SPEC}", f"git:main:{PLAN}"

DIFF_MAIN = ("diff", "git:main", SPEC, "--quiet")
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


def test_diff_is_what_a_review_needs(on: Repository) -> None:
    """The cost first, then the line that caused it; the first line is hidden, for the comment to be found again."""
    switch(on, "growth")

    done = twice(*DIFF_MAIN, "--format", "markdown")

    assert done.code == 0
    lines = done.out.splitlines()
    assert lines[0].startswith("<!-- planner diff ")
    assert lines[2].startswith("## tiny: monthly cost up \\$")
    assert f"| 1 | workloads.assistant.traffic.rate | 2 req/s | 20 req/s | {SPEC}:8 | +\\$" in done.out


def test_diff_fails_only_where_it_is_asked_to(on: Repository) -> None:
    switch(on, "growth")
    assert run(*DIFF_MAIN, "--detailed-exitcode").code == 2

    switch(on, "main")
    same = run(*DIFF_MAIN, "--detailed-exitcode")
    assert same.code == 0
    assert "monthly cost unchanged" in same.out


def test_the_file_of_the_work_tree_is_the_new_side(on: Repository) -> None:
    """Without NEW: also from a folder below the top."""
    switch(on, "growth")

    whole, below = run("diff", MAIN_SPEC, "--quiet", "--format", "json"), None
    with pytest.MonkeyPatch.context() as moved:
        moved.chdir(on.folder / "specs")
        below = run("diff", MAIN_SPEC, "--quiet", "--format", "json")

    assert whole.code == below.code == 0
    numbers = [json.loads(done.out) for done in (whole, below)]
    assert numbers[0]["usd_per_month_delta"] == numbers[1]["usd_per_month_delta"] > 0.0
    assert numbers[1]["new"]["label"] == "fleet.yaml"


def test_diff_of_a_policy_that_the_branch_sets_for_itself(on: Repository) -> None:
    """A cap is stricter, so it counts at once; taking one away counts once it is merged."""
    switch(on, "capped")
    added = twice(*DIFF_MAIN, "--format", "json")

    assert added.code == 5
    assert [(e["id"], e["kind"], e["tightens"]) for e in json.loads(added.out)["policy_edits"]] == [
        ("cap", "added", True)
    ]

    switch(on, "growth")
    removed = run("diff", "git:capped", SPEC, "--quiet", "--format", "json")

    assert removed.code == 5
    assert [(e["kind"], e["loosens"]) for e in json.loads(removed.out)["policy_edits"]] == [("removed", True)]


def test_a_file_of_policies_judges_both(on: Repository, tmp_path: Path) -> None:
    """What the change cannot touch: no increase of the cost."""
    switch(on, "growth")
    owned = tmp_path / "org.yaml"
    owned.write_text("policies: [{max_monthly_cost_increase: 10 %, id: slow}]\n", encoding="utf-8")

    done = run(*DIFF_MAIN, "--policies", str(owned), "--format", "github")

    assert done.code == 5
    assert "::error title=policy::slow: max_monthly_cost_increase is " in done.out


def test_a_file_of_policies_in_the_checkout_cannot_be_loosened_either(on: Repository) -> None:
    """It is judged as it was on the old side too, and its edit is told."""
    switch(on, "main")
    on.git("switch", "--quiet", "--create", "ruled", "main")
    on.write("org.yaml", "policies: [{max_monthly_cost: 2000 USD, id: cap}]\n")
    on.commit()
    on.write(SPEC, GROWN)
    on.write("org.yaml", "policies: [{max_monthly_cost: 90000 USD, id: cap}]\n")
    try:
        done = run("diff", "git:ruled", SPEC, "--quiet", "--policies", "org.yaml", "--format", "json")
        again = run("diff", "git:ruled", SPEC, "--policies", "org.yaml", "--save", "org.json", "--out", SPEC)
    finally:
        on.git("checkout", "--quiet", "--", ".")

    assert done.code == 5
    told = json.loads(done.out)
    assert [p["outcome"] for p in told["policies"]] == ["ok", "deny"]
    assert [(e["id"], e["loosens"]) for e in told["policy_edits"]] == [("cap", True)]
    assert again.code == 64
    assert "is one of the files that are read" in again.err


def test_diff_of_a_plan_with_a_spec_knows_the_spec_of_the_plan(on: Repository) -> None:
    """The spec of a committed plan is that of its commit, so the changed line is named, not only the demand."""
    switch(on, "growth")

    done = run("diff", MAIN_PLAN, SPEC, "--quiet", "--format", "json")

    assert done.code == 0
    assert [c["key"] for c in json.loads(done.out)["causes"]] == ["workloads.assistant.traffic.rate"]


@pytest.mark.parametrize(("branch", "code"), [("main", 0), ("growth", 3)])
def test_verify_holds_the_plan_of_main_against_a_branch(branch: str, code: int, on: Repository) -> None:
    switch(on, branch)

    done = twice("verify", PLAN, "--spec", SPEC, "--format", "markdown", "--no-repair")

    assert done.code == code
    assert ("no longer satisfies" in done.out) == (code == 3)


def test_verify_finds_the_spec_by_its_name(on: Repository) -> None:
    """Plans beside their specs, a folder of them, and a wrong spec."""
    switch(on, "growth")
    beside = on.folder / "specs" / "fleet.plan.json"
    beside.write_bytes((on.folder / PLAN).read_bytes())
    try:
        assert run("verify", "specs", "--no-repair").code == 3
        switch(on, "typo")
        wrong = run("verify", "specs", "--no-repair")
        assert wrong.code == 1
        assert "spec/unknown-key" in wrong.err
    finally:
        beside.unlink()


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("diff", "git:none", SPEC), 64, "there is no commit `none` here"),
        (("diff", "git:main:../fleet.yaml", SPEC), 64, "the path leads out of the repository"),
        (("diff", "git:main"), 64, "say with what it is to be compared"),
        (("diff", SPEC), 64, "with what is specs/fleet.yaml to be compared?"),
        (("diff", MAIN_SPEC, "git:typo:specs/fleet.yaml"), 1, "spec/unknown-key"),
        (("diff", MAIN_SPEC, SPEC, "--save", "a.xml"), 64, "cannot tell the format of a.xml"),
        (("verify", "git:main:plans/none.json", "--spec", SPEC), 64, "has no file plans/none.json"),
        (("verify",), 64, "what is to be verified?"),
        (("verify", "--spec", SPEC), 64, "says nothing under `deployed`"),
    ],
)
def test_wrong_input(arguments: tuple[str, ...], code: int, said: str, on: Repository) -> None:
    switch(on, "main")

    done = run(*arguments)

    assert done.code == code
    assert said in done.err


def test_a_plan_that_was_edited_by_hand_is_refused(on: Repository) -> None:
    switch(on, "main")
    edited = on.folder / "edited.json"
    edited.write_bytes((on.folder / PLAN).read_bytes().replace(b'"fleet": "tiny"', b'"fleet": "tidy"'))
    other = on.folder / "other.json"
    other.write_bytes((on.folder / PLAN).read_bytes().replace(b'"schema_version": 1', b'"schema_version": 2', 1))
    try:
        for command in (("diff", "edited.json", SPEC), ("verify", "edited.json", "--spec", SPEC)):
            done = run(*command)
            assert done.code == 1
            assert "its digest does not match" in done.err
        assert "not a plan of schema_version 1" in run("diff", "other.json", SPEC).err
    finally:
        edited.unlink()
        other.unlink()
