"""What a commit holds: folders are listed as they are asked for, files are read once and kept."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Set
from dataclasses import dataclass

from planner.revision.repository import Repository

CATALOG_FILE = "catalog.yaml"
"""File that tells a catalog, which is listed and read at once: a process for each of its files would be slow."""
CATALOG_SUFFIX = ".yaml"
MOST_CATALOG_FILES = 20_000
MOST_CATALOG_BYTES = 256_000_000
LARGEST_FILE_BYTES = 64_000_000

_FOLDER = "040000"
_OBSTACLES = {
    "120000": "It is, or lies behind, a symbolic link, which is not followed at a revision",
    "160000": "It is, or lies in, a submodule, whose files are in another repository",
}
_LFS = b"version https://git-lfs.github.com/spec/"

Parts = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Entry:
    """What a path leads to."""

    mode: str
    object_id: str
    obstacle: str = ""
    """Why nothing at or below it can be read; empty for files and folders."""

    @property
    def is_folder(self) -> bool:
        """Tell whether it can be listed."""
        return self.mode == _FOLDER


class Tree:
    """The files of a commit. Two of the same commit are equal: so is what they hold."""

    def __init__(self, repository: Repository, commit: str) -> None:
        self.commit = commit
        self._repository = repository
        self._folders: dict[Parts, dict[str, Entry]] = {}
        self._contents: dict[str, bytes] = {}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tree) and other.commit == self.commit

    def __hash__(self) -> int:
        return hash(self.commit)

    def entry(self, path: Parts) -> Entry | None:
        """Return what a path leads to, None for nothing. A link or a submodule on the way is where it ends."""
        entry = Entry(_FOLDER, self.commit)
        for depth, name in enumerate(path):
            found = self.entries(path[:depth]).get(name) if entry.is_folder else None
            if found is None or found.obstacle:
                return found
            entry = found
        return entry

    def entries(self, folder: Parts) -> dict[str, Entry]:
        """Return what lies in a folder, by name. Raises `OSError` where there is no folder."""
        if folder not in self._folders:
            entry = self._readable(folder)
            if not entry.is_folder:
                raise NotADirectoryError(errno.ENOTDIR, "Not a directory")
            self._list(folder, entry.object_id)
        return self._folders[folder]

    def read(self, path: Parts) -> bytes:
        """Return the bytes of a file. Raises `OSError` for what is none, and for what the repository does not hold."""
        entry = self._readable(path)
        if entry.is_folder:
            raise IsADirectoryError(errno.EISDIR, "Is a directory")
        if entry.object_id not in self._contents:
            self._load(entry.object_id, self._catalog_files(path))
        content = self._contents[entry.object_id]
        if content.startswith(_LFS):
            raise OSError(errno.ENODATA, "The repository has a pointer of Git LFS in place of its content")
        return content

    def below(self, folder: Parts) -> Iterator[Parts]:
        """Yield the paths of everything in a folder and below. Raises `OSError`."""
        for name, entry in self.entries(folder).items():
            yield (*folder, name)
            if entry.is_folder:
                yield from self.below((*folder, name))

    def all_files(self) -> list[str]:
        """Return the paths of all files of the commit. Raises `OSError`."""
        return self._listing("-r", "--name-only", self.commit)

    def _readable(self, path: Parts) -> Entry:
        entry = self.entry(path)
        if entry is None:
            raise FileNotFoundError(errno.ENOENT, "No such file or directory")
        if entry.obstacle:
            raise OSError(errno.ELOOP, entry.obstacle)
        return entry

    def _list(self, folder: Parts, object_id: str) -> None:
        """List a folder, with everything below it where it is a catalog."""
        lines = self._listing(object_id)
        if any(line.endswith(f"\t{CATALOG_FILE}") for line in lines):
            deep = self._listing("-r", "-t", object_id)
            lines = deep if len(deep) <= MOST_CATALOG_FILES else lines
        self._folders[folder] = {}
        for line in lines:
            about, _, path = line.partition("\t")
            mode, _, found_id = about.split(" ")
            *inside, name = path.split("/")
            self._folders.setdefault((*folder, *inside), {})[name] = Entry(mode, found_id, _OBSTACLES.get(mode, ""))

    def _listing(self, *arguments: str) -> list[str]:
        listed = self._repository.read("ls-tree", "-z", "--full-tree", *arguments)
        return os.fsdecode(listed).split("\0")[:-1]

    def _catalog_files(self, path: Parts) -> Set[str]:
        """Return the ids of the files of the catalog that a file lies in; none where it lies in no catalog."""
        homes = (path[:depth] for depth in range(len(path) - 1, -1, -1))
        home = next((folder for folder in homes if CATALOG_FILE in self.entries(folder)), None)
        return {
            entry.object_id
            for folder, entries in self._folders.items()
            if home is not None and folder[: len(home)] == home
            for name, entry in entries.items()
            if name.endswith(CATALOG_SUFFIX) and not entry.is_folder and not entry.obstacle
        }

    def _load(self, wanted: str, others: Set[str]) -> None:
        """Read a file and, where they are not too much together, others with it."""
        ids = sorted({wanted, *others} - self._contents.keys())
        sizes = dict(zip(ids, self._sizes(ids), strict=True))
        if sizes[wanted] > LARGEST_FILE_BYTES:
            raise OSError(errno.EFBIG, f"Larger than {LARGEST_FILE_BYTES // 1_000_000} MB")
        if sum(sizes.values()) > MOST_CATALOG_BYTES:
            ids = [wanted]
        answer, at = self._repository.read("cat-file", "--batch", given=_lines(ids)), 0
        for object_id in ids:
            start = answer.index(b"\n", at) + 1
            at = start + sizes[object_id]
            self._contents[object_id] = answer[start:at]
            at += 1

    def _sizes(self, ids: list[str]) -> Iterator[int]:
        answer = self._repository.read("cat-file", "--batch-check", given=_lines(ids))
        for line in answer.decode().splitlines():
            about = line.split(" ")
            if about[1] == "missing":
                raise OSError(errno.ENODATA, "Its content is missing from the repository")
            yield int(about[2])


def _lines(ids: list[str]) -> bytes:
    return "".join(f"{object_id}\n" for object_id in ids).encode()
