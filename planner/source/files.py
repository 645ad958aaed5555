"""What specs and catalogs are read from: files on disk, or anything that answers like them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import IO, Literal, Protocol, Self


class FilePath(Protocol):
    """A file or folder to read: a `pathlib.Path`, or a path of another revision. As text it is what messages say."""

    @property
    def name(self) -> str:
        """The last part of the path."""

    @property
    def suffix(self) -> str:
        """The ending of the name, with its dot."""

    @property
    def parent(self) -> Self:
        """The folder that it lies in."""

    @property
    def parents(self) -> Sequence[Self]:
        """All folders that it lies in, the nearest first."""

    def __truediv__(self, key: str) -> Self:
        """Return a path relative to this one."""

    def absolute(self) -> Self:
        """Return the path from the top."""

    def resolve(self) -> Self:
        """Return the path from the top without `..` and links."""

    def is_relative_to(self, other: Self) -> bool:
        """Tell whether it lies below another path."""

    def exists(self) -> bool:
        """Tell whether there is anything."""

    def is_file(self) -> bool:
        """Tell whether there is a file."""

    def is_dir(self) -> bool:
        """Tell whether there is a folder."""

    def is_symlink(self) -> bool:
        """Tell whether there is a symbolic link."""

    def iterdir(self) -> Iterable[Self]:
        """Return what lies in a folder. Raises `OSError`."""

    def rglob(self, pattern: str) -> Iterable[Self]:
        """Return what lies in a folder and below, where the name matches."""

    def open(self, mode: Literal["rb"]) -> IO[bytes]:
        """Open a file. Raises `OSError`."""
