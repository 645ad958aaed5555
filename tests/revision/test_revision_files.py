"""Files at a revision answer like files on disk, lead nowhere else, and leave the repository as it is."""

from __future__ import annotations

import errno
from pathlib import Path
from types import ModuleType

import pytest
from git_repository import NEEDS_GIT, Repository

from planner.catalog import Catalog, find_catalog
from planner.diagnostics import DiagnosticError
from planner.revision import repository as repository_module
from planner.revision import tree as tree_module
from planner.revision.path import RevisionPath, open_reference

pytestmark = NEEDS_GIT

LFS_POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 12\n"


def read(path: RevisionPath) -> str:
    """Return the text of a file."""
    with path.open("rb") as file:
        return file.read().decode()


def failure(path: RevisionPath) -> int | None:
    """Return the number of the error that reading a file ends in."""
    with pytest.raises(OSError) as caught:
        path.open("rb")
    return caught.value.errno


def test_what_is_committed_is_read_and_nothing_is_touched(repository: Repository) -> None:
    index = repository.folder / ".git" / "index"
    before = index.read_bytes()
    spec = repository.write("specs/prod.yaml", "changed: since\n")

    assert read(open_reference("git:main:specs/prod.yaml")) == "version: 1\nfleet: prod\n"
    assert index.read_bytes() == before
    assert spec.read_text() == "changed: since\n"


@pytest.mark.usefixtures("repository")
def test_paths_answer_like_those_on_disk() -> None:
    top = open_reference("git:main:specs").parent
    spec = top / "specs/prod.yaml"

    assert [(p.name, p.is_dir(), p.is_file()) for p in sorted(top.iterdir(), key=str)] == [
        ("catalog", True, False),
        ("specs", True, False),
    ]
    assert sorted(map(str, top.rglob("*.yaml"))) == [
        "git:main:catalog/catalog.yaml",
        "git:main:catalog/models/org/small.yaml",
        "git:main:specs/prod.yaml",
    ]
    assert (spec.name, spec.suffix, str(spec.parent)) == ("prod.yaml", ".yaml", "git:main:specs")
    assert [p.parts for p in spec.parents] == [("specs",), ()]
    assert (spec / "../../catalog").parts == ("catalog",) == (spec / ".." / ".." / "./catalog/").parts
    assert spec == open_reference("git:main:specs/prod.yaml") != open_reference("git:main:specs")
    assert spec.is_relative_to(spec.parent)
    assert not spec.is_relative_to(top / "catalog")
    assert not (top / "specs/prod.yaml/x").exists()
    assert (failure(top / "specs"), failure(top / "x"), failure(spec / "x")) == (
        errno.EISDIR,
        errno.ENOENT,
        errno.ENOENT,
    )
    with pytest.raises(NotADirectoryError):
        spec.iterdir()


@pytest.mark.parametrize(
    "name", ["ünï cödé.yaml", "tab\tnew\nline.yaml", "-dash.yaml", "qu'o\"te.yaml", ":(top)x.yaml"]
)
def test_odd_names_are_names(name: str, repository: Repository) -> None:
    repository.write(f"odd/{name}", "text")
    repository.commit()

    assert read(open_reference(f"git:main:odd/{name}")) == "text"
    assert [p.name for p in open_reference("git:HEAD:odd").iterdir()] == [name]


def test_links_and_submodules_are_there_and_are_not_read(repository: Repository) -> None:
    repository.stage_link("link.yaml", "/etc/passwd")
    repository.stage_link("linked", "specs")
    repository.stage_submodule("module")
    top = open_reference("git:main:specs").parent

    for name in ("link.yaml", "linked/prod.yaml", "module/catalog/catalog.yaml"):
        assert (top / name).is_file()
        assert failure(top / name) == errno.ELOOP


def test_pointers_of_lfs_are_named(repository: Repository) -> None:
    repository.write("big.yaml", LFS_POINTER)
    repository.commit()

    assert failure(open_reference("git:main:big.yaml")) == errno.ENODATA


def test_files_above_the_limit_are_not_read(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree_module, "LARGEST_FILE_BYTES", 1_000)
    repository.write("large.yaml", "x" * 1_001)
    repository.commit()

    assert failure(open_reference("git:main:large.yaml")) == errno.EFBIG


def test_no_filter_or_hook_of_a_repository_runs(repository: Repository) -> None:
    trap = repository.folder.parent / "ran"
    repository.git("config", "filter.evil.smudge", f"touch {trap}")
    repository.git("config", "diff.evil.textconv", f"touch {trap}")
    repository.git("config", "core.fsmonitor", f"touch {trap}")
    repository.write(".gitattributes", "*.txt filter=evil diff=evil export-subst\n")
    repository.write("a.txt", "$Format:%H$")
    repository.git("-c", "core.fsmonitor=false", "add", "--all")
    repository.git("-c", "core.fsmonitor=false", "commit", "--quiet", "--message", "x")
    trap.unlink(missing_ok=True)

    assert read(open_reference("git:main:a.txt")) == "$Format:%H$"
    assert not trap.exists()


