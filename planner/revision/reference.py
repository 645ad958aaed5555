"""References to files of a repository, as arguments name them: `git:REF:PATH`."""

from __future__ import annotations

import re
from dataclasses import dataclass

PREFIX = "git:"

_UNFIT = re.compile(r"[\x00-\x20\x7f-\x9f\u2028\u2029]")


class RevisionError(Exception):
    """Why a reference leads to no file, in one line for people."""


@dataclass(frozen=True, slots=True)
class GitReference:
    """A branch, a tag, a commit or what git makes of them (`HEAD~1`), and a path below the top of the repository."""

    ref: str
    path: str | None = None

    def __str__(self) -> str:
        return f"{PREFIX}{self.ref}" if self.path is None else f"{PREFIX}{self.ref}:{self.path}"


def is_reference(text: str) -> bool:
    """Tell whether an argument names a file of a repository, and not one on disk (write `./git:...` for that)."""
    return text.startswith(PREFIX)


def parse_reference(text: str) -> GitReference:
    """Return the reference that a text is.

    The path starts after the first colon outside of braces, as git has it: `git:main@{12:30}:specs/prod.yaml`.

    Raises:
        RevisionError: the part before the path is no name of a commit.
    """
    rest = text.removeprefix(PREFIX)
    end = _end_of_ref(rest)
    ref, path = rest[:end], rest[end + 1 :]
    if not ref:
        raise RevisionError("name a branch, a tag or a commit, as in git:main:specs/prod.yaml")
    if ref.startswith("-") or _UNFIT.search(ref):
        raise RevisionError("names of commits do not start with a dash and have no spaces")
    return GitReference(ref, path or None)


def _end_of_ref(text: str) -> int:
    depth = 0
    for position, sign in enumerate(text):
        if sign == ":" and depth == 0:
            return position
        depth += {"{": 1, "}": -1 if depth else 0}.get(sign, 0)
    return len(text)
