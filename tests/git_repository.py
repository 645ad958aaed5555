"""Repositories for tests, made by git in a folder of their own: the same commits on every machine."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

NEEDS_GIT = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")

DAY = "2026-08-01T12:00:00Z"
IDENTITY = {
    "GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@example.com", "GIT_AUTHOR_DATE": DAY,
    "GIT_COMMITTER_NAME": "C", "GIT_COMMITTER_EMAIL": "c@example.com", "GIT_COMMITTER_DATE": DAY,
    "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull,
}  # fmt: skip


@dataclass(frozen=True)
class Repository:
    """A repository with a work tree."""

    folder: Path

    @classmethod
    def made(cls, folder: Path) -> Repository:
        """Make an empty repository whose branch is `main`."""
        folder.mkdir(parents=True, exist_ok=True)
        repository = cls(folder)
        repository.git("init", "--quiet", "--initial-branch=main", "--template=")
        return repository

    def copied(self, folder: Path) -> Repository:
        """Return a copy of the repository, which takes a fraction of the time that making it does."""
        return Repository(Path(shutil.copytree(self.folder, folder)))

    def git(self, *arguments: str | Path, stdin: str | None = None) -> str:
        """Run git in the work tree, away from the settings of whoever runs the tests."""
        clean = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        command = ["git", "-c", "commit.gpgsign=false", *map(str, arguments)]
        done = subprocess.run(
            command, cwd=self.folder, env={**clean, **IDENTITY}, input=stdin, capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    def write(self, name: str, content: str | bytes) -> Path:
        """Write a file of the work tree."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def commit(self) -> str:
        """Commit everything that changed and return the id of the commit."""
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", "a change")
        return self.git("rev-parse", "HEAD")

    def stage_link(self, name: str, target: str) -> None:
        """Put a symbolic link into the index alone."""
        self._stage("120000", self._object(target), name)

    def stage_file(self, name: str, content: str) -> None:
        """Put a file into the index alone: its path may be too long for a work tree."""
        self._stage("100644", self._object(content), name)

    def stage_submodule(self, name: str) -> None:
        """Put a submodule into the index alone."""
        self._stage("160000", "1" * 40, name)

    def _object(self, content: str) -> str:
        return self.git("hash-object", "-w", "--stdin", stdin=content)

    def _stage(self, mode: str, object_id: str, name: str) -> None:
        self.git("update-index", "--add", "--cacheinfo", f"{mode},{object_id},{name}")
        self.git("commit", "--quiet", "--message", "staged")
