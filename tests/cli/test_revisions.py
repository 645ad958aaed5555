"""Specs, plans and catalogs at a revision, wherever a command takes one: `git:REF:PATH`."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
import typer
from cli_run import ROOT, TINY, WRONG, run
from git_repository import NEEDS_GIT, Repository

from planner.candidates.configs import config_models
from planner.cli.inputs import catalog_for, policies_at, read_plan, read_spec
from planner.pipeline import spec_digest
from planner.spec.variants import with_texts

pytestmark = NEEDS_GIT

CONFIG = ROOT / "tests/data/configs/RedHatAI--Meta-Llama-3.1-8B-Instruct-FP8-dynamic.json"
PLAN = ROOT / "tests/data/plans/prod.json"


@pytest.fixture(scope="module")
def first_commit(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    """A repository with a spec and a plan, without a catalog, for copies."""
    made = Repository.made(tmp_path_factory.mktemp("first"))
    made.write("specs/tiny.yaml", TINY)
    made.write("plans/prod.json", PLAN.read_bytes())
    made.commit()
    return made


@pytest.fixture
def repository(first_commit: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    """A repository with a spec and a plan; its work tree is the working folder."""
    copy = first_commit.copied(tmp_path / "work")
    monkeypatch.chdir(copy.folder)
    return copy


def test_a_spec_at_a_revision_is_checked_as_it_was(repository: Repository) -> None:
    """Places are those of the file there, with its lines."""
    repository.write("specs/tiny.yaml", WRONG)
    repository.git("switch", "--quiet", "--create", "typo")
    repository.commit()

    assert run("check", "git:main:specs/tiny.yaml").code == 0
    done = run("check", "git:typo:specs/tiny.yaml")
    assert done.code == 1
    assert done.out.startswith("error[spec/unknown-key]: `ttft_p59` is not a key of `slo`\n")
    assert " --> git:typo:specs/tiny.yaml:9:11\n" in done.out
    assert "\n9 |     slo: {ttft_p59: 1 s, tpot_p95: 50 ms}\n" in done.out
    assert run("solve", "git:typo:specs/tiny.yaml").err == done.out


def test_a_folder_at_a_revision_is_checked_file_by_file(repository: Repository) -> None:
    repository.write("specs/eu/second.yaml", WRONG)
    repository.commit()

    done = run("check", "--format", "concise", "git:main:specs")

    assert done.out.startswith("git:main:specs/eu/second.yaml:9:11: ")
    assert done.err == "Found 1 error in 1 file (2 checked).\n"


@pytest.mark.skipif(os.name == "nt", reason="git is put behind a script")
def test_a_folder_is_of_one_commit_and_git_runs_a_few_times(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the number of files. The branch moves on after git was asked for the first time."""
    for number in range(20):
        repository.write(f"specs/{number}/fleet.yaml", TINY)
    before = repository.commit()
    repository.write("specs/0/fleet.yaml", WRONG)
    after = repository.commit()
    repository.git("update-ref", "refs/heads/moving", before)
    calls, git = tmp_path / "calls", tmp_path / "bin" / "git"
    git.parent.mkdir()
    real = shutil.which("git")
    moves = f'[ "$1" = ls-tree ] && {real} update-ref refs/heads/moving {after}'
    git.write_text(f'#!/bin/sh\necho "$*" >> {calls}\n{moves}\nexec {real} "$@"\n')
    git.chmod(0o755)
    monkeypatch.setenv("PATH", f"{git.parent}{os.pathsep}{os.environ['PATH']}")

    done = run("check", "git:moving:specs")

    assert done.out == ""
    assert done.err == "No problems found (21 files checked).\n"
    assert len(calls.read_text().splitlines()) <= 6


@pytest.mark.usefixtures("repository")
def test_a_plan_at_a_revision_is_shown() -> None:
    assert run("show", "git:main:plans/prod.json", "--format", "json").out.encode() == PLAN.read_bytes()
    assert read_plan("git:main", beside="plans/prod.json") == read_plan(str(PLAN))


@pytest.mark.usefixtures("repository")
def test_what_is_no_plan_is_wrong_input() -> None:
    done = run("show", "git:main:specs/tiny.yaml")

    assert (done.code, done.out) == (1, "")
    assert " --> git:main:specs/tiny.yaml:1:1\n" in done.err


