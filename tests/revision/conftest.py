"""A small repository: a spec, a catalog of two files, a folder beside."""

from __future__ import annotations

from pathlib import Path

import pytest
from git_repository import Repository

INDEX = 'catalog: 1\nnewest_price_date: "2026-07-30"\nstale_after_days: 180\n'


@pytest.fixture(scope="session")
def first_commit(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    """A repository with one commit on `main`, for copies."""
    made = Repository.made(tmp_path_factory.mktemp("first"))
    made.write("specs/prod.yaml", "version: 1\nfleet: prod\n")
    made.write("catalog/catalog.yaml", INDEX)
    made.write("catalog/models/org/small.yaml", "name: org/small\n")
    made.commit()
    return made


@pytest.fixture
def repository(first_commit: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    """A repository with one commit on `main`; its work tree is the working folder."""
    copy = first_commit.copied(tmp_path / "work")
    monkeypatch.chdir(copy.folder)
    return copy
