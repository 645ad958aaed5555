"""What a commit holds: folders are listed as they are asked for, files are read once and kept."""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass

from planner.revision.repository import TOO_MANY, Repository

CATALOG_FILE = "catalog.yaml"
"""File that tells a catalog, which is listed and read at once: a process for each of its files would be slow."""
CATALOG_SUFFIX = ".yaml"
MOST_LISTED = 200_000
MOST_TOGETHER_BYTES = 256_000_000
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
        self._together: Set[str] = frozenset()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tree) and other.commit == self.commit

    def __hash__(self) -> int:
        return hash(self.commit)

    def entry(self, path: Parts) -> Entry | None:
        """Return what a path leads to, None for nothing. A link or a submodule on the way is where it ends."""
        entry = Entry(_FOLDER, self.commit)
        known = next((depth for depth in range(len(path) - 1, 0, -1) if path[:depth] in self._folders), 0)
        for depth in range(known, len(path)):
            found = self.entries(path[:depth]).get(path[depth]) if entry.is_folder else None
            if found is None or found.obstacle:
                return found
            entry = found
        return entry

    def entries(self, folder: Parts) -> dict[str, Entry]:
        """Return what lies in a folder, by name. Raises `OSError` where there is no folder."""
        if folder not in self._folders:
            self._list(folder, self._folder(folder).object_id)
        return self._folders[folder]

    def read(self, path: Parts) -> bytes:
        """Return the bytes of a file. Raises `OSError` for what is none, and for what the repository does not hold."""
        entry = self._readable(path)
        if entry.is_folder:
            raise IsADirectoryError(errno.EISDIR, "Is a directory")
        if entry.object_id not in self._contents:
            self._load(entry.object_id, self._catalog_files(path) | self._together)
        content = self._contents[entry.object_id]
        if content.startswith(_LFS):
            raise OSError(errno.ENODATA, "The repository has a pointer of Git LFS in place of its content")
        return content

    def read_together(self, paths: Iterable[Parts]) -> None:
        """Read all these files when the first of them is read: a process for each would be slow."""
        entries = (self.entry(path) for path in paths)
        self._together = {e.object_id for e in entries if e is not None and not e.is_folder and not e.obstacle}

    def below(self, folder: Parts) -> Iterator[Parts]:
        """Yield the paths of everything in a folder and below, which is listed at once. Raises `OSError`."""
        listed = self._listing_below(self._folder(folder).object_id)
        self._keep(folder, listed)
        return ((*folder, *line.partition("\t")[2].split("/")) for line in listed)

    def all_files(self) -> list[str]:
        """Return the paths of all files of the commit. Raises `OSError`."""
        return self._repository.listed("-r", "--name-only", self.commit)

    def _readable(self, path: Parts) -> Entry:
        entry = self.entry(path)
        if entry is None:
            raise FileNotFoundError(errno.ENOENT, "No such file or directory")
        if entry.obstacle:
            raise OSError(errno.ELOOP, entry.obstacle)
        return entry

    def _folder(self, path: Parts) -> Entry:
        entry = self._readable(path)
        if not entry.is_folder:
            raise NotADirectoryError(errno.ENOTDIR, "Not a directory")
        return entry

    def _list(self, folder: Parts, object_id: str) -> None:
        """List a folder, with everything below it where it is a catalog."""
        lines = self._repository.listed(object_id)
        if any(line.endswith(f"\t{CATALOG_FILE}") for line in lines):
            with contextlib.suppress(OSError):
                lines = self._listing_below(object_id)
        self._keep(folder, lines)

    def _listing_below(self, object_id: str) -> list[str]:
        listed = self._repository.listed("-r", "-t", object_id)
        if len(listed) > MOST_LISTED:
            raise OSError(errno.EFBIG, TOO_MANY)
        return listed

    def _keep(self, folder: Parts, listed: Sequence[str]) -> None:
        self._folders[folder] = {}
        for line in listed:
            about, _, path = line.partition("\t")
            mode, _, found_id = about.split(" ")
            *inside, name = path.split("/")
            self._folders.setdefault((*folder, *inside), {})[name] = Entry(mode, found_id, _OBSTACLES.get(mode, ""))

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
        sizes = self._sizes(ids)
        if wanted not in sizes:
            raise OSError(errno.ENODATA, "Its content is missing from the repository")
        if sizes[wanted] > LARGEST_FILE_BYTES:
            raise OSError(errno.EFBIG, f"Larger than {LARGEST_FILE_BYTES // 1_000_000} MB")
        if sum(sizes.values()) > MOST_TOGETHER_BYTES:
            sizes, self._together = {wanted: sizes[wanted]}, frozenset()
        answer, at = self._repository.read("cat-file", "--batch", given=_lines(sizes)), 0
        for object_id in sizes:
            start = answer.index(b"\n", at) + 1
            at = start + sizes[object_id]
            self._contents[object_id] = answer[start:at]
            at += 1

    def _sizes(self, ids: Iterable[str]) -> dict[str, int]:
        """Return the sizes of those objects that the repository holds."""
        answer = self._repository.read("cat-file", "--batch-check", given=_lines(ids))
        found = zip(ids, (line.split(" ") for line in answer.decode().splitlines()), strict=True)
        return {object_id: int(about[2]) for object_id, about in found if about[1] != "missing"}


def _lines(ids: Iterable[str]) -> bytes:
    return "".join(f"{object_id}\n" for object_id in ids).encode()