@pytest.mark.parametrize(
    ("command", "path"),
    [
        ("check", "git:mian:specs/tiny.yaml"),
        ("solve", "git:main:spec/tiny.yaml"),
        ("show", "git:main"),
        ("explain", "git:main:../x"),
        ("simulate", "git:-x:y"),
        ("check", "git:main:"),
    ],
)
@pytest.mark.usefixtures("repository")
def test_what_is_not_there_is_wrong_usage(command: str, path: str) -> None:
    done = run(command, path)

    assert (done.code, done.out) == (64, "")
    assert done.err.startswith(f"planner: {path}: ")
    assert done.err.count("\n") == 1


def test_names_that_a_repository_suggests_cannot_move_the_cursor(repository: Repository) -> None:
    repository.write("specs/eu/\x1b[2J\u202eprod.yaml", TINY)
    repository.commit()

    done = run("check", "git:main:specs/eu/2Jprod.yaml")

    assert done.code == 64
    assert done.err.endswith("did you mean git:main:specs/eu/�[2J�prod.yaml?\n")


@pytest.mark.usefixtures("repository")
def test_standard_input_gives_no_path(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit):
        read_plan("git:main", beside="-")

    assert capsys.readouterr().err == "planner: git:main: say which file: git:main:specs/prod.yaml\n"


@pytest.mark.parametrize("command", ["check", "solve"])
def test_a_link_in_place_of_a_spec_is_not_followed(command: str, repository: Repository) -> None:
    repository.stage_link("specs/link.yaml", "/etc/passwd")

    done = run(command, "git:main:specs/link.yaml")

    assert (done.code, done.out) == (64, "")
    assert "cannot read git:main:specs/link.yaml: It is, or lies behind, a symbolic link" in done.err


def test_the_catalog_is_the_one_of_the_revision(repository: Repository) -> None:
    """Nearest upward or as the spec names it; digests are those of the same files on disk."""
    shutil.copytree(ROOT / "catalog", repository.folder / "catalog")
    repository.write("specs/named.yaml", TINY + "catalog: {path: ../catalog}\n")
    repository.commit()
    on_disk = read_spec("specs/tiny.yaml", None)
    digest = catalog_for(on_disk, None).digest()
    shutil.rmtree(repository.folder / "catalog" / "gpus")

    for name in ("tiny", "named"):
        loaded = read_spec(f"git:main:specs/{name}.yaml", None)
        assert loaded.diagnostics == ()
        assert catalog_for(loaded, None).digest() == digest
        assert run("check", f"git:main:specs/{name}.yaml").code == 0
    assert spec_digest(read_spec("git:main", None, beside="specs/tiny.yaml")) == spec_digest(on_disk)
    assert catalog_for(on_disk, Path("git:main:catalog")).digest() == digest
    assert run("catalog", "list", "gpus", "--catalog", "git:main:catalog").code == 0
    assert run("check", "specs/tiny.yaml").code == 1


@pytest.mark.usefixtures("repository")
def test_without_a_catalog_at_the_revision_the_usual_one_is_used() -> None:
    loaded = read_spec("git:main:specs/tiny.yaml", None)

    assert catalog_for(loaded, None).digest() == catalog_for(read_spec("specs/tiny.yaml", None), None).digest()


@pytest.mark.parametrize(
    ("reference", "message", "label"),
    [
        ("../../catalog", "cannot read git:main:../catalog/catalog.yaml: it leads out of the repository", ""),
        ("/etc", "cannot read git:main:/etc/catalog.yaml: it leads out of the repository", ""),
        ("../nowhere", "`../nowhere` is no catalog", "it holds no catalog.yaml"),
        (
            "../linked",
            "cannot read git:main:linked/catalog.yaml: it is, or lies behind, a symbolic link, which is not",
            "",
        ),
        (
            "../module",
            "cannot read git:main:module/catalog.yaml: it is, or lies in, a submodule, whose files are in",
            "",
        ),
    ],
)
def test_a_catalog_that_is_not_in_the_repository_is_an_error_at_its_place(
    reference: str, message: str, label: str, repository: Repository
) -> None:
    repository.write("specs/tiny.yaml", TINY + f"catalog: {{path: {reference}}}\n")
    repository.commit()
    repository.stage_link("linked", "catalog")
    repository.stage_submodule("module")

    done = run("check", "git:main:specs/tiny.yaml")

    assert done.code == 1
    assert message in done.out
    assert label in done.out
    assert " --> git:main:specs/tiny.yaml:12:17\n" in done.out