def test_a_bare_repository_has_revisions_too(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    bare = repository.folder.parent / "bare.git"
    repository.git("clone", "--quiet", "--bare", repository.folder, bare)
    monkeypatch.chdir(bare)

    assert read(open_reference("git:main:specs/prod.yaml")) == "version: 1\nfleet: prod\n"


def test_a_partial_clone_fetches_nothing(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it lacks is an error: a check never uses the network."""
    repository.git("config", "uploadpack.allowFilter", "true")
    partial = repository.folder.parent / "partial"
    repository.git("clone", "--quiet", "--no-checkout", "--filter=blob:none", repository.folder.as_uri(), partial)
    monkeypatch.chdir(partial)
    path = open_reference("git:main:specs/prod.yaml")

    assert failure(path) in (errno.EIO, errno.ENODATA)
    assert failure(path) in (errno.EIO, errno.ENODATA)


def test_a_damaged_repository_is_an_error_when_it_is_read(repository: Repository) -> None:
    path = open_reference("git:main:specs").parent / "catalog"
    folder = repository.git("rev-parse", "main:catalog")
    (repository.folder / ".git" / "objects" / folder[:2] / folder[2:]).unlink()

    assert (path / "catalog.yaml").is_file()
    with pytest.raises(DiagnosticError, match=r"cannot read git:main:catalog/catalog\.yaml: git cannot read it: "):
        Catalog.open(path)


def test_a_catalog_is_the_same_as_on_disk(repository: Repository) -> None:
    """Nearest upward, with the same digest and the same names; read from git at once."""
    spec = open_reference("git:main:specs/prod.yaml")
    found = find_catalog(spec.parent)
    assert found is not None

    at_revision, on_disk = Catalog.open(found), Catalog.open(repository.folder / "catalog")

    assert str(found) == "git:main:catalog"
    assert at_revision.digest() == on_disk.digest()
    assert at_revision.model_names() == on_disk.model_names() == ("org/small",)
    assert list(at_revision.files()) == list(on_disk.files())


def test_the_search_for_a_catalog_ends_at_the_top(repository: Repository, tmp_path: Path) -> None:
    (tmp_path / "catalog").mkdir()
    (tmp_path / "catalog" / "catalog.yaml").write_bytes((repository.folder / "catalog/catalog.yaml").read_bytes())
    repository.git("rm", "--quiet", "-r", "catalog")
    repository.commit()

    assert find_catalog(open_reference("git:main:specs")) is None


@pytest.mark.parametrize(("limit", "value"), [("MOST_LISTED", 1), ("MOST_TOGETHER_BYTES", 10)], ids=["files", "bytes"])
def test_a_catalog_too_large_to_be_read_at_once_is_read_file_by_file(
    limit: str, value: int, repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tree_module, limit, value)

    at_revision = Catalog.open(open_reference("git:main:catalog"))

    assert at_revision.digest() == Catalog.open(repository.folder / "catalog").digest()


def test_folders_in_folders_are_listed_at_once(repository: Repository) -> None:
    """However deep they are, also where a name of each has to be listed."""
    repository.stage_file("/".join(["d"] * 1_500) + "/x.yaml", "version: 1\n")
    top = open_reference("git:main:d")

    found = [path for path in top.rglob("*") if path.is_file()]

    assert [(len(path.parts), path.name, read(path)) for path in found] == [(1_501, "x.yaml", "version: 1\n")]


@pytest.mark.parametrize(
    ("module", "limit"),
    [(tree_module, "MOST_LISTED"), (repository_module, "MOST_LISTED_BYTES")],
    ids=["files", "bytes"],
)
def test_more_files_than_can_be_listed_are_named(
    module: ModuleType, limit: str, repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A commit of a few objects may stand for files without end."""
    folder = repository.git("rev-parse", "main:specs")
    for _ in range(40):
        lines = "".join(f"040000 tree {folder}\t{name}\n" for name in "ab")
        folder = repository.git("mktree", stdin=lines)
    bomb = repository.git("commit-tree", folder, "-m", "many")
    top = open_reference(f"git:{bomb}:a").parent
    monkeypatch.setattr(module, limit, 100)
    monkeypatch.setattr(repository_module, "MOST_LISTED_BYTES", min(100_000, repository_module.MOST_LISTED_BYTES))

    with pytest.raises(OSError, match="too many files to be listed; name a folder below it"):
        top.rglob("*")


@pytest.mark.parametrize("name", ["catalog/gpus", "catalog/gpus/x.yaml", "catalog/models/org/x.yaml"])
def test_links_in_a_catalog_are_named(name: str, repository: Repository) -> None:
    """On disk they are followed, so that leaving them out would make another catalog of it."""
    repository.stage_link(name, "/etc/passwd")
    catalog = Catalog.open(open_reference("git:main:catalog"))

    with pytest.raises(DiagnosticError) as caught:
        catalog.digest()
    assert [d.message for d in caught.value.diagnostics] == [
        f"cannot read git:main:{name}: it is, or lies behind, a symbolic link, which is not followed at a revision"
    ]
