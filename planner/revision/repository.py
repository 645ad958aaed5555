"""Ask git about a repository: only what reads, never the network, never a program that a repository names."""

from __future__ import annotations

import errno
import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from threading import Timer

from planner.revision.reference import RevisionError
from planner.source import nearest

TIMEOUT_S = 60
MOST_LISTED_BYTES = 32_000_000
MOST_REFS = 5_000

_KEPT = ("GIT_CEILING_DIRECTORIES", "GIT_CONFIG", "GIT_DISCOVERY_ACROSS_FILESYSTEM", "GIT_EXEC_PATH")
"""Starts of the variables of git that are passed on. Those that name a repository, as hooks set them, are not."""
_SET = {
    "LC_ALL": "C",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "",  # older releases know no other way to keep a partial clone from fetching
}
TOO_MANY = "It holds too many files to be listed; name a folder below it"
_COMMIT = re.compile(rb"[0-9a-f]+\n")  # and not `^...`, which is a commit to leave out
_SHALLOW = "this clone is shallow: fetch its history, in CI with `fetch-depth: 0`"


@dataclass(frozen=True)
class Repository:
    """A repository, seen from a folder. `prefix` is the path of that folder below the top: empty, or ending in `/`."""

    folder: Path
    prefix: str

    @classmethod
    def holding(cls, folder: Path) -> Repository:
        """Return the repository that a folder lies in. Raises `RevisionError`."""
        if not folder.is_dir():
            raise RevisionError(f"there is no folder {folder}")
        done = _git(folder, "rev-parse", "--show-prefix")
        if done.returncode == 0:
            return cls(folder, os.fsdecode(done.stdout.removesuffix(b"\n")))
        reason = _reason(done.stderr)
        if reason.startswith("not a git repository"):
            raise RevisionError(f"{'this folder' if folder == Path() else folder} is in no git repository")
        raise RevisionError(f"git refuses: {reason}")

    def commit(self, ref: str) -> str:
        """Return the id of the commit that a name stands for. Raises `RevisionError`, with names that are like it."""
        done = _git(self.folder, "-c", "core.warnAmbiguousRefs=true", "rev-parse", "--verify", f"{ref}^{{commit}}")
        if b"is ambiguous" in done.stderr:
            raise RevisionError(
                f"`{ref}` is ambiguous; write refs/heads/... or refs/tags/... in full, or more digits of a commit"
            )
        if done.returncode == 0 and _COMMIT.fullmatch(done.stdout):
            return done.stdout.decode().strip()
        raise RevisionError(f"there is no commit `{ref}` here{self._way_out(ref)}")

    def read(self, *arguments: str, given: bytes = b"") -> bytes:
        """Return what a command of git prints. Raises `OSError` where it fails: objects are missing or damaged."""
        try:
            done = _git(self.folder, *arguments, given=given)
        except RevisionError as error:
            raise OSError(errno.EIO, str(error)) from None
        if done.returncode != 0:
            raise OSError(errno.EIO, f"git cannot read it: {_reason(done.stderr)}")
        return done.stdout

    def listed(self, *arguments: str) -> list[str]:
        """Return the entries that `git ls-tree` prints, whose number no size of a repository bounds.

        Raises `OSError` where it fails, and where they are more than `MOST_LISTED_BYTES` long.
        """
        command = ("git", "ls-tree", "-z", "--full-tree", *arguments)
        pipe = subprocess.PIPE
        with (
            TemporaryFile() as said,
            subprocess.Popen(
                command, cwd=self.folder, env=_environment(), stdin=subprocess.DEVNULL, stdout=pipe, stderr=said
            ) as process,
        ):
            limit = Timer(TIMEOUT_S, process.kill)
            limit.start()
            try:
                assert process.stdout is not None
                answer = process.stdout.read(MOST_LISTED_BYTES + 1)
                if len(answer) > MOST_LISTED_BYTES:
                    process.kill()
                    raise OSError(errno.EFBIG, TOO_MANY)
                failed = process.wait() != 0
            finally:
                limit.cancel()
            if failed:
                said.seek(0)
                raise OSError(errno.EIO, f"git cannot read it: {_reason(said.read())}")
        return os.fsdecode(answer).split("\0")[:-1]

    def _way_out(self, ref: str) -> str:
        close = next(self._like(ref), None)
        shallow = _git(self.folder, "rev-parse", "--is-shallow-repository").stdout.strip() == b"true"
        listed = "" if close or shallow else "; `git branch --all` and `git tag` list what there is"
        return (f"; did you mean `{close}`?" if close else "") + (f"; {_SHALLOW}" if shallow else "") + listed

    def _like(self, ref: str) -> Iterator[str]:
        """Yield names like one: the branch of a remote, which is all that a fresh clone has, before what is spelt alike."""
        base = next((ref[:at] for at, sign in enumerate(ref) if sign in "~^@"), ref)
        places = ("refs/heads", "refs/remotes", "refs/tags")
        listed = _git(self.folder, "for-each-ref", f"--count={MOST_REFS}", "--format=%(refname:short)", *places)
        names = [name for name in os.fsdecode(listed.stdout).splitlines() if name != base]
        yield from (name + ref[len(base) :] for name in names if name.endswith(f"/{base}"))
        close = nearest(base, names)
        if close is not None:
            yield close + ref[len(base) :]


def _environment() -> Mapping[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_") or name.startswith(_KEPT)}
    return kept | _SET


def _git(folder: Path, *arguments: str, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(
            ("git", *arguments), cwd=folder, env=_environment(), input=given, capture_output=True, timeout=TIMEOUT_S
        )
    except subprocess.TimeoutExpired:
        raise RevisionError(f"git did not answer in {TIMEOUT_S} s") from None
    except OSError as error:
        raise RevisionError(f"git cannot be run: {(error.strerror or str(error)).lower()}; is it installed?") from None


def _reason(said: bytes) -> str:
    """Return what git says is wrong, on one line: all from its last `fatal:` on."""
    text = " ".join(said.decode(errors="replace").split())
    return text.rpartition("fatal: ")[2] or "it gives no reason"