def test_a_config_is_read_beside_the_spec_of_the_revision(repository: Repository) -> None:
    """Also the file beside it that says how its weights are stored."""
    repository.write("specs/own.yaml", TINY.replace("use: llama-3.1-8b", "config: own/config.json"))
    config = repository.write("specs/own/config.json", CONFIG.read_bytes())
    repository.commit()
    config.unlink()

    assert run("check", "specs/own.yaml").code == 1
    assert run("check", "git:main:specs/own.yaml").code == 0
    assert list(config_models(with_texts(read_spec("git:main:specs/own.yaml", None), []))[0]) == ["own/config.json"]

    config.write_bytes(CONFIG.read_bytes())
    repository.write("specs/own/hf_quant_config.json", "[]")
    repository.commit()
    done = run("check", "git:main:specs/own.yaml")
    assert done.code == 1
    assert "the top level is no object" in done.out


def test_a_config_above_the_folder_of_the_spec_is_refused(repository: Repository) -> None:
    repository.write("specs/out.yaml", TINY.replace("use: llama-3.1-8b", "config: ../config.json"))
    repository.commit()

    done = run("check", "git:main:specs/out.yaml")

    assert done.code == 1
    assert " --> git:main:specs/out.yaml:4:18\n" in done.out


CAPPED = "policies: [{max_gap: 1 %, id: gap}, {max_monthly_cost: 10 USD}]\n"
LOOSE = "policies: [{max_gap: 50 %, id: gap}]\n"


@pytest.fixture
def loosened(repository: Repository) -> Repository:
    """A repository whose work tree has looser policies than its branch `main`."""
    repository.write("org/policies.yaml", CAPPED)
    repository.commit()
    repository.write("org/policies.yaml", LOOSE)
    return repository


def test_policies_of_files_are_known_as_they_were(loosened: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    before = policies_at("git:main:specs/tiny.yaml", ["org/policies.yaml"])

    assert [(p.policy.label, p.path, p.file) for p in before] == [
        ("gap", "policies[0]", "git:main:org/policies.yaml"),
        ("max_monthly_cost", "policies[1]", "git:main:org/policies.yaml"),
    ]
    for path in (
        str(loosened.folder / "org/policies.yaml"),
        "./org/../org/policies.yaml",
        "git:HEAD:org/policies.yaml",
    ):
        assert policies_at("git:main", [path]) == before
    monkeypatch.chdir(loosened.folder / "org")
    assert policies_at("git:main", ["policies.yaml"], beside="../specs/tiny.yaml") == before
    monkeypatch.chdir(loosened.folder.parent)
    assert policies_at("git:main", ["work/org/policies.yaml"], beside="work/specs/tiny.yaml") == before


def test_a_folder_that_a_change_turns_into_a_link_hides_no_policies(loosened: Repository) -> None:
    before = policies_at("git:main", ["org/policies.yaml"])
    (loosened.folder / "org").rename(loosened.folder / "loose")
    (loosened.folder / "org").symlink_to("loose")

    assert policies_at("git:main", ["org/policies.yaml"]) == before != ()


def test_files_that_a_repository_did_not_have_bring_no_policies(loosened: Repository, tmp_path: Path) -> None:
    owned = tmp_path / "owned.yaml"
    owned.write_text(CAPPED, encoding="utf-8")
    loosened.write("org/new.yaml", CAPPED)

    assert policies_at("git:main", [str(owned), "org/new.yaml", "-", "git:main"]) == ()
    assert policies_at("specs/tiny.yaml", ["org/policies.yaml"]) == ()


def test_what_was_no_file_of_policies_is_told(loosened: Repository, capsys: pytest.CaptureFixture[str]) -> None:
    loosened.write("org/policies.yaml", "policies: [{max_gap: none}]\n")
    loosened.commit()

    assert policies_at("git:main", ["org/policies.yaml"]) == ()
    assert "git:main:org/policies.yaml is no file of policies" in capsys.readouterr().err
    loosened.stage_link("org/linked.yaml", "policies.yaml")
    with pytest.raises(typer.Exit):
        policies_at("git:main", ["org/linked.yaml"])
    assert "symbolic link" in capsys.readouterr().err
