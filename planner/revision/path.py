"""Paths of a revision that are read like files on disk."""

from __future__ import annotations

import errno
import io
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import IO, Literal

from planner.revision.reference import GitReference, RevisionError, is_reference, parse_reference
from planner.revision.repository import Repository
from planner.revision.tree import Entry, Parts, Tree
from planner.source import FilePath, nearest

OUTSIDE = ("..", "/")
"""First parts of a path that leads out of the repository."""
MOST_COMPARED = 5_000


@dataclass(frozen=True, slots=True)
class RevisionPath:
    """A path below the top of a repository at a revision, always written from there. It answers like `pathlib.Path`.

    What cannot be read, such as a link or a submodule, counts as there and fails when it is read, so that nothing else is
    taken in its place.
    """

    tree: Tree = field(repr=False)
    ref: str
    parts: Parts = ()

    def __str__(self) -> str:
        return str(GitReference(self.ref, "/".join(self.parts).replace("//", "/")))

    @property
    def name(self) -> str:
        """The last part of the path, empty at the top."""
        return self.parts[-1] if self.parts else ""

    @property
    def suffix(self) -> str:
        """The ending of the name, with its dot."""
        return PurePosixPath(self.name).suffix

    @property
    def parent(self) -> RevisionPath:
        """The folder that it lies in; the top for itself."""
        return self._at(self.parts[:-1])

    @property
    def parents(self) -> tuple[RevisionPath, ...]:
        """All folders that it lies in, up to the top of the repository."""
        return tuple(self._at(self.parts[:depth]) for depth in range(len(self.parts) - 1, -1, -1))

    def __truediv__(self, key: str) -> RevisionPath:
        parts = list(self.parts)
        if key.startswith("/"):
            parts = ["/"]
        for part in key.split("/"):
            if part == ".." and parts and parts[-1] not in OUTSIDE:
                parts.pop()
            elif part not in ("", "."):
                parts.append(part)
        return self._at(tuple(parts))

    def absolute(self) -> RevisionPath:
        """Return the path itself."""
        return self

    def resolve(self) -> RevisionPath:
        """Return the path itself."""
        return self

    def is_relative_to(self, other: RevisionPath) -> bool:
        """Tell whether it lies in the other folder."""
        return self.parts[: len(other.parts)] == other.parts

    @property
    def is_outside(self) -> bool:
        """Tell whether it leads out of the repository."""
        return bool(self.parts) and self.parts[0] in OUTSIDE

    def exists(self) -> bool:
        """Tell whether there is anything, or something that keeps it from being read."""
        return self._entry() is not None

    def is_file(self) -> bool:
        """Tell whether there is a file, or what fails when it is read."""
        entry = self._entry()
        return entry is not None and not entry.is_folder

    def is_dir(self) -> bool:
        """Tell whether there is a folder, or what fails when it is listed."""
        entry = self._entry()
        return entry is not None and (entry.is_folder or entry.obstacle != "")

    def is_symlink(self) -> bool:
        """Tell whether there is a link, or something else that keeps it from being read."""
        entry = self._entry()
        return entry is not None and entry.obstacle != ""

    def iterdir(self) -> Iterator[RevisionPath]:
        """Yield what lies in the folder. Raises `OSError`."""
        return (self._at((*self.parts, name)) for name in self.tree.entries(self._inside()))

    def rglob(self, pattern: str) -> Iterator[RevisionPath]:
        """Yield what lies in the folder and below, where the name matches. Raises `OSError`."""
        return (self._at(parts) for parts in self.tree.below(self._inside()) if fnmatchcase(parts[-1], pattern))

    def open(self, mode: Literal["rb"]) -> IO[bytes]:  # noqa: ARG002
        """Open the file. Raises `OSError`."""
        return io.BytesIO(self.tree.read(self._inside()))

    def _at(self, parts: Parts) -> RevisionPath:
        return RevisionPath(self.tree, self.ref, parts)

    def _entry(self) -> Entry | None:
        try:
            return self.tree.entry(self._inside())
        except OSError as error:
            return Entry("", "", error.strerror or str(error))

    def _inside(self) -> Parts:
        if self.is_outside:
            raise OSError(errno.EACCES, "It leads out of the repository")
        return self.parts


def read_together(paths: Iterable[FilePath]) -> None:
    """Let all files of a revision among these be read when one of them is."""
    at_revision = [path for path in paths if isinstance(path, RevisionPath)]
    for tree in {path.tree for path in at_revision}:
        tree.read_together(path.parts for path in at_revision if path.tree is tree)


def open_reference(text: str, beside: str | None = None) -> RevisionPath:
    """Return the file or folder that `git:REF:PATH` names, in the repository that the working folder is in.

    `beside` is what it is compared with, a file on disk or another reference: a file says which repository is meant, and
    both give the path where there is none.

    Raises:
        RevisionError: there is no git, no repository, no such commit, or nothing at that path.
    """
    reference, repository, path = parse_reference(text), _repository(beside), None
    if beside is not None:
        path = parse_reference(beside).path if is_reference(beside) else repository.prefix + Path(beside).name
    return _open(repository, reference.ref, reference.path or path)


def earlier_file(text: str, path: str, beside: str | None = None) -> RevisionPath | None:
    """Return another file of the repository as it was at the revision of a reference, None where there was none.

    `path` is a reference too, or a file on disk, whose place counts and not what links on the way to it lead to: a change
    could set these. It is None for a file outside of the repository as well. `beside` as for `open_reference`.

    Raises:
        RevisionError: there is no git, no repository, or no such commit.
    """
    repository, ref = _repository(beside), parse_reference(text).ref
    top = RevisionPath(Tree(repository, repository.commit(ref)), ref)
    if is_reference(path):
        place = parse_reference(path).path or os.pardir
    else:
        place = repository.prefix + os.path.relpath(path, repository.folder)
    found = top / place
    return found if not found.is_outside and found.exists() else None


def _repository(beside: str | None) -> Repository:
    return Repository.holding(Path() if beside is None or is_reference(beside) else Path(beside).parent)


def _open(repository: Repository, ref: str, path: str | None) -> RevisionPath:
    if path is None:
        raise RevisionError(f"say which file: {GitReference(ref, 'specs/prod.yaml')}")
    tree = Tree(repository, repository.commit(ref))
    found = RevisionPath(tree, ref) / path
    if found.is_outside:
        raise RevisionError("the path leads out of the repository; it starts at the top of it")
    if found.exists():
        return found
    close = _like(found)
    raise RevisionError(
        f"`{ref}` has no file {path}"
        + (f"; did you mean {close}?" if close else "; paths start at the top of the repository")
    )


def _like(path: RevisionPath) -> GitReference | None:
    """Return the file that was most likely meant: one of the same name elsewhere before one that is spelt alike."""
    wanted = "/".join(path.parts)
    try:
        files = path.tree.all_files()
    except OSError:
        return None
    namesakes = [file for file in files if f"/{file}".endswith(f"/{path.name}")]
    alike = [file for file in files if file.endswith(path.suffix)][:MOST_COMPARED]
    close = nearest(wanted, namesakes) or next(iter(namesakes), None) or nearest(wanted, alike)
    return GitReference(path.ref, close) if close else None
