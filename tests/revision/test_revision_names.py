"""References `git:REF:PATH`: how they are read, and what is said of those that lead nowhere."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from git_repository import NEEDS_GIT, Repository

from planner.revision.path import open_reference
from planner.revision.reference import GitReference, RevisionError, is_reference, parse_reference

pytestmark = NEEDS_GIT


@pytest.mark.parametrize(
    ("text", "ref", "path"),
    [
        ("git:main", "main", None),
        ("git:main:", "main", None),
        ("git:main:specs/prod.yaml", "main", "specs/prod.yaml"),
        ("git:origin/main:a b.yaml", "origin/main", "a b.yaml"),
        ("git:HEAD~1:specs/prod.yaml", "HEAD~1", "specs/prod.yaml"),
        ("git:v1.2^:plan.json", "v1.2^", "plan.json"),
        ("git:main@{12:30}:plan.json", "main@{12:30}", "plan.json"),
        ("git:HEAD^{/fix:x}:a:b.yaml", "HEAD^{/fix:x}", "a:b.yaml"),
        ("git:a}b:c", "a}b", "c"),
    ],
)
def test_a_reference_is_a_ref_and_a_path(text: str, ref: str, path: str | None) -> None:
    assert is_reference(text)
    assert parse_reference(text) == GitReference(ref, path)


def test_a_reference_is_written_as_it_is_read() -> None:
    assert [str(parse_reference(text)) for text in ("git:main", "git:v1:a:b")] == ["git:main", "git:v1:a:b"]


@pytest.mark.parametrize("text", ["specs/prod.yaml", "./git:main:x", "-", "github:x", ""])
def test_other_arguments_are_no_references(text: str) -> None:
    assert not is_reference(text)


@pytest.mark.parametrize(
    "text", ["git:", "git::x", "git:--output=x:y", "git:-", "git:a b:c", "git:a\tb", "git:a\x1b[1m", "git:a\u2028b:c"]
)
def test_what_git_could_misread_is_refused(text: str) -> None:
    with pytest.raises(RevisionError):
        parse_reference(text)


def refused(text: str, beside: str | None = None) -> str:
    """Return what is said of a reference that leads nowhere."""
    with pytest.raises(RevisionError) as caught:
        open_reference(text, beside)
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_the_nearest_branch_or_tag_is_suggested(repository: Repository) -> None:
    repository.git("tag", "v1.20")

    assert "did you mean `main`?" in refused("git:mian:specs/prod.yaml")
    assert "did you mean `v1.20^`?" in refused("git:v1.2^:specs/prod.yaml")


def test_a_branch_that_only_a_remote_has_is_suggested(repository: Repository) -> None:
    repository.git("update-ref", "refs/remotes/origin/release", "HEAD")

    assert "did you mean `origin/release`?" in refused("git:release:specs/prod.yaml")


@pytest.mark.usefixtures("repository")
def test_without_anything_alike_the_listings_are_named() -> None:
    assert refused("git:zzz:x") == (
        "there is no commit `zzz` here; `git branch --all` and `git tag` list what there is"
    )


def test_a_shallow_clone_asks_for_its_history(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    repository.write("specs/prod.yaml", "version: 1\n")
    repository.commit()
    shallow = repository.folder.parent / "shallow"
    repository.git("clone", "--quiet", "--depth=1", repository.folder.as_uri(), shallow)
    monkeypatch.chdir(shallow)

    assert "`fetch-depth: 0`" in refused("git:HEAD~1:specs/prod.yaml")


def test_a_name_of_two_commits_is_refused(repository: Repository) -> None:
    repository.git("tag", "main")

    assert "ambiguous" in refused("git:main:specs/prod.yaml")
    assert open_reference("git:refs/heads/main:specs/prod.yaml").is_file()


@pytest.mark.parametrize("ref", ["^main", "main..main", "main^{tree}", "@{u}", "1" * 40, "main^9"])
@pytest.mark.usefixtures("repository")
def test_what_is_no_commit_is_refused(ref: str) -> None:
    assert refused(f"git:{ref}:specs/prod.yaml").startswith(f"there is no commit `{ref}` here")


@pytest.mark.parametrize(
    ("path", "meant"),
    [
        ("spec/prod.yaml", "git:main:specs/prod.yaml"),
        ("prod.yaml", "git:main:specs/prod.yaml"),
        ("specs/prd.yaml", "git:main:specs/prod.yaml"),
        ("catalog/catalog.yml", None),
    ],
)
@pytest.mark.usefixtures("repository")
def test_the_nearest_path_is_suggested(path: str, meant: str | None) -> None:
    said = refused(f"git:main:{path}")

    assert said.startswith(f"`main` has no file {path}; ")
    assert said.endswith(f"did you mean {meant}?" if meant else "paths start at the top of the repository")


@pytest.mark.parametrize("path", ["../x", "../../etc/passwd", "/etc/passwd", "specs/../../x", "/../etc"])
@pytest.mark.usefixtures("repository")
def test_no_path_leads_out_of_the_repository(path: str) -> None:
    assert "leads out of the repository" in refused(f"git:main:{path}")


def test_the_path_is_that_of_the_other_side(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also from a folder that is in no repository, or below the top of it."""
    monkeypatch.chdir(repository.folder.parent)
    assert str(open_reference("git:main", "work/specs/prod.yaml")) == "git:main:specs/prod.yaml"
    assert str(open_reference("git:main:catalog", "work/specs/prod.yaml")) == "git:main:catalog"

    monkeypatch.chdir(repository.folder / "specs")
    assert str(open_reference("git:main", "prod.yaml")) == "git:main:specs/prod.yaml"
    assert str(open_reference("git:main", "git:HEAD:catalog")) == "git:main:catalog"


@pytest.mark.usefixtures("repository")
def test_without_a_path_on_either_side_one_is_asked_for() -> None:
    assert refused("git:main") == "say which file: git:main:specs/prod.yaml"
    assert refused("git:main", "git:HEAD") == "say which file: git:main:specs/prod.yaml"


def test_a_folder_of_no_repository_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))

    assert refused("git:main:x") == "this folder is in no git repository"
    assert "is in no git repository" in refused("git:main", str(tmp_path / "x.yaml"))
    assert "there is no folder" in refused("git:main", "nowhere/x.yaml")


def test_without_git_it_is_asked_for(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(repository.folder))

    assert refused("git:main:x").endswith("is it installed?")


def test_what_git_refuses_is_passed_on_in_one_line(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = repository.folder / "git"
    fake.write_text(
        "#!/bin/sh\nprintf 'warning: x\\nfatal: detected dubious ownership\\n\\n\\tgit config y\\n' >&2\nexit 128\n"
    )
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{repository.folder}{os.pathsep}{os.environ['PATH']}")

    assert refused("git:main:x") == "git refuses: detected dubious ownership git config y"


def test_git_that_does_not_answer_is_given_up(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = repository.folder / "git"
    fake.write_text("#!/bin/sh\nexec sleep 60\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{repository.folder}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr("planner.revision.repository.TIMEOUT_S", 0.1)

    assert refused("git:main:x") == "git did not answer in 0.1 s"


@pytest.mark.usefixtures("repository")
def test_a_repository_that_the_environment_names_is_not_meant(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hooks run with variables that point at the repository of the commit, relative to another folder."""
    for variable in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY"):
        monkeypatch.setenv(variable, "nowhere")

    assert open_reference("git:main", "specs/prod.yaml").is_file()
